/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_inspect: `kvmprof inspect`: what a file is, and how `kvmprof run` would boot it.
 *
 * Works on the file alone: no guest, no /dev/kvm.
 */
#include "profile/cmd/cmd.h"

#include "profile/cmd/common.h"
#include "profile/record/run/inspect.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static int inspect(const char *path, bool json, struct err *e)
{
	struct inspect in;
	struct buf out;
	int ret = inspect_open(&in, path, e);

	buf_init(&out);
	if (json)
		inspect_json(&in, ret ? e : NULL, &out);
	else
		inspect_text(&in, &out);
	inspect_close(&in);
	if (out.failed)
		ret = err_nomem(e);
	else if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	buf_deinit(&out);
	return ret;
}

struct inspect_options {
	bool json;
};

#define OPTION_STRUCT struct inspect_options

static const struct option_row rows[] = {
	{ "json", 0, NULL, "the same as one JSON object", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof inspect [OPTIONS] IMAGE\n"
		 "\n"
		 "Print what IMAGE is, a kernel or a disk, and how `kvmprof run` would boot it. Of "
		 "a kernel:\n"
		 "version, how it is entered, segments, build id, and what will be known of it "
		 "when\n"
		 "it runs (symbols --check). Of a unified kernel image also: operating system, "
		 "sizes, command line. Of a\n"
		 "disk: partitions, file systems, kernels on them, and which of them with which "
		 "initrd and\n"
		 "command line would run, and why. The file is only read.\n"
		 "\n",
	.after = "\n"
		 "Exit status: 0 it can be booted; 1 it cannot; 2 wrong usage.\n",
	.rows = rows,
	.column = 16,
};

int cmd_inspect(int argc, char **argv)
{
	struct inspect_options o = { .json = false };
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (optind == argc)
		return cmd_wrong(argv, "which image?");
	if (optind + 1 < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind + 1]);
	if (inspect(argv[optind], o.json, &e) < 0) {
		fprintf(stderr, "kvmprof inspect: %s\n", e.text);
		return 1;
	}
	return 0;
}
