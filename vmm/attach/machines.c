/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/machines.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/utf8.h"
#include "vmm/attach/process.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Numbers of fields of `stat` (proc(5)). */
enum { STAT_START = 22, STAT_RESIDENT = 24 };

/* Maximum number of machines that a message names. */
#define MOST_NAMED 8u

/* -- names -------------------------------------------------------------------------------------- */

/*
 * Returns the value of an option: "--id=X" or "--id" and X. Returns NULL if this argument is
 * another one.
 */
static const char *value_of(const char *arg, const char *next, const char *option)
{
	const size_t n = strlen(option);

	if (strncmp(arg, option, n) != 0)
		return NULL;
	if (arg[n] == '=')
		return arg + n + 1;
	return arg[n] ? NULL : next;
}

/*
 * Finds the name in QEMU's -name: NAME[,debug-threads=on], or guest=NAME among others. Moves *value
 * to it and returns its length. A comma in it is doubled.
 */
static size_t qemu_name(const char **value)
{
	const char *guest = strstr(*value, "guest=");
	size_t n = 0;

	if (guest && (guest == *value || guest[-1] == ','))
		*value = guest + strlen("guest=");
	while ((*value)[n] && ((*value)[n] != ',' || (*value)[n + 1] == ','))
		n += (*value)[n] == ',' ? 2 : 1;
	return n;
}

/* Copies a name, in which a doubled comma is one. */
static void copy_name(char *out, size_t size, const char *name, size_t len)
{
	char raw[MACHINES_NAME_MAX];
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < sizeof(raw); i++) {
		raw[n++] = name[i];
		i += name[i] == ',' && i + 1 < len && name[i + 1] == ',';
	}
	raw[n] = 0;
	utf8_clean(out, size, raw);
}

/* Copies the file name in a path without its extension. */
static void copy_stem(char *out, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/'), *dot;

	if (!strncmp(path, "path=", 5))
		path += 5;
	path = slash ? slash + 1 : path;
	dot = strrchr(path, '.');
	copy_name(out, size, path, dot && dot > path ? (size_t)(dot - path) : strlen(path));
}

void machines_name(char *out, size_t size, const char *command, size_t len)
{
	static const char *const options[] = { "--id", "--name", "-name", "--api-socket",
					       "--api-sock" };
	const char *value[ARRAY_SIZE(options)] = { NULL };

	out[0] = 0;
	/* The last argument may be cut off: it is used if its NUL is there. */
	for (size_t at = 0, n; at < len; at += n + 1) {
		const char *arg = command + at, *next = NULL;

		n = strnlen(arg, len - at);
		if (at + n == len)
			break;
		if (at + n + 1 < len && memchr(arg + n + 1, 0, len - at - n - 1))
			next = arg + n + 1;
		for (size_t i = 0; i < ARRAY_SIZE(options); i++)
			if (!value[i])
				value[i] = value_of(arg, next, options[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(options) && !out[0]; i++) {
		if (value[i] && i < 3) {
			const char *name = value[i];
			const size_t n = i ? qemu_name(&name) : strlen(name);

			copy_name(out, size, name, n);
		} else if (value[i]) {
			copy_stem(out, size, value[i]);
		}
	}
}

/* -- processes ---------------------------------------------------------------------------------- */

static void read_name(struct machines_one *m)
{
	cleanup_free char *text = malloc(MACHINES_COMMAND_MAX);
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)m->pid);
	machines_name(m->name, sizeof(m->name), text,
		      text ? proc_arguments(task, text, MACHINES_COMMAND_MAX) : 0);
}

static uint64_t seconds_up(void)
{
	cleanup_fclose FILE *f = proc_open("/proc/uptime");
	double up = 0;

	return f && fscanf(f, "%lf", &up) == 1 && up > 0 ? (uint64_t)up : 0;
}

