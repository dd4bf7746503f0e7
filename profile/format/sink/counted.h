/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counted: names of the events that exact counts have (`kvmprof run --engine exact --call-counts`).
 * profile/record/run/exact_counts.h describes each event.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_COUNTED_H
#define KVMPROF_PROFILE_FORMAT_SINK_COUNTED_H

#define COUNTED_INSTRUCTIONS "instructions"
#define COUNTED_CALLS "calls"
#define COUNTED_ENTRIES "entries"
#define COUNTED_EXEC "insn-exec"

#endif
