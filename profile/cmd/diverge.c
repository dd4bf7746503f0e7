/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_diverge: `kvmprof diverge`: the first instruction at which two exact runs part. */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "profile/cmd/common.h"
#include "profile/record/diverge/diverge.h"

#include <errno.h>
#include <stdio.h>

struct cmd_diverge_options {
	struct diverge_options of;
	unsigned int n;
	bool json;
};

static int diverge_word(void *at, char *arg, struct err *e)
{
	struct cmd_diverge_options *o = at;

	if (o->n == 2)
		return err_set(e, E2BIG, "unexpected argument '%s': two profiles are compared",
			       arg);
	o->of.path[o->n++] = arg;
	return 0;
}

#define OPTION_STRUCT struct cmd_diverge_options

static const struct option_row rows[] = {
	{ "json", 0, NULL, "print JSON, for programs", OPTION_PUT(json, true) },
	{ "quiet", 'q', NULL, "print no progress", OPTION_PUT(of.quiet, true) },
	OPTION_ROWS(cmd_debuginfo_rows, of.places),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof diverge [OPTIONS] A B\n"
		 "\n"
		 "Makes the runs of two profiles of `kvmprof run --engine exact` once more and "
		 "says at\n"
		 "which instruction they part: what both execute last, what each executes then, "
		 "the\n"
		 "registers that differ, the first value in memory that differs, and both stacks.\n"
		 "Exit status: 0 they are the same, 1 they part, 2 that can't be told.\n"
		 "\n",
	.rows = rows,
	.word = diverge_word,
};

static int diverge_print(const struct cmd_diverge_options *o, struct err *e)
{
	struct diverge *d = NULL;
	struct err none = { 0 };
	struct buf out;
	int ret = diverge_find(&d, &o->of, e);
	int status = 2;

	buf_init(&out);
	if (!ret) {
		(o->json ? diverge_json : diverge_text)(d, &out, &none);
		ret = out.failed ? err_nomem(e) : 0;
	}
	if (!ret) {
		fwrite(out.data, 1, out.len, stdout);
		/* 1 is an answer: one that nobody can read is none. */
		ret = cmd_flush_stdout(e);
	}
	if (!ret || ret == -EPIPE)
		status = diverge_is_same(d) ? 0 : 1;
	buf_deinit(&out);
	diverge_destroy(d);
	return status;
}

int cmd_diverge(int argc, char **argv)
{
	struct cmd_diverge_options o = { .of.reporter = &cmd_reporter };
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (o.n < 2)
		return cmd_wrong(argv, "give two profiles");
	status = diverge_print(&o, &e);
	if (e.code)
		fprintf(stderr, "kvmprof: %s\n", e.text);
	return status;
}
