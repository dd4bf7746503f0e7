/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/sink.h"

#include <errno.h>
#include <stdlib.h>

/* -- a sink in front of another one -------------------------------------------------- */

static struct sink *forward_next(struct sink *s)
{
	return ((struct sink_forward *)s)->to;
}

int sink_forward_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	return forward_next(s)->ops->begin(forward_next(s), info, e);
}

int sink_forward_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	return forward_next(s)->ops->kernel(forward_next(s), k, e);
}

int sink_forward_fork(struct sink *s, const struct profile_fork *f, struct err *e)
{
	return forward_next(s)->ops->fork(forward_next(s), f, e);
}

int sink_forward_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	return forward_next(s)->ops->exit(forward_next(s), pid, tid, time_ns, e);
}

int sink_forward_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	return forward_next(s)->ops->comm(forward_next(s), c, e);
}

int sink_forward_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	return forward_next(s)->ops->module(forward_next(s), m, e);
}

int sink_forward_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	return forward_next(s)->ops->map(forward_next(s), map, e);
}

int sink_forward_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	return forward_next(s)->ops->dso(forward_next(s), dso, e);
}

int sink_forward_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	return forward_next(s)->ops->sample(forward_next(s), sample, e);
}

int sink_forward_marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	return forward_next(s)->ops->marker(forward_next(s), m, e);
}

int sink_forward_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	return forward_next(s)->ops->lost(forward_next(s), cpu, count, time_ns, e);
}

int sink_forward_flush(struct sink *s, uint64_t before_ns, struct err *e)
{
	return forward_next(s)->ops->flush
		       ? forward_next(s)->ops->flush(forward_next(s), before_ns, e)
		       : 0;
}

int sink_forward_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	return forward_next(s)->ops->end(forward_next(s), totals, e);
}

int sink_forward_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	return forward_next(s)->ops->copy(forward_next(s), path, out, e);
}

int sink_forward_abandon(struct sink *s, enum sink_leftover rest, struct err *e)
{
	return forward_next(s)->ops->abandon(forward_next(s), rest, e);
}

void sink_forward_destroy(struct sink_forward *f)
{
	if (f->to)
		f->to->ops->destroy(f->to);
}

/* -- a profile that nobody keeps ------------------------------------------------------- */

static int null_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	(void)s, (void)info, (void)e;
	return 0;
}

static int null_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	(void)s, (void)k, (void)e;
	return 0;
}

static int null_forked(struct sink *s, const struct profile_fork *f, struct err *e)
{
	(void)s, (void)f, (void)e;
	return 0;
}

static int null_exited(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	(void)s, (void)pid, (void)tid, (void)time_ns, (void)e;
	return 0;
}

static int null_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	(void)s, (void)c, (void)e;
	return 0;
}

static int null_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	(void)s, (void)m, (void)e;
	return 0;
}

static int null_map(struct sink *s, const struct profile_map *m, struct err *e)
{
	(void)s, (void)m, (void)e;
	return 0;
}

static int null_dso(struct sink *s, const struct profile_dso *d, struct err *e)
{
	(void)s, (void)d, (void)e;
	return 0;
}

static int null_sample(struct sink *s, const struct profile_sample *x, struct err *e)
{
	(void)s, (void)x, (void)e;
	return 0;
}

static int null_marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	(void)s, (void)m, (void)e;
	return 0;
}

static int null_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	(void)s, (void)cpu, (void)count, (void)time_ns, (void)e;
	return 0;
}

static int null_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	(void)s, (void)totals, (void)e;
	return 0;
}

static int null_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	(void)s, (void)out;
	return err_set(e, ENOTSUP, "%s: no profile is kept (-o PATH)", path);
}

static int null_abandon(struct sink *s, enum sink_leftover rest, struct err *e)
{
	(void)s, (void)rest, (void)e;
	return 0;
}

static void null_destroy(struct sink *s)
{
	free(s);
}

static const struct sink_ops null_ops = {
	.begin = null_begin,
	.kernel = null_kernel,
	.fork = null_forked,
	.exit = null_exited,
	.comm = null_comm,
	.module = null_module,
	.map = null_map,
	.dso = null_dso,
	.sample = null_sample,
	.marker = null_marker,
	.lost = null_lost,
	.end = null_end,
	.copy = null_copy,
	.abandon = null_abandon,
	.destroy = null_destroy,
};

int sink_null_create(struct sink **out, struct err *e)
{
	struct sink *s = malloc(sizeof(*s));

	if (!s)
		return err_nomem(e);
	s->ops = &null_ops;
	*out = s;
	return 0;
}
