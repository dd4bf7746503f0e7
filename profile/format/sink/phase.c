/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/phase.h"

#include <string.h>

static const char *const phase_names[PHASES] = {
	"first instruction", "decompressor", "start_kernel", "initcalls", "/init", "user",
};

const char *phase_name(enum phase p)
{
	return p < PHASES ? phase_names[p] : "unknown";
}

bool phase_parse(const char *name, enum phase *out)
{
	for (unsigned int i = 0; i < PHASES; i++)
		if (!strcmp(name, phase_names[i]) || (i == PHASE_FIRST && !strcmp(name, "first")) ||
		    (i == PHASE_INIT && !strcmp(name, "init"))) {
			*out = (enum phase)i;
			return true;
		}
	return false;
}
