/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/libvirt/pid.h"

#include "base/cleanup.h"
#include "base/proc.h"
#include "profile/record/libvirt/private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <libvirt/libvirt-qemu.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* With many disks a command line has tens of KiB. */
#define CMDLINE_MAX (1u << 20)

/* -- the command line ----------------------------------------------------------------- */

/* Finds guest=NAME among the options of -name; a comma in a value is written twice. */
static bool is_name(const char *options, const char *name)
{
	const char *s = options;

	if (strncmp(s, "guest=", strlen("guest=")))
		return false;
	s += strlen("guest=");
	for (; *name; name++) {
		if (*s++ != *name || (*name == ',' && *s++ != ','))
			return false;
	}
	return !*s || (*s == ',' && s[1] != ',');
}

bool libvirt_pid_matches(const char *args, size_t len, const char *name, const char *uuid)
{
	const char *end = args + len;
	bool named = false, have_uuid = false, same = false;

	while (args < end) {
		size_t n = strnlen(args, (size_t)(end - args));
		const char *value = args + n + 1;

		/* The last argument must be terminated, too. */
		if (value >= end || !memchr(value, '\0', (size_t)(end - value)))
			break;
		if (!strcmp(args, "-uuid")) {
			have_uuid = true;
			same = !strcasecmp(value, uuid);
		} else if (!strcmp(args, "-name")) {
			named = is_name(value, name);
		}
		args = value;
	}
	return have_uuid ? same : named;
}

static bool is_domain(pid_t pid, const char *name, const char *uuid)
{
	cleanup_free char *args = malloc(CMDLINE_MAX);
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)pid);
	return args &&
	       libvirt_pid_matches(args, proc_arguments(task, args, CMDLINE_MAX), name, uuid);
}

/* -- PID files ------------------------------------------------------------------------ */

static pid_t read_pid(const char *path)
{
	cleanup_fclose FILE *f = fopen(path, "re");
	int pid;

	return f && fscanf(f, "%d", &pid) == 1 && pid > 0 ? pid : 0;
}

/* Tries the system's daemon, then a session's: g_get_user_runtime_dir(), as in libvirt. */
static pid_t by_file(const char *name, const char *uuid)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
	char path[3][PATH_MAX] = { "", "", "" };

	snprintf(path[0], sizeof(path[0]), "/run/libvirt/qemu/%s.pid", name);
	if (runtime && *runtime)
		snprintf(path[1], sizeof(path[1]), "%.2000s/libvirt/qemu/run/%s.pid", runtime,
			 name);
	if (home && *home)
		snprintf(path[2], sizeof(path[2]), "%.2000s/.cache/libvirt/qemu/run/%s.pid", home,
			 name);
	for (unsigned int i = 0; i < 3; i++) {
		pid_t pid = *path[i] ? read_pid(path[i]) : 0;

		if (pid && is_domain(pid, name, uuid))
			return pid;
	}
	return 0;
}

static int by_scan(const char *name, const char *uuid, pid_t *out, struct err *e)
{
	cleanup_closedir DIR *d = opendir("/proc");
	pid_t found = 0, self = getpid();
	struct dirent *entry;

	if (!d)
		return err_set(e, errno, "/proc: %s", strerror(errno));
	while ((entry = readdir(d))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (!pid || pid == self || !is_domain(pid, name, uuid))
			continue;
		if (found)
			return err_set(e, ENOTUNIQ,
				       "domain %s: processes %d and %d both have its UUID: attach "
				       "by PID",
				       name, (int)found, (int)pid);
		found = pid;
	}
	if (!found)
		return err_set(e, ESRCH,
			       "domain %s: none of the processes that can be seen here is its QEMU",
			       name);
	*out = found;
	return 0;
}

int libvirt_pid_find(const char *name, const char *uuid, pid_t *out, struct err *e)
{
	pid_t pid = by_file(name, uuid);

	if (!pid)
		return by_scan(name, uuid, out, e);
	*out = pid;
	return 0;
}

/* -- QEMU's own answer ----------------------------------------------------------------- */

/* An answer has 250 bytes for each vCPU. */
#define ANSWER_MAX (1u << 20)

/* Parses {"return": [{"cpu-index": 0, "thread-id": 4711, ...}, ...]}: QMP, since QEMU 2.12. */
static pid_t first_thread(const char *answer)
{
	json_t *root = json_loads(answer, 0, NULL);
	json_int_t tid = json_integer_value(
		json_object_get(json_array_get(json_object_get(root, "return"), 0), "thread-id"));

	json_decref(root);
	return tid > 0 && tid <= INT32_MAX ? (pid_t)tid : 0;
}

static pid_t process_of(pid_t tid)
{
	char path[64], line[256];
	cleanup_fclose FILE *f = NULL;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	return pid;
}

int libvirt_pid_query(struct libvirt_host *h, const struct libvirt_domain *d, pid_t *pid,
		      struct err *e)
{
	static const char *const name = "virDomainQemuMonitorCommand";
	const struct library want = {
		.soname = "libvirt-qemu.so.0", .what = "libvirt", .names = &name, .nnames = 1
	};
	__typeof__(&virDomainQemuMonitorCommand) command;
	cleanup_free char *answer = NULL;
	virDomainPtr dom;
	pid_t found;
	int ret;

	ret = library_load(&want, (void **)&command, e);
	if (ret)
		return ret;
	dom = libvirt_domain_get(h, d);
	if (!dom)
		return libvirt_failed(h, EIO, "libvirt", e);
	ret = command(dom, "{\"execute\":\"query-cpus-fast\"}", &answer, 0);
	h->virDomainFree(dom);
	if (ret < 0 || !answer)
		return libvirt_failed(h, EIO, "libvirt: query-cpus-fast", e);
	found = strnlen(answer, ANSWER_MAX) < ANSWER_MAX ? first_thread(answer) : 0;
	found = found ? process_of(found) : 0;
	if (!found)
		return err_set(
			e, ESRCH,
			"domain %s: no thread of this machine in QEMU's answer: does libvirt "
			"run in another PID namespace?",
			d->name);
	*pid = found;
	return 0;
}
