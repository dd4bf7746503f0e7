/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_report_header: where a profile is from, and what the run said of itself.
 */
#include "profile/cmd/report.h"

#include "profile/cmd/json_members.h"

#include <stdio.h>

/* Bytes of a file: nothing that a terminal would obey. */
static void put_clean(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		putchar(s[i] >= ' ' && s[i] <= '~' ? s[i] : '?');
}

static void put_member(void *ctx, const char *key, size_t key_len, const char *value,
		       size_t value_len)
{
	(void)ctx;
	fputs("# ", stdout);
	put_clean(key, key_len);
	fputs(": ", stdout);
	put_clean(value, value_len);
	putchar('\n');
}

void report_run_header(const struct report *r)
{
	const struct perfdata *p = r->p;

	fputs("# profile of ", stdout);
	report_put_clean(*p->hostname ? p->hostname : "an unknown host");
	printf(", %u CPU%s\n", p->ncpus, p->ncpus == 1 ? "" : "s");
	if (!p->json)
		fputs("# it carries no counters of the run\n", stdout);
	else if (!json_members(p->json, p->json_len, put_member, NULL))
		fputs("# the counters of the run end here: they are damaged\n", stdout);
	puts("#");
}
