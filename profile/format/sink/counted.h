/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counted: the events of exact counts (`kvmprof run --engine exact --call-counts`), by name.
 * profile/record/run/exact_counts.h describes each.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_COUNTED_H
#define KVMPROF_PROFILE_FORMAT_SINK_COUNTED_H

#define COUNTED_INSTRUCTIONS "instructions"
#define COUNTED_CALLS "calls"
#define COUNTED_ENTRIES "entries"
#define COUNTED_EXEC "insn-exec"

#endif
