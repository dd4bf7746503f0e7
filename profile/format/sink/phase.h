/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * phase: the phases of a Linux boot, in order, and their names. The boundaries come from the
 * samples' stacks (profile/analyse/stacks/phases.h), or from the run itself, exact to the
 * instruction (--engine exact). The functions are pure; any thread may call them.
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

/* Returns a constant string such as "start_kernel"; "unknown" for a value outside the enum. */
static inline const char *phase_name(enum phase p)
{
	static const char *const name[PHASES] = {
		"first instruction", "decompressor", "start_kernel", "initcalls", "/init", "user",
	};

	return p < PHASES ? name[p] : "unknown";
}

/*
 * Sets *out to the phase of this name. Accepts the names of phase_name(), and "first" and "init".
 * Returns false if there is no such phase.
 */
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
