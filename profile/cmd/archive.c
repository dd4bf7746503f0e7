/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "profile/perfdata/archive.h"
#include "profile/cmd/common.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
	const char *input, *output, *buildid_dir;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof archive [OPTIONS]\n"
	      "\n"
	      "Pack a profile with all that it needs to be read elsewhere: kernel symbols and\n"
	      "programs come along, from the build-id cache where the profile has none.\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "  -o, --output FILE      .tar.zst, .tar.gz or .tar; - is standard output, in\n"
	      "                         .tar.zst (default: the profile's name and .tar.zst)\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "There: tar xf FILE; kvmprof report -i NAME. The same profile gives the same file.\n",
	      f);
}

static bool ends(const char *s, const char *with)
{
	size_t n = strlen(s), m = strlen(with);

	return n > m && !strcmp(s + n - m, with);
}

static bool form_of(const char *path, enum archive_form *out)
{
	if (!strcmp(path, "-") || ends(path, ".tar.zst") || ends(path, ".tzst"))
		*out = ARCHIVE_ZSTD;
	else if (ends(path, ".tar.gz") || ends(path, ".tgz"))
		*out = ARCHIVE_GZIP;
	else if (ends(path, ".tar"))
		*out = ARCHIVE_TAR;
	else
		return false;
	return true;
}

/* The last component, without what would make it another place. */
static void name_of(char *out, size_t size, const char *input)
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

static void tell(const struct options *o, const struct archive_facts *f)
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
		fprintf(stderr, "kvmprof: %s: is not complete; packed as it is\n", o->input);
}

static int to_stdout(const struct options *o, const char *name, struct archive_facts *facts,
		     struct err *e)
{
	if (isatty(STDOUT_FILENO))
		return err_set(e, EINVAL,
			       "an archive is nothing for a terminal: -o FILE, or pipe it");
	return archive_profile(o->input, name, o->buildid_dir, STDOUT_FILENO, ARCHIVE_ZSTD, facts,
			       e);
}

/* Under another name until it is complete. */
static int to_file(const struct options *o, const char *name, enum archive_form form,
		   struct archive_facts *facts, struct err *e)
{
	cleanup_free char *tmp = NULL;
	cleanup_close int fd = -1;
	int ret;

	if (asprintf(&tmp, "%s.tmp-%d", o->output, (int)getpid()) < 0) {
		tmp = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(e, errno, "%s: cannot create: %s", tmp, strerror(errno));
	ret = archive_profile(o->input, name, o->buildid_dir, fd, form, facts, e);
	if (!ret && close(take_fd(&fd)) < 0)
		ret = err_set(e, errno, "%s: cannot write: %s", tmp, strerror(errno));
	if (!ret && rename(tmp, o->output) < 0)
		ret = err_set(e, errno, "%s: cannot create: %s", o->output, strerror(errno));
	if (ret)
		unlink(tmp);
	return ret;
}

static int archive(struct options *o, struct err *e)
{
	cleanup_free char *by_name = NULL;
	struct archive_facts facts;
	enum archive_form form;
	char name[256];
	int ret;

	name_of(name, sizeof(name), o->input);
	if (!o->output) {
		if (asprintf(&by_name, "%s.tar.zst", name) < 0) {
			by_name = NULL;
			return err_set(e, ENOMEM, "out of memory");
		}
		o->output = by_name;
	}
	if (!form_of(o->output, &form))
		return err_set(e, EINVAL, "%s: must end in .tar.zst, .tar.gz or .tar", o->output);
	ret = !strcmp(o->output, "-") ? to_stdout(o, name, &facts, e)
				      : to_file(o, name, form, &facts, e);
	if (!ret)
		tell(o, &facts);
	return ret;
}

int cmd_archive(int argc, char **argv)
{
	enum { OPT_BUILDID_DIR = 256 };
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = { .input = "perf.data" };
	enum archive_form form;
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:o:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
			o.input = optarg;
			break;
		case 'o':
			o.output = optarg;
			break;
		case OPT_BUILDID_DIR:
			o.buildid_dir = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			return cmd_wrong_option(argv, c);
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"kvmprof archive: unexpected argument '%s' (-i names the profile)\n",
			argv[optind]);
		return 2;
	}
	if (o.output && !form_of(o.output, &form)) {
		fprintf(stderr, "kvmprof archive: %s: must end in .tar.zst, .tar.gz or .tar\n",
			o.output);
		return 2;
	}
	if (archive(&o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}
