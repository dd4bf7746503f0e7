/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/sink_null.h"

#include <errno.h>

/* None of them is looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	return 0;
}

static int kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	return 0;
}

static int fork_task(struct sink *s, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid,
		     uint64_t time_ns, struct err *e)
{
	return 0;
}

static int exit_task(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	return 0;
}

static int comm(struct sink *s, uint32_t pid, uint32_t tid, const char *name, bool exec,
		uint64_t time_ns, struct err *e)
{
	return 0;
}

static int module(struct sink *s, const struct profile_module *m, struct err *e)
{
	return 0;
}

static int map(struct sink *s, const struct profile_map *m, struct err *e)
{
	return 0;
}

static int dso(struct sink *s, const struct profile_dso *d, struct err *e)
{
	return 0;
}

static int sample(struct sink *s, const struct profile_sample *x, struct err *e)
{
	return 0;
}

static int marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	return 0;
}

static int lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	return 0;
}

static int end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	return 0;
}

static int copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	return err_set(e, EOPNOTSUPP, "%s: there is no profile", path);
}

static void destroy(struct sink *s)
{
}

static const struct sink_ops ops = {
	.begin = begin,
	.kernel = kernel,
	.fork = fork_task,
	.exit = exit_task,
	.comm = comm,
	.module = module,
	.map = map,
	.dso = dso,
	.sample = sample,
	.marker = marker,
	.lost = lost,
	.end = end,
	.copy = copy,
	.destroy = destroy,
};

struct sink *sink_null(void)
{
	static struct sink nothing = { .ops = &ops };

	return &nothing;
}
