/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phase: the parts of a Linux boot by name, in their order. Who tells where they begin: the samples'
 * stacks (profile/stacks/phases.h), or the run itself, by the very instruction (--engine exact).
 * Pure, any thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_PHASE_H
#define KVMPROF_PROFILE_FORMAT_SINK_PHASE_H

#include <stdbool.h>

enum phase {
	PHASE_FIRST,
	PHASE_DECOMPRESSOR,
	PHASE_START_KERNEL,
	PHASE_INITCALLS,
	PHASE_INIT,
	PHASE_USER,
	PHASES
};

/* "start_kernel" */
const char *phase_name(enum phase p);
/* True when there is such a phase; names as printed, and "first", "init". */
bool phase_parse(const char *name, enum phase *out);

#endif
