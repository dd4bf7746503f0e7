/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/sink/forward.h"

static struct sink *next(struct sink *s)
{
	return ((struct sink_forward *)s)->to;
}

int sink_forward_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	return next(s)->ops->begin(next(s), info, e);
}

int sink_forward_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	return next(s)->ops->kernel(next(s), k, e);
}

int sink_forward_fork(struct sink *s, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid,
		      uint64_t time_ns, struct err *e)
{
	return next(s)->ops->fork(next(s), pid, tid, ppid, ptid, time_ns, e);
}

int sink_forward_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	return next(s)->ops->exit(next(s), pid, tid, time_ns, e);
}

int sink_forward_comm(struct sink *s, uint32_t pid, uint32_t tid, const char *comm, bool exec,
		      uint64_t time_ns, struct err *e)
{
	return next(s)->ops->comm(next(s), pid, tid, comm, exec, time_ns, e);
}

int sink_forward_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	return next(s)->ops->module(next(s), m, e);
}

int sink_forward_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	return next(s)->ops->map(next(s), map, e);
}

int sink_forward_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	return next(s)->ops->dso(next(s), dso, e);
}

int sink_forward_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	return next(s)->ops->sample(next(s), sample, e);
}

int sink_forward_marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	return next(s)->ops->marker(next(s), m, e);
}

int sink_forward_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	return next(s)->ops->lost(next(s), cpu, count, time_ns, e);
}

int sink_forward_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	return next(s)->ops->end(next(s), totals, e);
}

int sink_forward_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	return next(s)->ops->copy(next(s), path, out, e);
}

void sink_forward_destroy(struct sink_forward *f)
{
	if (f->to)
		f->to->ops->destroy(f->to);
}
