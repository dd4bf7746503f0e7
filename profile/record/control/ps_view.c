/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/ps_view.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000u

struct ps_view_row {
	uint64_t pid, tid, ppid;
	uint64_t cpu_ns;	/* UINT64_MAX: unknown */
	uint64_t uid, vsz, rss; /* bytes; UINT64_MAX: unknown */
	double percent;		/* negative: unknown */
	const char *state, *comm, *wchan;
	bool is_kernel, running;
	const json_t *stack;
	const char *no_stack;
};

static const char *const sort_name[] = { "pid",	  "cpu",   "time", "comm",
					 "state", "wchan", "vsz",  "rss" };

bool ps_view_sort_find(const char *name, enum ps_sort *out)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sort_name); i++)
		if (!strcmp(name, sort_name[i])) {
			*out = (enum ps_sort)i;
			return true;
		}
	return false;
}

static uint64_t ps_view_number(const json_t *o, const char *key, uint64_t otherwise)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
								: otherwise;
}

static const char *ps_text(const json_t *o, const char *key, const char *otherwise)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : otherwise;
}

/* -- shares of a CPU ------------------------------------------------------------------------ */

static int by_tid(const void *a, const void *b)
{
	uint64_t x = ps_view_number(*(json_t *const *)a, "tid", 0),
		 y = ps_view_number(*(json_t *const *)b, "tid", 0);

	return x < y ? -1 : x > y;
}

static const json_t *find_before(const json_t *const *list, size_t n, const json_t *task)
{
	const json_t *const *at =
		n ? bsearch(&task, list, n, sizeof(const json_t *), by_tid) : NULL;

	/* The number may belong to another task by now. */
	return at && ps_view_number(*at, "start_ns", 0) == ps_view_number(task, "start_ns", 0)
		       ? *at
		       : NULL;
}

void ps_view_add_cpu(json_t *now, const json_t *before)
{
	const json_t *tasks = json_object_get(now, "tasks"),
		     *old = json_object_get(before, "tasks");
	uint64_t from = ps_view_number(before, "time_ns", 0),
		 to = ps_view_number(now, "time_ns", 0);
	cleanup_free const json_t **list = calloc(json_array_size(old) + 1, sizeof(*list));
	size_t n = json_array_size(old);

	if (!list || !from || to <= from)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = json_array_get(old, i);
	qsort(list, n, sizeof(*list), by_tid);
	json_object_set_new(now, "interval_ns", json_integer((json_int_t)(to - from)));
	for (size_t i = 0; i < json_array_size(tasks); i++) {
		json_t *task = json_array_get(tasks, i);
		const json_t *was = find_before(list, n, task);
		uint64_t a = ps_view_number(was, "cpu_ns", UINT64_MAX);
		uint64_t b = ps_view_number(task, "cpu_ns", UINT64_MAX);

		/* UINT64_MAX (unknown) is greater than any other. */
		if (a != UINT64_MAX && b != UINT64_MAX && b >= a)
			json_object_set_new(
				task, "cpu_percent",
				json_real(100.0 * (double)(b - a) / (double)(to - from)));
	}
}

/* -- the table ------------------------------------------------------------------------------ */

static int compare_numbers(double a, double b)
{
	return a > b ? -1 : a < b;
}

/* Largest first; UINT64_MAX, which is unknown, last. */
static int compare_known(uint64_t a, uint64_t b)
{
	return compare_numbers(a == UINT64_MAX ? -1 : (double)a, b == UINT64_MAX ? -1 : (double)b);
}

static int ps_view_compare(const struct ps_view_row *a, const struct ps_view_row *b,
			   enum ps_sort by)
{
	switch (by) {
	case PS_SORT_CPU:
		return compare_numbers(a->percent, b->percent);
	case PS_SORT_TIME:
		return compare_known(a->cpu_ns, b->cpu_ns);
	case PS_SORT_COMM:
		return strcmp(a->comm, b->comm);
	case PS_SORT_STATE:
		return strcmp(a->state, b->state);
	case PS_SORT_WCHAN:
		return strcmp(a->wchan, b->wchan);
	case PS_SORT_VSZ:
		return compare_known(a->vsz, b->vsz);
	case PS_SORT_RSS:
		return compare_known(a->rss, b->rss);
	default:
		return 0;
	}
}

