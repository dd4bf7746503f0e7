/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_inspect: `kvmprof inspect`: what a file is, and how `kvmprof run` would boot it.
 *
 * Works on the file alone: no guest, no /dev/kvm.
 */
#include "profile/cmd/cmd.h"

#include "profile/cmd/common.h"
#include "profile/run/inspect.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"Usage: kvmprof inspect [OPTIONS] IMAGE\n"
	"\n"
	"Say what IMAGE is, a kernel or a disk, and how `kvmprof run` would boot it. Of a kernel:\n"
	"version, how it is entered, segments, build id, where names, unwind tables and types\n"
	"come from. Of a unified kernel image also: operating system, sizes, command line. Of a\n"
	"disk: partitions, file systems, kernels on them, and which of them with which initrd and\n"
	"command line would run, and why. The file is only read.\n"
	"\n"
	"      --json    the same as one JSON object\n"
	"  -h, --help    this text\n"
	"\n"
	"Exit status: 0 it can be booted; 1 it can't; 2 wrong usage.\n";

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
		ret = err_set(e, ENOMEM, "out of memory");
	else if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	buf_deinit(&out);
	if ((fflush(stdout) || ferror(stdout)) && !ret)
		ret = err_set(e, EIO, "cannot write: %s", strerror(errno));
	return ret;
}

int cmd_inspect(int argc, char **argv)
{
	static const struct option longopts[] = { { "help", no_argument, NULL, 'h' },
						  { "json", no_argument, NULL, 'j' },
						  { 0 } };
	struct err e = { 0 };
	bool json = false;
	int opt;

	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (opt != 'j')
			return cmd_wrong_option(argv, opt);
		json = true;
	}
	if (optind == argc) {
		fputs("kvmprof inspect: which image? See `kvmprof inspect --help`\n", stderr);
		return 2;
	}
	if (optind + 1 < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind + 1]);
	if (inspect(argv[optind], json, &e) < 0) {
		fprintf(stderr, "kvmprof inspect: %s\n", e.text);
		return 1;
	}
	return 0;
}