static void read_figures(struct machines_one *m, uint64_t up)
{
	const uint64_t tick = (uint64_t)sysconf(_SC_CLK_TCK);
	char task[32], text[PROC_STAT_MAX];
	const char *stat_line;
	struct stat st;
	uint64_t began;

	snprintf(task, sizeof(task), "/proc/%d", (int)m->pid);
	stat_line = proc_stat(task, text);
	began = proc_stat_number(stat_line, STAT_START) / tick;
	m->uptime_s = stat_line && up > began ? up - began : 0;
	m->resident = proc_stat_number(stat_line, STAT_RESIDENT) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (!stat(task, &st))
		m->owner = st.st_uid;
}

/* Returns whether the process is a machine, with its properties in *m; or counts it as hidden. */
static bool look_at_machine(struct machines *all, struct machines_one *m, struct process *p,
			    pid_t pid, uint64_t up)
{
	struct err why = { 0 };
	const int ret = process_look(p, pid, &why);

	if (ret == -EACCES)
		all->hidden++;
	if (ret && ret != -E2BIG)
		return false;
	*m = (struct machines_one){ .pid = pid, .vcpus = p->all_vcpus };
	memcpy(m->vmm, p->name, sizeof(m->vmm));
	read_name(m);
	read_figures(m, up);
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct machines_one *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int machines_find(struct machines *out, struct err *e)
{
	cleanup_free struct process *p = malloc(sizeof(*p));
	cleanup_closedir DIR *d = opendir("/proc");
	const uint64_t up = seconds_up();
	struct dirent *entry;
	size_t cap = 0;

	*out = (struct machines){ 0 };
	if (!d)
		return err_set(e, errno, "/proc: %s", strerror(errno));
	if (!p)
		return err_nomem(e);
	while ((entry = readdir(d))) {
		const pid_t pid = atoi(entry->d_name);
		struct machines_one m;

		if (pid <= 0 || !look_at_machine(out, &m, p, pid, up))
			continue;
		if (ARRAY_ROOM(out->at, out->n, cap))
			return err_nomem(e);
		out->at[out->n++] = m;
	}
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_pid);
	return 0;
}

void machines_free(struct machines *m)
{
	free(m->at);
	*m = (struct machines){ 0 };
}

/* -- by name ------------------------------------------------------------------------------------ */

static void put_known(struct buf *text, const struct machines *all, const char *only)
{
	unsigned int n = 0;

	for (size_t i = 0; i < all->n && n < MOST_NAMED; i++) {
		const struct machines_one *m = &all->at[i];

		if (only && strcmp(m->name, only) != 0)
			continue;
		buf_printf(text, "%s%d (%s%s%s)", n++ ? ", " : "", (int)m->pid, m->vmm,
			   *m->name ? " " : "", m->name);
	}
}

static int no_such(const struct machines *all, const char *name, struct err *e)
{
	char hidden[96] = "";
	struct buf text;
	int ret;

	buf_init(&text);
	put_known(&text, all, NULL);
	buf_u8(&text, 0);
	if (all->hidden)
		snprintf(hidden, sizeof(hidden),
			 " (processes that may not be looked into without CAP_SYS_PTRACE: %zu)",
			 all->hidden);
	ret = err_set(
		e, ENOENT,
		"no machine of this host is called %.60s%s%.300s%s; `kvmprof list --machines` "
		"lists them",
		name, all->n ? ": there are " : "", text.failed ? "" : (const char *)text.data,
		hidden);
	buf_deinit(&text);
	return ret;
}

int machines_by_name(const char *name, pid_t *pid, struct err *e)
{
	struct machines all;
	size_t found = 0;
	int ret = machines_find(&all, e);

	for (size_t i = 0; !ret && i < all.n; i++) {
		if (strcmp(all.at[i].name, name) != 0)
			continue;
		found++;
		*pid = all.at[i].pid;
	}
	if (!ret && !found)
		ret = no_such(&all, name, e);
	if (!ret && found > 1) {
		struct buf text;

		buf_init(&text);
		put_known(&text, &all, name);
		buf_u8(&text, 0);
		ret = err_set(e, ENOTUNIQ, "%zu machines are called %.60s: %.300s; attach by PID",
			      found, name, text.failed ? "" : (const char *)text.data);
		buf_deinit(&text);
	}
	machines_free(&all);
	return ret;
}