static int by_order(const void *x, const void *y, void *by)
{
	const struct ps_view_row *a = x, *b = y;
	int ret = ps_view_compare(a, b, *(const enum ps_sort *)by);

	if (ret)
		return ret;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static struct ps_view_row row_of(const json_t *t)
{
	const json_t *percent = json_object_get(t, "cpu_percent");

	return (struct ps_view_row){
		.pid = ps_view_number(t, "pid", 0),
		.tid = ps_view_number(t, "tid", 0),
		.ppid = ps_view_number(t, "ppid", 0),
		.cpu_ns = ps_view_number(t, "cpu_ns", UINT64_MAX),
		.uid = ps_view_number(t, "uid", UINT64_MAX),
		.vsz = ps_view_number(t, "vsz_bytes", UINT64_MAX),
		.rss = ps_view_number(t, "rss_bytes", UINT64_MAX),
		.percent = json_is_number(percent) ? json_number_value(percent) : -1,
		.state = ps_text(t, "state", "-"),
		.comm = ps_text(t, "comm", "?"),
		.wchan = ps_text(t, "wchan", "-"),
		.is_kernel = json_is_true(json_object_get(t, "kernel_thread")),
		.running = json_is_true(json_object_get(t, "running")),
		.stack = json_object_get(t, "stack"),
		.no_stack = ps_text(t, "no_stack", ""),
	};
}

/* A user of the guest, whose names are in files of the guest. Returns out. */
static const char *user_text(char out[32], uint64_t uid)
{
	snprintf(out, 32, uid == UINT64_MAX ? "-" : uid ? "%" PRIu64 : "root", uid);
	return out;
}

/* A size in KiB, as in ps(1). Returns out. */
static const char *size_text(char out[32], uint64_t bytes)
{
	snprintf(out, 32, bytes == UINT64_MAX ? "-" : "%" PRIu64, bytes >> 10);
	return out;
}

static void put_row(struct buf *out, const struct ps_view_row *r, bool stacks)
{
	char time[32] = "-", percent[16] = "-", user[32], vsz[32], rss[32];

	if (r->cpu_ns != UINT64_MAX)
		snprintf(time, sizeof(time), "%" PRIu64 ":%02u.%02u", r->cpu_ns / NS_PER_S / 60,
			 (unsigned int)(r->cpu_ns / NS_PER_S % 60),
			 (unsigned int)(r->cpu_ns % NS_PER_S / 10000000));
	if (r->percent >= 0)
		snprintf(percent, sizeof(percent), "%.1f", r->percent);
	buf_printf(out,
		   "%7" PRIu64 " %7" PRIu64 " %7" PRIu64
		   " %-7s %-1.1s %5s %9s %9s %8s %-16.64s %.128s\n",
		   r->pid, r->tid, r->ppid, user_text(user, r->uid), r->state, percent, time,
		   size_text(vsz, r->vsz), size_text(rss, r->rss), r->comm, r->wchan);
	if (!stacks)
		return;
	if (!r->stack)
		buf_printf(out, "        (%.40s)\n", *r->no_stack ? r->no_stack : "no stack");
	for (size_t i = 0; i < json_array_size(r->stack); i++) {
		const char *frame = json_string_value(json_array_get(r->stack, i));

		buf_printf(out, "        [<0>] %.250s\n", frame ? frame : "?");
	}
}

static void put_notes(struct buf *out, const json_t *now)
{
	uint64_t changed = ps_view_number(now, "changed", 0),
		 unreadable = ps_view_number(now, "unreadable", 0);
	const char *lacks = ps_text(now, "lacks", "");

	if (changed)
		buf_printf(out, "# %" PRIu64 " moved while they were read: no stack\n", changed);
	if (unreadable)
		buf_printf(out, "# %" PRIu64 " could not be read\n", unreadable);
	if (json_is_true(json_object_get(now, "cut")))
		buf_printf(out, "# the list changed while it was read: some may be missing\n");
	if (*lacks)
		buf_printf(out, "# %.200s\n", lacks);
}

int ps_view_text(struct buf *out, json_t *now, const json_t *before,
		 const struct ps_view_options *opt, struct err *e)
{
	const json_t *tasks = json_object_get(now, "tasks");
	size_t all = json_array_size(tasks), n = 0;
	cleanup_free struct ps_view_row *row = NULL;
	enum ps_sort sort = opt->sort;

	if (!json_is_array(tasks) || all > PS_VIEW_MAX_TASKS)
		return err_set(e, EINVAL, "the reply has no list of tasks");
	row = calloc(all + 1, sizeof(*row));
	if (!row)
		return err_nomem(e);
	if (before)
		ps_view_add_cpu(now, before);
	for (size_t i = 0; i < all; i++) {
		row[n] = row_of(json_array_get(tasks, i));
		if (!opt->no_kernel || !row[n].is_kernel)
			n++;
	}
	qsort_r(row, n, sizeof(*row), by_order, &sort);
	buf_printf(out, "%7s %7s %7s %-7s %s %5s %9s %9s %8s %-16s %s\n", "PID", "TID", "PPID",
		   "USER", "S", "%CPU", "TIME", "VSZ", "RSS", "COMMAND", "WCHAN");
	for (size_t i = 0; i < n; i++)
		put_row(out, &row[i], opt->stacks);
	put_notes(out, now);
	return out->failed ? err_nomem(e) : 0;
}
