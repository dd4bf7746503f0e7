/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_epochs: stores the profile of a guest whose kernel is replaced by another one, by kexec or
 * by a reboot.
 *
 * The format of perf.data has one kernel for all samples, and stock perf would name the frames of
 * the second kernel by the functions of the first one. Each kernel from the second on therefore has
 * its own profile inside the first one's directory: PATH/epoch-2, PATH/epoch-3 and so on. perf
 * opens each of them; kvmprof's commands read them together.
 *
 * The other forms, a single file and a pipe, can store one kernel. The samples of later kernels are
 * omitted there, and counted as lost.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_EPOCHS_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_EPOCHS_H

#include "profile/format/perfdata/sink.h"

/*
 * Creates a sink in *out that begins a new epoch at each call of kernel() after the first. Takes
 * ownership of `to`, also on failure: a sink created by perfdata_sink_create() with the same opt,
 * or one in front of it. The caller frees *out with its destroy operation. Returns 0 or -ENOMEM.
 */
int sink_epochs_create(struct sink **out, struct sink *to, const struct sink_perfdata_options *opt,
		       struct err *e);

#endif
