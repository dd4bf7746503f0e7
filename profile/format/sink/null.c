/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/null.h"

#include <errno.h>
#include <stdlib.h>

static int null_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	(void)s, (void)info, (void)e;
	return 0;
}

static int kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	(void)s, (void)k, (void)e;
	return 0;
}

static int forked(struct sink *s, const struct profile_fork *f, struct err *e)
{
	(void)s, (void)f, (void)e;
	return 0;
}

static int exited(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	(void)s, (void)pid, (void)tid, (void)time_ns, (void)e;
	return 0;
}

static int comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	(void)s, (void)c, (void)e;
	return 0;
}

static int module(struct sink *s, const struct profile_module *m, struct err *e)
{
	(void)s, (void)m, (void)e;
	return 0;
}

static int map(struct sink *s, const struct profile_map *m, struct err *e)
{
	(void)s, (void)m, (void)e;
	return 0;
}

static int dso(struct sink *s, const struct profile_dso *d, struct err *e)
{
	(void)s, (void)d, (void)e;
	return 0;
}

static int sample(struct sink *s, const struct profile_sample *x, struct err *e)
{
	(void)s, (void)x, (void)e;
	return 0;
}

static int marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	(void)s, (void)m, (void)e;
	return 0;
}

static int lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	(void)s, (void)cpu, (void)count, (void)time_ns, (void)e;
	return 0;
}

static int end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	(void)s, (void)totals, (void)e;
	return 0;
}

static int copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	(void)s, (void)out;
	return err_set(e, ENOTSUP, "%s: no profile is kept (-o PATH)", path);
}

static int abandon(struct sink *s, enum sink_rest rest, struct err *e)
{
	(void)s, (void)rest, (void)e;
	return 0;
}

static void null_destroy(struct sink *s)
{
	free(s);
}

static const struct sink_ops ops = {
	.begin = null_begin,
	.kernel = kernel,
	.fork = forked,
	.exit = exited,
	.comm = comm,
	.module = module,
	.map = map,
	.dso = dso,
	.sample = sample,
	.marker = marker,
	.lost = lost,
	.end = end,
	.copy = copy,
	.abandon = abandon,
	.destroy = null_destroy,
};

int sink_null_create(struct sink **out, struct err *e)
{
	struct sink *s = malloc(sizeof(*s));

	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->ops = &ops;
	*out = s;
	return 0;
}
