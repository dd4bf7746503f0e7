/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_forward: what a sink in front of another one does by itself: pass each call on.
 *
 * Such a sink begins with a struct sink_forward and takes into its table of operations
 * sink_forward_* for all that it has nothing to do about.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_FORWARD_H
#define KVMPROF_PROFILE_FORMAT_SINK_FORWARD_H

#include "profile/format/sink/sink.h"

struct sink_forward {
	struct sink sink;
	struct sink *to; /* owned; NULL while it is being made */
};

int sink_forward_begin(struct sink *s, const struct profile_info *info, struct err *e);
int sink_forward_kernel(struct sink *s, const struct profile_kernel *k, struct err *e);
int sink_forward_fork(struct sink *s, const struct profile_fork *f, struct err *e);
int sink_forward_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e);
int sink_forward_comm(struct sink *s, const struct profile_comm *c, struct err *e);
int sink_forward_module(struct sink *s, const struct profile_module *m, struct err *e);
int sink_forward_map(struct sink *s, const struct profile_map *map, struct err *e);
int sink_forward_dso(struct sink *s, const struct profile_dso *dso, struct err *e);
int sink_forward_sample(struct sink *s, const struct profile_sample *sample, struct err *e);
int sink_forward_marker(struct sink *s, const struct profile_marker *m, struct err *e);
int sink_forward_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns,
		      struct err *e);
int sink_forward_flush(struct sink *s, uint64_t before_ns, struct err *e);
int sink_forward_end(struct sink *s, const struct profile_totals *totals, struct err *e);
int sink_forward_copy(struct sink *s, const char *path, struct sink **out, struct err *e);
int sink_forward_abandon(struct sink *s, enum sink_rest rest, struct err *e);
/* Of the one behind. */
void sink_forward_destroy(struct sink_forward *f);

#endif
