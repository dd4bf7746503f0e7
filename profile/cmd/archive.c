/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/outfile.h"
#include "profile/format/perfdata/archive.h"
#include "profile/cmd/common.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct archive_options {
	const char *input, *output, *buildid_dir;
	bool json;
};

static bool path_ends(const char *s, const char *with)
{
	size_t n = strlen(s), m = strlen(with);

	return n > m && !strcmp(s + n - m, with);
}

static bool archive_form_of(const char *path, enum archive_form *out)
{
	if (!strcmp(path, "-") || path_ends(path, ".tar.zst") || path_ends(path, ".tzst"))
		*out = ARCHIVE_ZSTD;
	else if (path_ends(path, ".tar.gz") || path_ends(path, ".tgz"))
		*out = ARCHIVE_GZIP;
	else if (path_ends(path, ".tar"))
		*out = ARCHIVE_TAR;
	else
		return false;
	return true;
}

/* The last component, without what would make it another place. */
static void archive_name_of(char *out, size_t size, const char *input)
{
	size_t len = strlen(input), start;

	while (len && input[len - 1] == '/')
		len--;
	for (start = len; start && input[start - 1] != '/';)
		start--;
	snprintf(out, size, "%.*s", (int)(len - start), input + start);
	if (!*out || !strcmp(out, ".") || !strcmp(out, ".."))
		snprintf(out, size, "perf.data");
}

static void archive_print_facts(const struct archive_options *o, const struct archive_facts *f)
{
	fprintf(stderr, "kvmprof: packed %zu files, %.1f MB", f->files, (double)f->bytes / 1e6);
	if (f->from_cache)
		fprintf(stderr, ", %zu of them from the build-id cache", f->from_cache);
	fputc('\n', stderr);
	if (f->kernel_missing)
		fprintf(stderr,
			"kvmprof: %s: no kernel symbols in it or in the build-id cache: addresses "
			"will be shown\n",
			o->input);
	if (f->missing)
		fprintf(stderr,
			"kvmprof: %s: %zu program(s) neither in it nor in the build-id cache: "
			"their functions have no names\n",
			o->input, f->missing);
	if (f->partial)
		fprintf(stderr, "kvmprof: %s: the profile is not complete; it is packed as it is\n",
			o->input);
}

static int archive_print_json(const struct archive_options *o, const struct archive_facts *f,
			      struct err *e)
{
	struct json_writer w;

	json_open(&w);
	json_put(&w, "profile", o->input, "archive", o->output, "files", (uint64_t)f->files,
		 "bytes", (uint64_t)f->bytes, "from_cache", (uint64_t)f->from_cache,
		 "kernel_missing", json_of_bool(f->kernel_missing), "programs_missing",
		 (uint64_t)f->missing, "partial", json_of_bool(f->partial));
	return json_close(&w, stdout) ? err_nomem(e) : cmd_flush_stdout(e);
}

static int archive_to_stdout(struct archive_request *r, struct archive_facts *facts, struct err *e)
{
	if (isatty(STDOUT_FILENO))
		return err_set(e, EINVAL,
			       "an archive is binary, and standard output is a terminal: give -o "
			       "FILE, or pipe it");
	r->fd = STDOUT_FILENO;
	r->form = ARCHIVE_ZSTD;
	return archive_profile(r, facts, e);
}

static int archive_to_file(struct archive_request *r, const char *output,
			   struct archive_facts *facts, struct err *e)
{
	struct outfile out;
	int ret = outfile_open(&out, output, e);

	if (ret)
		return ret;
	r->fd = out.fd;
	ret = archive_profile(r, facts, e);
	return outfile_finish(&out, ret, e);
}

static int archive_input(struct archive_options *o, struct err *e)
{
	cleanup_free char *by_name = NULL;
	struct archive_facts facts;
	char name[256];
	struct archive_request r = { .input = o->input,
				     .name = name,
				     .buildid_dir = o->buildid_dir };
	int ret;

	archive_name_of(name, sizeof(name), o->input);
	if (!o->output) {
		if (asprintf(&by_name, "%s.tar.zst", name) < 0) {
			by_name = NULL;
			return err_nomem(e);
		}
		o->output = by_name;
	}
	if (!archive_form_of(o->output, &r.form))
		return err_set(e, EINVAL, "%s: must end in .tar.zst, .tar.gz or .tar", o->output);
	ret = !strcmp(o->output, "-") ? archive_to_stdout(&r, &facts, e)
				      : archive_to_file(&r, o->output, &facts, e);
	if (!ret && o->json)
		return archive_print_json(o, &facts, e);
	if (!ret)
		archive_print_facts(o, &facts);
	return ret;
}

#define OPTION_STRUCT struct archive_options

static const struct option_row rows[] = {
	CMD_INPUT(input),
	{ "output", 'o', "FILE",
	  ".tar.zst, .tar.gz or .tar; - is standard output, in\n"
	  ".tar.zst (default: the profile's name and .tar.zst)",
	  OPTION_TEXT_OF(output, "a file") },
	CMD_BUILDID_DIR(buildid_dir),
	{ "json", 0, NULL, "what was packed, as one JSON object", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof archive [OPTIONS] [PROFILE]\n"
		 "\n"
		 "Pack a profile with all that it needs to be read elsewhere: kernel symbols and\n"
		 "programs come along, from the build-id cache where the profile has none.\n"
		 "\n",
	.after = "\n"
		 "On the other machine: tar xf FILE; kvmprof report -i NAME. The same profile "
		 "always\n"
		 "gives the same file.\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

int cmd_archive(int argc, char **argv)
{
	struct archive_options o = { .input = "perf.data" };
	enum archive_form form;
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (o.output && !archive_form_of(o.output, &form))
		return cmd_wrong_usage(argv, "must end in .tar.zst, .tar.gz or .tar:", o.output);
	if (o.json && o.output && !strcmp(o.output, "-"))
		return cmd_wrong(argv, "--json and -o - both need standard output");
	return cmd_status(archive_input(&o, &e), &e);
}
