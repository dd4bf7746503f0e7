/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/cmd/common.h"
#include "profile/analyse/import/folded.h"
#include "profile/analyse/import/import.h"
#include "profile/analyse/import/iprof.h"
#include "profile/analyse/import/kp.h"
#include "profile/analyse/import/script.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/sink.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMPORT_MAX_FILES 65536u /* most files that are read from a directory */
#define IMPORT_LOOKED_AT 8000u	/* bytes; a binary file has a zero byte among them */

enum form { FORM_GUESS, FORM_FOLDED, FORM_SCRIPT, FORM_KP, FORM_IPROF };

struct cmd_import_options {
	const char *input;
	enum form form;
	bool no_comm;
	struct import_options import;
	struct sink_perfdata_options sink;
	int argc;
	char **argv;
};

/* -- input -------------------------------------------------------------------------------- */

static int import_read_input(struct buf *b, const char *path, struct err *e)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	cleanup_close int fd =
		strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	int ret;

	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", name, strerror(errno));
	ret = file_read_rest(b, fd, IMPORT_MAX_BYTES, name, e);
	return ret || b->len ? ret : err_set(e, ENODATA, "%s: is empty", name);
}

/* Refuses files that are not text, as some of the formats accept any bytes as names. */
static int import_check_text(const char *name, const struct buf *b, struct err *e)
{
	const struct import_text text = { (const char *)b->data, b->len };
	size_t n = b->len < IMPORT_LOOKED_AT ? b->len : IMPORT_LOOKED_AT;

	if (import_begins(text, PERFDATA_MAGIC) || import_begins(text, PERFDATA_MAGIC_SWAPPED))
		return err_set(e, EINVAL,
			       "%s: is a profile of perf, not text; `kvmprof report -i` reads it",
			       name);
	if (n && memchr(b->data, 0, n))
		return err_set(e, EINVAL, "%s: is a binary file, not text of stacks", name);
	if (import_begins(text, "# image: "))
		return err_set(
			e, EISDIR,
			"%s: is one file of a directory that `export -F iprof` made; name the "
			"directory",
			name);
	return 0;
}

/* Decides by the first line that is not a comment: in folded text it ends in a count. */
static enum form import_guess_lines(const struct buf *b)
{
	const char *s = (const char *)b->data;
	size_t len = b->len;

	while (len) {
		const char *nl = memchr(s, '\n', len);
		size_t n = nl ? (size_t)(nl - s) : len, i;

		/* Lines of other systems end in CR LF. */
		for (i = n; i && (s[i - 1] == '\r' || s[i - 1] == ' '); i--)
			;
		n = i;
		while (i && s[i - 1] >= '0' && s[i - 1] <= '9')
			i--;
		if (n && s[0] != '#')
			return i && i < n && s[i - 1] == ' ' && memchr(s, ';', i) ? FORM_FOLDED
										  : FORM_SCRIPT;
		n = nl ? (size_t)(nl - s) + 1 : len;
		len -= n;
		s += n;
	}
	return FORM_SCRIPT;
}

/* Decides by all lines, as kp has its stacks between lines of a single '!', after a summary that may look like anything. */
static enum form import_guess_form(const struct buf *b)
{
	const char *s = (const char *)b->data, *end = s + b->len;

	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t n = (size_t)((nl ? nl : end) - s);

		if ((n == 1 || (n == 2 && s[1] == '\r')) && s[0] == '!')
			return FORM_KP;
		s += n + (nl != NULL);
	}
	return import_guess_lines(b);
}

static int import_parse(const struct cmd_import_options *o, enum form form, const struct buf *b,
			struct import *i, struct import_stats *stats, struct err *e)
{
	const struct import_text text = { (const char *)b->data, b->len };
	enum import_first first = o->no_comm ? IMPORT_FIRST_IS_FRAME : IMPORT_FIRST_IS_COMM;
	struct err why = { 0 };
	int ret;

	if (form == FORM_FOLDED)
		ret = import_folded(text, first, import_add, i, stats, &why);
	else if (form == FORM_KP)
		ret = import_kp(text, import_add, i, stats, &why);
	else
		ret = import_script(text, import_add, i, stats, &why);
	/* The guess was the last of the forms. */
	if (ret == -ENODATA && form == FORM_SCRIPT && !o->form)
		return err_set(e, ENODATA,
			       "%s: has no stacks: neither lines like \"task;main;work "
			       "12\" nor what `perf script` or kp print",
			       o->input);
	return ret ? err_set(e, -ret, "%s: %s", o->input, why.code ? why.text : import_error(ret))
		   : 0;
}

/* -- directories --------------------------------------------------------------------------- */

