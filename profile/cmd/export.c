/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/export/export.h"
#include "profile/stacks/slices.h"
#include "profile/stacks/stackset.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct options {
	struct stackset_options load;
	const char *phase; /* NULL: all */
	struct export_options how;
	const struct export_format *format;
	const char *output; /* NULL: not said */
};

static void list(FILE *f)
{
	const struct export_format *format;

	for (size_t i = 0; (format = export_at(i)); i++)
		fprintf(f, "  %-13s %s\n", format->name, format->help);
}

static void usage(FILE *f)
{
	fputs("Usage: kvmprof export --format FORMAT [OPTIONS]\n"
	      "\n"
	      "A profile in the format of another tool.\n"
	      "\n"
	      "  -F, --format FORMAT    one of those below\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "  -o, --output FILE      where to (default: standard output, \"-\"); of iprof the\n"
	      "                         directory to make, without which it does nothing\n"
	      "      --list             print the formats, and nothing else\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "      --no-demangle      names of C++ and Rust functions as they are\n"
	      "\n"
	      "Names (not perf-script, pprof and iprof, which have addresses):\n"
	      "      --names WHAT       function, offset (function+0x1f), or both: the one within\n"
	      "                         the other (default: function)\n"
	      "      --relaxed          a function reaches to the next symbol, whatever its size\n"
	      "\n"
	      "Weights and threads:\n"
	      "      --samples          count samples (default: their time, or event)\n"
	      "      --per-thread       tell threads of a name apart (folded); a profile for each\n"
	      "                         thread instead of each vCPU (speedscope)\n"
	      "      --per-pid          files for each process (iprof)\n"
	      "\n"
	      "Which samples:\n"
	      "      --event NAME       of several events this one (default: the first)\n"
	      "      --comm NAME  --pid PID  --cpu CPU\n"
	      "      --time FROM,TO     seconds since the first sample; either may be empty\n"
	      "      --phase NAME       of this phase of a boot, or from this marker to the\n"
	      "                         next: see `kvmprof report --phase'\n"
	      "      --kernel-only      only kernel frames, and samples that have some\n"
	      "  -h, --help             this text\n"
	      "\n"
	      "Formats:\n",
	      f);
	list(f);
}

/* -- arguments ----------------------------------------------------------------------------- */

static bool take_number(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return *text && !*end && !errno && *out >= 0 && *out <= UINT32_MAX;
}

static bool take_seconds(const char *text, size_t len, double *out)
{
	cleanup_free char *copy = strndup(text, len);
	char *end;

	if (!copy || !len)
		return copy != NULL; /* stays at its default */
	*out = strtod(copy, &end);
	return !*end && isfinite(*out) && *out >= 0;
}

static bool take_time(const char *text, struct stackset_options *o)
{
	const char *comma = strchr(text, ',');

	return comma && take_seconds(text, (size_t)(comma - text), &o->from_s) &&
	       take_seconds(comma + 1, strlen(comma + 1), &o->to_s) &&
	       (!o->to_s || o->to_s > o->from_s);
}

static bool take_names(const char *text, enum export_names *out)
{
	static const char *const name[] = { "function", "offset", "both" };

	for (unsigned int i = 0; i < ARRAY_SIZE(name); i++) {
		if (!strcmp(text, name[i])) {
			*out = (enum export_names)i;
			return true;
		}
	}
	return false;
}

enum {
	OPT_BUILDID_DIR = 256,
	OPT_NO_DEMANGLE,
	OPT_LIST,
	OPT_NAMES,
	OPT_RELAXED,
	OPT_SAMPLES,
	OPT_PER_THREAD,
	OPT_PER_PID,
	OPT_EVENT,
	OPT_COMM,
	OPT_PID,
	OPT_CPU,
	OPT_TIME,
	OPT_PHASE,
	OPT_KERNEL_ONLY,
};

/* false: the value is not understood. */
static bool take_option(struct options *o, int c, const char *value)
{
	switch (c) {
	case 'F':
		o->format = export_find(value);
		return o->format != NULL;
	case 'i':
		o->load.input = value;
		return true;
	case 'o':
		o->output = value;
		return *value;
	case OPT_BUILDID_DIR:
		o->load.buildid_dir = value;
		return true;
	case OPT_NO_DEMANGLE:
		return o->load.no_demangle = true;
	case OPT_NAMES:
		return take_names(value, &o->how.names);
	case OPT_RELAXED:
		return o->load.relaxed = true;
	case OPT_SAMPLES:
		return o->how.count_samples = true;
	case OPT_PER_THREAD:
		return o->how.per_thread = true;
	case OPT_PER_PID:
		return o->how.per_pid = true;
	case OPT_EVENT:
		o->load.event = value;
		return true;
	case OPT_COMM:
		o->load.comm = value;
		return true;
	case OPT_PID:
		return take_number(value, &o->load.pid);
	case OPT_CPU:
		return take_number(value, &o->load.cpu);
	case OPT_TIME:
		return take_time(value, &o->load);
	case OPT_PHASE:
		o->phase = value;
		return true;
	case OPT_KERNEL_ONLY:
		return o->load.kernel_only = true;
	}
	return false;
}

/* -- output ---------------------------------------------------------------------------------- */

static int write_out(const struct options *o, const struct stackset *s, int fd, const char *name,
		     struct err *e)
{
	struct export_out out;
	int ret;

	export_out_init(&out, fd, o->format->wants & EXPORT_GZIP);
	ret = o->format->write(&out, NULL, s, &o->how, e);
	if (!ret)
		ret = export_out_finish(&out, name, e);
	export_out_deinit(&out);
	return ret;
}

/* A regular file appears only when it is complete; pipes and devices are written to. */
static int write_file(const struct options *o, const struct stackset *s, struct err *e)
{
	cleanup_free char *tmp = NULL;
	cleanup_close int fd = -1;
	struct stat st;
	bool direct = !stat(o->output, &st) && !S_ISREG(st.st_mode);
	int ret;

	if (!direct && asprintf(&tmp, "%s.tmp-%d", o->output, (int)getpid()) < 0)
		return err_set(e, ENOMEM, "out of memory");
	fd = open(direct ? o->output : tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(e, errno, "cannot write %s: %s", o->output, strerror(errno));
	ret = write_out(o, s, fd, o->output, e);
	if (close(take_fd(&fd)) && !ret)
		ret = err_set(e, errno, "cannot write %s: %s", o->output, strerror(errno));
	if (!direct && !ret && rename(tmp, o->output))
		ret = err_set(e, errno, "cannot make %s: %s", o->output, strerror(errno));
	if (!direct && ret)
		unlink(tmp);
	return ret;
}

static int write_directory(const struct options *o, const struct stackset *s, struct err *e)
{
	cleanup_free char *tmp = NULL;
	int ret;

	if (asprintf(&tmp, "%s.tmp-%d", o->output, (int)getpid()) < 0)
		return err_set(e, ENOMEM, "out of memory");
	if (mkdir(tmp, 0777))
		return err_set(e, errno, "cannot make %s: %s", tmp, strerror(errno));
	ret = o->format->write(NULL, tmp, s, &o->how, e);
	/* Fails where there is something that is not empty: it may be anything. */
	if (!ret && rename(tmp, o->output))
		ret = err_set(e, errno, "cannot make the directory %s: %s; name a new one",
			      o->output, strerror(errno));
	if (ret)
		file_remove_tree(tmp, NULL);
	return ret;
}

static int export(const struct options *o, struct err *e)
{
	const char *input = o->load.input ? o->load.input : "perf.data";
	struct stackset *s = NULL;
	struct stackset_options load = o->load;
	int ret = o->phase ? slices_set_options(&load, o->phase, e) : 0;

	ret = ret ? ret : stackset_load(&s, &load, e);
	if (ret)
		return ret;
	if (s->partial)
		fprintf(stderr, "kvmprof: %s: %s\n", input, s->message);
	if (!s->samples)
		ret = err_set(e, ENODATA, "%s: no sample is left to export", input);
	else if (o->format->wants & EXPORT_DIRECTORY)
		ret = write_directory(o, s, e);
	else if (!strcmp(o->output, "-"))
		ret = write_out(o, s, STDOUT_FILENO, "standard output", e);
	else
		ret = write_file(o, s, e);
	stackset_destroy(s);
	return ret;
}

/* 0, or what is wrong with the combination. */
static const char *contradiction(const struct options *o)
{
	if (!o->format)
		return "--format is missing; kvmprof export --list prints the formats";
	if ((o->format->wants & EXPORT_DIRECTORY) && (!o->output || !strcmp(o->output, "-")))
		return "this format is a directory: name it with --output";
	if ((o->format->wants & EXPORT_BINARY) && (!o->output || !strcmp(o->output, "-")) &&
	    isatty(STDOUT_FILENO))
		return "this format is not for a terminal: name a file with --output";
	if (o->how.names != EXPORT_FUNCTION && !(o->format->wants & EXPORT_TEXT_NAMES))
		return "--names has no meaning in this format, which has addresses";
	return NULL;
}

int cmd_export(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "format", required_argument, NULL, 'F' },
		{ "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "list", no_argument, NULL, OPT_LIST },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		{ "names", required_argument, NULL, OPT_NAMES },
		{ "relaxed", no_argument, NULL, OPT_RELAXED },
		{ "samples", no_argument, NULL, OPT_SAMPLES },
		{ "per-thread", no_argument, NULL, OPT_PER_THREAD },
		{ "per-pid", no_argument, NULL, OPT_PER_PID },
		{ "event", required_argument, NULL, OPT_EVENT },
		{ "comm", required_argument, NULL, OPT_COMM },
		{ "pid", required_argument, NULL, OPT_PID },
		{ "cpu", required_argument, NULL, OPT_CPU },
		{ "time", required_argument, NULL, OPT_TIME },
		{ "phase", required_argument, NULL, OPT_PHASE },
		{ "kernel-only", no_argument, NULL, OPT_KERNEL_ONLY },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = { .load = STACKSET_OPTIONS_DEFAULT, .how.version = KVMPROF_VERSION };
	const char *wrong;
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":F:i:o:h", long_options, NULL)) != -1) {
		if (c == 'h' || c == OPT_LIST) {
			(c == 'h' ? usage : list)(stdout);
			return 0;
		}
		if (c == ':' || c == '?') {
			fprintf(stderr, "kvmprof export: %s '%s' (try kvmprof export --help)\n",
				c == ':' ? "missing value for" : "unknown option",
				argv[optind - 1]);
			return 2;
		}
		if (!take_option(&o, c, optarg)) {
			fprintf(stderr,
				"kvmprof export: '%s' is not understood here (try kvmprof "
				"export --help)\n",
				optarg);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kvmprof export: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	wrong = contradiction(&o);
	if (wrong) {
		fprintf(stderr, "kvmprof export: %s\n", wrong);
		return 2;
	}
	o.output = o.output ? o.output : "-";
	o.load.keep_samples = o.format->wants & EXPORT_SAMPLES;
	if (export(&o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}
