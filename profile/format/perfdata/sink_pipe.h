/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_pipe: a profile through a pipe, in perf's form for pipes.
 *
 * All is written by end(). A pipe cannot be gone back in, and perf takes the build ids
 * and names of the kernel, its modules and programs from the build-id cache when it
 * sees the first sample: they must be complete by then. Until the end the profile is
 * a single file in $TMPDIR (sink.h, which says where names go), which is removed
 * by end() or destroy(). The totals do not travel: perf refuses features and records unknown to it.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_PIPE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_PIPE_H

#include "profile/format/perfdata/sink.h"

/* opt.path and opt.single_file do not count. fd is borrowed. */
int sink_pipe_create(struct sink **out, int fd, const struct sink_perfdata_options *opt,
		     struct err *e);

/*
 * What perf.data file (one event, as perfdata_write makes it) holds, in the form for
 * pipes. name is that of the pipe, for messages.
 */
int perfdata_write_pipe(int fd, const char *name, const uint8_t *file, size_t len, struct err *e);

#endif
