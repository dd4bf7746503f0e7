/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker: as /init, sets the machine up, starts one process for each role (by an exec of itself, so
 * that each role is a program of its own), and ends the machine.
 *
 * Kernel command line: worker.seconds=N (default 10, counted from when all roles run),
 * worker.roles=NAME,NAME... (default: all except those that wait). Console lines, which tests wait for:
 *
 *	worker: start
 *	worker: module NAME			a module was loaded
 *	worker: map PID START-END PERMS OFF PATH	executable mappings of a role
 *	worker: truth PID TID COMM FRAMES	the expected stack of this thread's samples
 *	worker: steady				all roles run
 *	worker: proc TID WCHAN STAT...		/proc/TID/wchan and /proc/TID/stat of each task
 *	worker: proc end
 *	worker: turns N, at the same place N	of a role that loads two libraries
 *	worker: failed: WHAT
 *	worker: done
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MODULE "/lib/modules/configfs.ko"

/* Where a role says that it runs, and learns until when: in every process that init starts. */
#define FD_READY 10
#define FD_END	 11

static double end_time;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int time_is_left(void)
{
	return now() < end_time;
}

double seconds_left(void)
{
	double left = end_time - now();

	return left > 0 ? left : 0;
}

void tell_truth(const char *comm, const char *frames)
{
	printf("worker: truth %d %d %s %s\n", (int)getpid(), (int)syscall(SYS_gettid), comm,
	       frames);
}

/* The value of a word NAME=VALUE on the kernel's command line, or NULL. */
static const char *parameter(const char *name)
{
	static char line[4096];
	char *word, *rest = line;
	int fd = open("/proc/cmdline", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	line[n < 0 ? 0 : n] = '\0';
	while ((word = strsep(&rest, " \n")) != NULL)
		if (!strncmp(word, name, strlen(name)) && word[strlen(name)] == '=')
			return word + strlen(name) + 1;
	return NULL;
}

static int is_wanted(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, name, n) && (p[n] == ',' || p[n] == '\0'))
			return 1;
	return 0;
}

static void print_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perms[8], path[256];
	unsigned long start, end, off;

	while (f && fgets(line, sizeof(line), f)) {
		path[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, perms, &off,
			   path) >= 4 &&
		    perms[2] == 'x')
			printf("worker: map %d %lx-%lx %s %lx %s\n", (int)getpid(), start, end,
			       perms, off, path);
	}
	if (f)
		fclose(f);
}

/* The time counts from when all roles run: a slow host may need most of it to start them. */
static void wait_for_all(void)
{
	if (write(FD_READY, "", 1) != 1 ||
	    read(FD_END, &end_time, sizeof(end_time)) != sizeof(end_time))
		printf("worker: failed: init does not start the time: %s\n", strerror(errno));
	close(FD_READY);
	close(FD_END);
}

static int run_role(const char *name)
{
	for (unsigned int i = 0; i < nroles; i++) {
		if (strcmp(roles[i].name, name))
			continue;
		print_maps();
		wait_for_all();
		roles[i].run();
		return 0;
	}
	printf("worker: failed: no role %s\n", name);
	return 1;
}

static void load_module(void)
{
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (syscall(SYS_finit_module, fd, "", 0))
		printf("worker: failed: module configfs: %s\n", strerror(errno));
	else
		printf("worker: module configfs\n");
	close(fd);
}

static void set_up(void)
{
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	mkdir("/config", 0755);
	load_module();
	mount("configfs", "/config", "configfs", 0, NULL);
}

/* ready[1] and end[0] go to the role, the other two stay here. */
static void start_role(const char *name, const int *ready, const int *end)
{
	char path[64];
	pid_t pid;

	snprintf(path, sizeof(path), "/bin/%s", name);
	/* A link with its name, so that exec gives the process that comm. */
	if (symlink("/bin/worker", path) && errno != EEXIST)
		printf("worker: failed: %s: %s\n", path, strerror(errno));
	pid = fork();
	if (pid == 0) {
		if (dup2(ready[1], FD_READY) == FD_READY && dup2(end[0], FD_END) == FD_END)
			execl(path, name, (char *)NULL);
		printf("worker: failed: exec %s: %s\n", path, strerror(errno));
		_exit(1);
	}
}

/* Starts all roles that LIST names, and their time when the last of them runs. */
static void start_roles(const char *list, double seconds)
{
	int ready[2], end[2];
	unsigned int n = 0;
	double until;
	char byte;

	if (pipe2(ready, O_CLOEXEC) || pipe2(end, O_CLOEXEC)) {
		printf("worker: failed: pipe: %s\n", strerror(errno));
		return;
	}
	for (unsigned int i = 0; i < nroles; i++) {
		if (list ? !is_wanted(list, roles[i].name) : roles[i].only_named)
			continue;
		start_role(roles[i].name, ready, end);
		n++;
	}
	close(ready[1]);
	close(end[0]);
	for (unsigned int i = 0; i < n && read(ready[0], &byte, 1) == 1; i++)
		;
	until = now() + seconds;
	for (unsigned int i = 0; i < n; i++)
		if (write(end[1], &until, sizeof(until)) != sizeof(until))
			printf("worker: failed: time: %s\n", strerror(errno));
	close(ready[0]);
	close(end[1]);
}

static void end_machine(void)
{
	fflush(stdout);
	sync();
	if (access("/sys/firmware/acpi", F_OK) == 0)
		reboot(LINUX_REBOOT_CMD_POWER_OFF);
	reboot(LINUX_REBOOT_CMD_RESTART);
}

int main(int argc, char **argv)
{
	const char *seconds;

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() != 1)
		return run_role(strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0]);
	set_up();
	printf("worker: start\n");
	seconds = parameter("worker.seconds");
	start_roles(parameter("worker.roles"), seconds ? strtod(seconds, NULL) : 10);
	printf("worker: steady\n");
	while (wait(NULL) > 0 || errno == EINTR)
		;
	printf("worker: done\n");
	end_machine();
	return 0;
}
