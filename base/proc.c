/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/proc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_on(int fd, char *to, size_t size)
{
	ssize_t n;

	do
		n = read(fd, to, size);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t stream_read(void *fd, char *to, size_t size)
{
	return read_on((int)(intptr_t)fd, to, size);
}

static int stream_close(void *fd)
{
	return close((int)(intptr_t)fd);
}

/*
 * Uses own I/O functions: a stream of the C library ends at the first interrupted read and loses
 * the line.
 */
FILE *proc_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL
			 : fopencookie((void *)(intptr_t)fd, "r",
				       (cookie_io_functions_t){ .read = stream_read,
								.close = stream_close });

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

const char *proc_stat(const char *task, char text[PROC_STAT_MAX])
{
	char path[96];
	cleanup_close int fd = -1;

	snprintf(path, sizeof(path), "%s/stat", task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return proc_stat_of(fd, text);
}

const char *proc_stat_of(int fd, char text[PROC_STAT_MAX])
{
	const char *after;
	ssize_t n;

	do
		n = fd < 0 ? -1 : pread(fd, text, PROC_STAT_MAX - 1, 0);
	while (n < 0 && fd >= 0 && errno == EINTR);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	after = strrchr(text, ')');
	return after && after[1] == ' ' ? after + 2 : NULL;
}

const char *proc_stat_field(const char *stat, unsigned int number)
{
	for (unsigned int i = 3; stat && i < number; i++) {
		stat = strchr(stat, ' ');
		stat = stat ? stat + 1 : NULL;
	}
	return stat;
}

uint64_t proc_stat_number(const char *stat, unsigned int number)
{
	const char *at = proc_stat_field(stat, number);

	return at ? strtoull(at, NULL, 10) : 0;
}

bool proc_has_ended(const char *task)
{
	char text[PROC_STAT_MAX];
	const char *stat = proc_stat(task, text);

	return !stat || *stat == 'Z' || *stat == 'X';
}

bool proc_comm(const char *task, char *comm, size_t cap)
{
	char path[96];
	cleanup_fclose FILE *f = NULL;

	*comm = 0;
	snprintf(path, sizeof(path), "%s/comm", task);
	f = proc_open(path);
	if (!f || !fgets(comm, (int)cap, f))
		return false;
	comm[strcspn(comm, "\n")] = 0;
	return true;
}

bool proc_status(const char *task, const char *name, char *value, size_t cap)
{
	char path[96], line[512];
	size_t len = strlen(name);
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/status", task);
	f = proc_open(path);
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':' && line[len + 1] == '\t') {
			line[strcspn(line, "\n")] = '\0';
			snprintf(value, cap, "%s", line + len + 2);
			return true;
		}
	return false;
}

pid_t proc_status_pid(const char *task, const char *name)
{
	char value[32];

	return proc_status(task, name, value, sizeof(value)) ? atoi(value) : 0;
}

size_t proc_arguments(const char *task, char *args, size_t cap)
{
	char path[96];
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/cmdline", task);
	f = proc_open(path);
	return f ? fread(args, 1, cap, f) : 0;
}

bool proc_syscall_of(int fd, struct proc_syscall *out)
{
	char text[256];
	long number;
	unsigned long long first, second;
	ssize_t n;

	do
		n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	while (n < 0 && fd >= 0 && errno == EINTR);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*out = (struct proc_syscall){ .runs = !strncmp(text, "running", strlen("running")) };
	if (out->runs)
		return true;
	n = sscanf(text, "%ld %llx %llx", &number, &first, &second);
	if (n < 1 || (number >= 0 && n < 3))
		return false;
	out->number = number;
	if (number >= 0) {
		out->argument[0] = first;
		out->argument[1] = second;
	}
	return true;
}

bool proc_syscall(const char *task, struct proc_syscall *out)
{
	char path[96];
	cleanup_close int fd = -1;

	snprintf(path, sizeof(path), "%s/syscall", task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return proc_syscall_of(fd, out);
}

/*
 * Replaces a loader's path, TOP/lib/kvmprof/ld-linux..., by the path of the script that starts it.
 * Returns false if it is not such a path.
 */
static bool name_launcher(char path[PATH_MAX])
{
	static const char loader[] = "/lib/kvmprof/ld-linux", launcher[] = "/bin/kvmprof";
	char *at = NULL, *next = path;

	/* Use the last match, because the archive may be anywhere. */
	while ((next = strstr(next, loader)))
		at = next++;
	if (!at || strchr(at + strlen(loader), '/'))
		return false;
	memcpy(at, launcher, sizeof(launcher));
	return true;
}

bool proc_runs_program(const char *task, const char *program)
{
	static const char deleted[] = " (deleted)";
	char path[64], exe[PATH_MAX];
	const char *name;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/exe", task);
	len = readlink(path, exe, sizeof(exe) - 1);
	if (len <= 0)
		return false;
	exe[len] = '\0';
	if ((size_t)len >= sizeof(deleted) && !strcmp(exe + len - (sizeof(deleted) - 1), deleted))
		exe[(size_t)len - (sizeof(deleted) - 1)] = '\0';
	(void)name_launcher(exe);
	name = strrchr(exe, '/');
	return name && !strcmp(name + 1, program);
}

const char *proc_program(char out[PATH_MAX])
{
	static const char self[] = "/proc/self/exe";
	ssize_t len = readlink(self, out, PATH_MAX - 1);

	out[len > 0 ? len : 0] = '\0';
	return name_launcher(out) && access(out, X_OK) == 0 ? out : self;
}
