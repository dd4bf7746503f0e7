/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/summary/where.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const text[STAT_WHERES] = {
	[STAT_GUEST] = "guest",	      [STAT_KVM] = "KVM",
	[STAT_VMM] = "VMM",	      [STAT_RUNNABLE] = "waiting for a processor",
	[STAT_HALTED] = "halted",     [STAT_STOPPED] = "stopped by kvmprof",
	[STAT_WAITING] = "asleep in KVM", [STAT_UNTOLD] = "not told apart",
};

static const struct stat_row *row_of(const struct stat_table *t, unsigned int where)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (!strncmp(t->row[i].name, "time:", 5) &&
		    !strcmp(t->row[i].name + 5, stat_where_name[where]))
			return &t->row[i];
	return NULL;
}

void summary_where_print(struct stat *stat, FILE *out)
{
	struct stat_table *t = stat ? calloc(1, sizeof(*t)) : NULL;
	const char *sep = "kvmprof: where the time went: ";
	double all;

	if (!t)
		return;
	stat_read(stat, t);
	all = (double)t->elapsed_ns * t->vcpus;
	for (unsigned int i = 0; all > 0 && i < STAT_WHERES; i++) {
		const struct stat_row *r = row_of(t, i);
		double share = r && r->supported ? 100 * (double)stat_sum(t, r) / all : 0;

		/* What would be printed as 0.0. */
		if (share < 0.05)
			continue;
		fprintf(out, "%s%s %.1f %%", sep, text[i], share);
		sep = ", ";
	}
	if (*sep == ',')
		fputc('\n', out);
	free(t);
}
