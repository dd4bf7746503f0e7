/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_pipe: writes a profile through a pipe, in perf's form for pipes.
 *
 * end() writes everything. A pipe cannot be rewound, and perf reads the build ids and the names of
 * the kernel, its modules and programs from the build-id cache at the first sample: they must be
 * complete by then. Until the end the profile is a single file in $TMPDIR (sink.h describes where
 * names are stored), which end() or destroy() removes. The totals are not transmitted: perf refuses
 * features and records unknown to it.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_PIPE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_PIPE_H

#include "profile/format/perfdata/sink.h"

/*
 * Creates a sink in *out that writes to fd, which is borrowed until end(). opt.path and
 * opt.single_file are ignored. The caller frees *out with its destroy operation. Returns 0 or
 * -errno.
 */
int sink_pipe_create(struct sink **out, int fd, const struct sink_perfdata_options *opt,
		     struct err *e);

/*
 * Converts a perf.data file of len bytes (one event, as perfdata_write makes it) to the form for
 * pipes and writes it to fd. name is that of the pipe, for messages. Returns 0 or -errno.
 */
int perfdata_write_pipe(int fd, const char *name, const uint8_t *file, size_t len, struct err *e);

#endif
