/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phase: the parts of a Linux boot by name, in their order. Who tells where they begin: the samples'
 * stacks (profile/analyse/stacks/phases.h), or the run itself, by the very instruction (--engine exact).
 * Pure, any thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_PHASE_H
#define KVMPROF_PROFILE_FORMAT_SINK_PHASE_H

#include <stdbool.h>
#include <string.h>

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
static inline const char *phase_name(enum phase p)
{
	static const char *const name[PHASES] = {
		"first instruction", "decompressor", "start_kernel", "initcalls", "/init", "user",
	};

	return p < PHASES ? name[p] : "unknown";
}

/* True when there is such a phase; names as printed, and "first", "init". */
static inline bool phase_parse(const char *name, enum phase *out)
{
	for (unsigned int i = 0; i < PHASES; i++)
		if (!strcmp(name, phase_name((enum phase)i)) ||
		    (i == PHASE_FIRST && !strcmp(name, "first")) ||
		    (i == PHASE_INIT && !strcmp(name, "init"))) {
			*out = (enum phase)i;
			return true;
		}
	return false;
}

#endif
