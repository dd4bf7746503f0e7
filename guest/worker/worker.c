/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker: as /init it sets the machine up, starts one process for each role
 * (by exec of itself, so that each is a program of its own) and ends it all.
 *
 * Kernel command line: worker.seconds=N (default 10), worker.roles=NAME,NAME...
 * (default: all). Console lines, which tests wait for:
 *
 *	worker: start
 *	worker: module NAME			a module was loaded
 *	worker: map PID START-END PERMS OFF PATH	executable mappings of a role
 *	worker: truth PID TID COMM FRAMES	where samples of this thread are to be found
 *	worker: steady				all roles run
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
	return !list;
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

static int run_role(const char *name, const char *until)
{
	end_time = strtod(until, NULL);
	for (unsigned int i = 0; i < nroles; i++) {
		if (strcmp(roles[i].name, name))
			continue;
		print_maps();
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

static void start_role(const char *name, double until)
{
	char path[64], text[32];
	pid_t pid;

	snprintf(path, sizeof(path), "/bin/%s", name);
	snprintf(text, sizeof(text), "%.3f", until);
	/* A link with its name, so that exec gives the process that comm. */
	if (symlink("/bin/worker", path) && errno != EEXIST)
		printf("worker: failed: %s: %s\n", path, strerror(errno));
	pid = fork();
	if (pid == 0) {
		execl(path, name, text, (char *)NULL);
		printf("worker: failed: exec %s: %s\n", path, strerror(errno));
		_exit(1);
	}
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
	const char *seconds, *list;
	double until;

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() != 1)
		return run_role(strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0],
				argv[1] ? argv[1] : "0");
	set_up();
	printf("worker: start\n");
	seconds = parameter("worker.seconds");
	until = now() + (seconds ? strtod(seconds, NULL) : 10);
	list = parameter("worker.roles");
	for (unsigned int i = 0; i < nroles; i++)
		if (is_wanted(list, roles[i].name))
			start_role(roles[i].name, until);
	printf("worker: steady\n");
	while (wait(NULL) > 0 || errno == EINTR)
		;
	printf("worker: done\n");
	end_machine();
	return 0;
}