static bool import_is_directory(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int import_is_prof(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 5 && !strcmp(d->d_name + n - 5, ".prof");
}

/* Reads a regular file; b is emptied before. -ENOENT if there is none. */
static int import_read_part(struct buf *b, const char *dir, const char *name, struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_close int fd = -1;
	struct stat st;

	b->len = 0;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return err_nomem(e);
	/* A FIFO would block. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, EINVAL, "%s: is not a regular file", path);
	return file_read_rest(b, fd, IMPORT_MAX_BYTES, path, e);
}

static int import_parse_parts(const char *dir, struct dirent **entry, size_t n, struct import *i,
			      struct import_stats *stats, struct err *e)
{
	struct import_iprof *parser = NULL;
	struct buf symbols, text;
	struct err none = { 0 };
	uint64_t ignored;
	int ret;

	buf_init(&symbols);
	buf_init(&text);
	*stats = (struct import_stats){ 0 };
	ret = import_read_part(&symbols, dir, IMPORT_IPROF_SYMBOLS, &none);
	if (ret == -ENOENT)
		fprintf(stderr,
			"kvmprof: %s has no " IMPORT_IPROF_SYMBOLS
			": functions of the kernel have no names\n",
			dir);
	if (ret == -ENOENT)
		ret = 0;
	else if (ret)
		*e = none;
	if (!ret)
		ret = import_iprof_create(
			&parser, (struct import_text){ (const char *)symbols.data, symbols.len },
			&ignored, e);
	if (!ret && ignored)
		fprintf(stderr,
			"kvmprof: %s/" IMPORT_IPROF_SYMBOLS ": skipped %" PRIu64
			" lines that are not functions\n",
			dir, ignored);
	for (size_t k = 0; k < n && !ret; k++) {
		ret = import_read_part(&text, dir, entry[k]->d_name, e);
		if (ret)
			break;
		ret = import_iprof(parser, entry[k]->d_name,
				   (struct import_text){ (const char *)text.data, text.len },
				   import_add, i, stats);
		if (ret)
			err_set(e, -ret, "%s/%s: %s", dir, entry[k]->d_name, import_error(ret));
	}
	if (!ret && !stats->samples)
		ret = err_set(e, ENODATA, "%s: its files have no counts (lines like \"0x2d6 12\")",
			      dir);
	import_iprof_destroy(parser);
	buf_deinit(&symbols);
	buf_deinit(&text);
	return ret;
}

static int import_parse_directory(const char *dir, struct import *i, struct import_stats *stats,
				  struct err *e)
{
	struct dirent **entry = NULL;
	int n = scandir(dir, &entry, import_is_prof, alphasort), ret = 0;

	if (n < 0)
		return err_set(e, errno, "%s: cannot read: %s", dir, strerror(errno));
	if (!n)
		ret = err_set(e, ENODATA,
			      "%s: has no files that end in .prof, as `export -F iprof` makes them",
			      dir);
	else if ((unsigned int)n > IMPORT_MAX_FILES)
		ret = err_set(e, E2BIG, "%s: has more than %u files", dir, IMPORT_MAX_FILES);
	else
		ret = import_parse_parts(dir, entry, (size_t)n, i, stats, e);
	for (int k = 0; k < n; k++)
		free(entry[k]);
	free(entry);
	return ret;
}

/* -- command ------------------------------------------------------------------------------- */

static void import_print_facts(const struct cmd_import_options *o, const struct import_stats *st,
			       const struct import_facts *f)
{
	fprintf(stderr, "kvmprof: imported %" PRIu64 " samples (event", f->samples);
	for (unsigned int k = 0; k < f->nevents; k++)
		fprintf(stderr, "%s %s", k ? "," : f->nevents > 1 ? "s" : "", f->event[k].name);
	fprintf(stderr, "), %zu functions of %zu DSOs\n", f->functions, f->dsos);
	if (f->other)
		fprintf(stderr,
			"kvmprof: %s: left out %" PRIu64
			" samples of further events: a profile has at "
			"most %u events; --event NAME imports one of the first\n",
			o->input, f->other, PROFILE_MAX_EVENTS);
	if (st->broken)
		fprintf(stderr,
			"kvmprof: %s: %" PRIu64
			" samples have a period of 2^63 or more, which no counter "
			"gives; they count as 1\n",
			o->input, st->broken);
	if (f->moved)
		fprintf(stderr,
			"kvmprof: %s: %" PRIu64
			" samples have offsets that no file of this size has; they have "
			"others here\n",
			o->input, f->moved);
	if (st->ignored)
		fprintf(stderr,
			"kvmprof: %s: skipped %" PRIu64
			" lines that are not stacks, first line %" PRIu64 "\n",
			o->input, st->ignored, st->first_ignored);
	if (st->bare)
		fprintf(stderr, "kvmprof: %s: left out %" PRIu64 " samples without a stack\n",
			o->input, st->bare);
	if (f->cut || st->dropped)
		fprintf(stderr, "kvmprof: %s: cut %" PRIu64 " stacks deeper than %u frames\n",
			o->input, f->cut, STACK_MAX_FRAMES);
}

static int import_write_profile(const struct cmd_import_options *o, struct import *i,
				const struct import_stats *st, struct err *e)
{
	struct err note = { 0 };
	struct sink_perfdata_options opt = o->sink;
	struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
				     .nevents = 1,
				     .vcpus = 1,
				     .hostname = "imported",
				     .argc = o->argc,
				     .argv = o->argv };
	struct import_facts facts;
	struct sink *sink;
	int ret;

	opt.note = &note;
	ret = perfdata_sink_create(&sink, &opt, e);
	if (ret)
		return ret;
	ret = import_write(i, sink, &info, &facts, e);
	if (!ret)
		import_print_facts(o, st, &facts);
	if (!ret && note.code)
		fprintf(stderr, "kvmprof: %s\n", note.text);
	sink->ops->destroy(sink);
	return ret;
}

static int import_directory(const struct cmd_import_options *o, struct err *e)
{
	struct import_options opt = o->import;
	struct import_stats stats;
	struct import *i = NULL;
	int ret;

	if (!import_is_directory(o->input))
		return err_set(e, ENOTDIR, "%s: is not a directory, as `export -F iprof` makes one",
			       o->input);
	opt.counts = true;
	ret = import_create(&i, &opt, e);
	ret = ret ? ret : import_parse_directory(o->input, i, &stats, e);
	ret = ret ? ret : import_write_profile(o, i, &stats, e);
	import_destroy(i);
	return ret;
}

static int import_text(const struct cmd_import_options *o, struct err *e)
{
	struct import_options opt = o->import;
	struct import_stats stats;
	struct import *i = NULL;
	struct buf text;
	enum form form;
	int ret;

	if (o->form == FORM_IPROF || (!o->form && import_is_directory(o->input)))
		return import_directory(o, e);
	buf_init(&text);
	ret = import_read_input(&text, o->input, e);
	ret = ret ? ret : import_check_text(o->input, &text, e);
	form = ret || o->form ? o->form : import_guess_form(&text);
	opt.counts = form != FORM_SCRIPT;
	ret = ret ? ret : import_create(&i, &opt, e);
	ret = ret ? ret : import_parse(o, form, &text, i, &stats, e);
	buf_deinit(&text);
	ret = ret ? ret : import_write_profile(o, i, &stats, e);
	import_destroy(i);
	return ret;
}

static int parse_form(void *at, char *arg, struct err *e)
{
	struct cmd_import_options *o = at;

	(void)e;
	o->form = !strcmp(arg, "folded")	? FORM_FOLDED
		  : !strcmp(arg, "perf-script") ? FORM_SCRIPT
		  : !strcmp(arg, "kp")		? FORM_KP
		  : !strcmp(arg, "iprof")	? FORM_IPROF
						: FORM_GUESS;
	return o->form ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct cmd_import_options

static const struct option_row rows[] = {
	{ "output", 'o', "PATH", "the profile (default: perf.data, a directory)",
	  OPTION_TEXT_OF(sink.path, "a path") },
	{ "format", 0, "FORM",
	  "folded: \"task;main;work 12\", as stackcollapse scripts\n"
	  "write it; perf-script: what `perf script` prints; kp:\n"
	  "stacks between '!' as stap and DTrace scripts print them;\n"
	  "iprof: a directory of counts by image and offset\n"
	  "(default: by the text's first lines; iprof for a directory)",
	  OPTION_CALL(parse_form, "folded, perf-script, kp or iprof") },
	{ "no-comm", 0, NULL, "folded: the first frame is not a task's name",
	  OPTION_PUT(no_comm, true) },
	{ "kernel", 0, NULL,
	  "folded: all functions are the kernel's (default: those\n"
	  "marked _[k])",
	  OPTION_PUT(import.kernel, true) },
	{ "event", 0, "NAME",
	  "what was counted (default: what the text says, or\n"
	  "samples); wall: weights are ns. If the text has\n"
	  "several events: only this one",
	  OPTION_TEXT(import.event) },
	{ "single-file", 0, NULL, "one file, names in the build-id cache only",
	  OPTION_PUT(sink.single_file, true) },
	{ "buildid-dir", 0, "DIR",
	  "perf's build-id cache (default: ~/.debug), where perf\n"
	  "looks for the names of programs",
	  OPTION_TEXT_OF(sink.buildid_dir, "a directory") },
	{ "no-buildid-cache", 0, NULL, "leave it alone", OPTION_PUT(sink.no_buildid_cache, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof import [OPTIONS] FILE|DIR|-\n"
		 "\n"
		 "Make a profile of stacks that other tools wrote as text, for kvmprof and perf.\n"
		 "\n",
	.after = "\n"
		 "Addresses are made up. Folded counts of up to a million in total become\n"
		 "samples; larger ones become weights.\n",
	.rows = rows,
};

int cmd_import(int argc, char **argv)
{
	struct cmd_import_options o = { .argc = argc, .argv = argv };
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (optind + 1 != argc)
		return cmd_wrong(argv, "needs one file or directory to read, or -");
	o.input = argv[optind];
	return cmd_status(import_text(&o, &e), &e);
}
