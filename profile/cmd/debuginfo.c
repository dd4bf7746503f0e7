/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/debuginfo.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define OPTION_STRUCT struct debuginfo_places

const struct option_row cmd_debuginfo_rows[] = {
	{ "debuginfo", 0, "PATH", "the kernel's debug file, or a directory to look for it in",
	  OPTION_TEXT(given) },
	{ "build-id-map", 0, "FILE", "where files are, as `kvmprof scan` wrote it",
	  OPTION_TEXT(map_file) },
	{ 0 },
};

static void debuginfo_progress(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "\r\033[K%s", text ? text : "");
	fflush(stderr);
}

void cmd_debuginfo_show_progress(struct debuginfo_places *places)
{
	if (isatty(STDERR_FILENO))
		places->progress = debuginfo_progress;
}

/* Loads, and says on stderr what is missing. */
static int debuginfo_load(struct srcline *s, struct err *e)
{
	struct err why = { 0 };
	int ret = srcline_load(s, &why);

	if (ret && ret != -ENOENT)
		return err_set(e, -ret, "%s", why.text);
	if (*srcline_why(s))
		fprintf(stderr, "kvmprof: %s%s\n", ret ? "no source lines: " : "", srcline_why(s));
	return 0;
}

int cmd_debuginfo_open(struct srcline **out, struct debuginfo_places *places,
		       const struct perfdata *p, struct err *e)
{
	int ret;

	cmd_debuginfo_show_progress(places);
	ret = srcline_create(out, places, e);
	if (ret)
		return ret;
	srcline_set_profile(*out, p);
	return debuginfo_load(*out, e);
}
