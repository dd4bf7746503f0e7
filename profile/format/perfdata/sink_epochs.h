/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_epochs: a profile of a guest whose kernel is replaced by another one, by kexec or by a reboot.
 *
 * The format of perf.data has one kernel for all samples, and stock perf would name the frames of the second kernel by the functions of the
 * first one. So each kernel, from the second on, has a profile of its own inside the first one's directory: PATH/epoch-2,
 * PATH/epoch-3 and so on. perf opens each of them; kvmprof's commands read them together.
 *
 * The other forms, a single file and a pipe, have room for one kernel. There the samples of later kernels are left out, and
 * counted as lost.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_EPOCHS_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_EPOCHS_H

#include "profile/format/perfdata/sink.h"

/*
 * Creates a sink that begins a new epoch at each call of kernel() after the first one. It takes over `to`, also when it fails: a
 * sink of perfdata_sink_create(), which opt was used for, or one in front of it. Returns 0 or -ENOMEM.
 */
int sink_epochs_create(struct sink **out, struct sink *to, const struct sink_perfdata_options *opt,
		       struct err *e);

#endif
