/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/debuginfo.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void cmd_debuginfo_progress(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "\r\033[K%s", text ? text : "");
	fflush(stderr);
}

bool cmd_debuginfo_option(struct debuginfo_places *places, int c, const char *arg)
{
	if (c == OPT_DEBUGINFO)
		places->given = arg;
	else if (c == OPT_BUILD_ID_MAP)
		places->map_file = arg;
	else
		return false;
	return true;
}

int cmd_debuginfo_load(struct srcline *s, struct err *e)
{
	struct err why = { 0 };
	int ret = srcline_load(s, &why);

	if (ret && ret != -ENOENT)
		return err_set(e, -ret, "%s", why.text);
	if (*srcline_why(s))
		fprintf(stderr, "kvmprof: %s%s\n", ret ? "no source lines: " : "", srcline_why(s));
	return 0;
}
