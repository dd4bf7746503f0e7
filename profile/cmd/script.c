/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/cmd/common.h"
#include "profile/cmd/debuginfo.h"
#include "symbolizer/core/display_name.h"
#include "profile/names/names.h"
#include "profile/perfdata/read.h"
#include "profile/stacks/slices.h"
#include "profile/names/tasks.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OUT_CHUNK (1u << 20)

struct script {
	struct perfdata *p;
	struct names *n;
	struct srcline *lines; /* NULL: not asked for */
	bool full_path;
	struct display_names display;
	struct buf out;
	const char *event;
	struct tasks *tasks;
};

static void usage(FILE *f)
{
	fputs("Usage: kvmprof script [OPTIONS]\n"
	      "\n"
	      "Every sample as text, in the form that `perf script` prints and flame graph\n"
	      "tools read: a line for the sample, a line for each frame, innermost first.\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "      --phase NAME       samples of this phase of a boot, or from this marker to\n"
	      "                         the next: see `kvmprof report --phase'\n"
	      "      --no-demangle      names of C++ and Rust functions as they are\n"
	      "      --srcline          below each kernel frame its source line, and above it the\n"
	      "                         functions inlined there, as `perf script -F +srcline` "
	      "does\n"
	      "  -F, --fields +srcline  the same\n"
	      "      --full-source-path paths of source files instead of their "
	      "names\n" CMD_DEBUGINFO_USAGE "  -h, --help             this text\n",
	      f);
}

/* -- text ----------------------------------------------------------------------------- */

/* Names come out of files: one line each, nothing that a terminal would obey. */
static char *put_text(char *dst, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		dst[i] = (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
	return dst + len;
}

/* Writes at most 16 digits, no terminator; returns how many. */
static size_t hex_text(char *out, uint64_t v)
{
	static const char digit[] = "0123456789abcdef";
	size_t n = v ? (67 - (size_t)__builtin_clzll(v)) / 4 : 1;

	for (size_t i = 0; i < n; i++)
		out[i] = digit[v >> (4 * (n - 1 - i)) & 15];
	return n;
}

static void put_place(struct script *s, const struct line_frame *f, const char *after)
{
	const char *file = s->full_path && f->file ? f->file : srcline_basename(f);
	char *p = (char *)buf_reserve(&s->out, strlen(file) + 2);

	if (!p)
		return;
	memcpy(p, "  ", 2);
	put_text(p + 2, file, strlen(file));
	s->out.len += strlen(file) + 2;
	buf_printf(&s->out, ":%u%s\n", f->line, after);
}

/* As perf does: the address and the offset are those of the function around. */
static void put_inlined(struct script *s, const struct perfdata_frame *f, const struct name *name,
			uint64_t off, const struct line_frame *frame)
{
	const char *function = frame->function ? frame->function : "[unknown]";
	char *p;

	buf_printf(&s->out, "\t%16" PRIx64 " ", f->ip);
	p = (char *)buf_reserve(&s->out, strlen(function));
	if (!p)
		return;
	put_text(p, function, strlen(function));
	s->out.len += strlen(function);
	if (name->symbol)
		buf_printf(&s->out, "+0x%" PRIx64, off);
	buf_u8(&s->out, '\n');
	put_place(s, frame, " (inlined)");
}

/* "\t%16lx sym+0xoff (dso)": the hot line, without printf. */
static void put_frame(struct script *s, struct names_view view, const struct perfdata_frame *f)
{
	uint64_t addr = f->innermost || s->p->ours || !f->ip ? f->ip : f->ip - 1;
	struct srcline_result at = { 0 };
	struct name name;
	const char *sym;
	char hex[16], *line, *p;
	size_t n, sym_len, dso_len;

	names_lookup_in(s->n, view, f->kernel, addr, &name);
	if (s->lines && f->kernel)
		at = srcline_of(s->lines, addr);
	for (unsigned int i = 0; i + 1 < at.n; i++)
		put_inlined(s, f, &name, name.off + (f->ip - addr), &at.frame[i]);
	sym = name.symbol ? display_name(&s->display, name.symbol, f->kernel) : "[unknown]";
	sym_len = strlen(sym);
	dso_len = strlen(name.dso);
	p = line = (char *)buf_reserve(&s->out, sym_len + dso_len + 48);
	if (!line)
		return;
	n = hex_text(hex, f->ip + name.to_file);
	*p++ = '\t';
	memset(p, ' ', 16);
	memcpy(p + 16 - n, hex, n);
	p += 16;
	*p++ = ' ';
	p = put_text(p, sym, sym_len);
	if (name.symbol) {
		memcpy(p, "+0x", 3);
		p += 3 + hex_text(p + 3, name.off + (f->ip - addr));
	}
	memcpy(p, " (", 2);
	p = put_text(p + 2, name.dso, dso_len);
	memcpy(p, ")\n", 2);
	s->out.len += (size_t)(p + 2 - line);
	if (at.n && at.frame[at.n - 1].line)
		put_place(s, &at.frame[at.n - 1], "");
}

static void put_sample(struct script *s, const struct perfdata_record *r)
{
	struct names_view view = names_view(s->n, r->pid);
	struct perfdata_walk walk;
	struct perfdata_frame f;

	buf_printf(&s->out, "%s %5" PRIu32 " ", tasks_text(s->tasks, tasks_name(s->tasks, r->tid)),
		   r->tid);
	if (s->p->has_cpu)
		buf_printf(&s->out, "[%03" PRIu32 "] ", r->cpu);
	buf_printf(&s->out, "%5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n",
		   r->time_ns / 1000000000u, r->time_ns % 1000000000u / 1000u, r->sample.period,
		   s->event);
	perfdata_walk_begin(&walk, r);
	while (perfdata_walk_next(&walk, &f))
		put_frame(s, view, &f);
	buf_u8(&s->out, '\n');
}

/* -- command ---------------------------------------------------------------------------- */

static int push(struct script *s, struct err *e)
{
	int ret;

	if (s->out.failed)
		return err_set(e, ENOMEM, "out of memory");
	ret = file_write_all(STDOUT_FILENO, s->out.data, s->out.len);
	s->out.len = 0;
	return ret ? err_set(e, -ret, "cannot write to standard output: %s", strerror(-ret)) : 0;
}

static int print_samples(struct script *s, struct err *e)
{
	struct perfdata_record r;
	int ret = 0;

	while (!ret && perfdata_next(s->p, &r)) {
		ret = tasks_record(s->tasks, &r, e);
		if (!ret)
			ret = names_record(s->n, &r, e);
		if (!ret && r.kind == PERFDATA_MAP && s->lines)
			srcline_set_map(s->lines, &r);
		if (!ret && r.kind == PERFDATA_SAMPLE)
			put_sample(s, &r);
		if (!ret && (s->out.len >= OUT_CHUNK || s->out.failed))
			ret = push(s, e);
	}
	return ret ? ret : push(s, e);
}

struct options {
	const char *input, *buildid_dir, *phase;
	bool srcline, full_path, no_demangle;
	struct debuginfo_places places;
};

static int open_lines(struct script *s, const struct options *o, struct err *e)
{
	int ret;

	if (!o->srcline)
		return 0;
	ret = srcline_create(&s->lines, &o->places, e);
	if (ret)
		return ret;
	srcline_set_profile(s->lines, s->p);
	s->full_path = o->full_path;
	return cmd_debuginfo_load(s->lines, e);
}

static int script(const struct options *o, struct err *e)
{
	struct script *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	display_names_init(&s->display, !o->no_demangle, false);
	s->tasks = tasks_create();
	ret = s->tasks ? perfdata_open(&s->p, o->input, e) : err_set(e, ENOMEM, "out of memory");
	if (!ret && o->phase)
		ret = slices_set_window(s->p, o->input, o->buildid_dir, o->phase, e);
	if (!ret)
		ret = names_create(&s->n, s->p, o->buildid_dir, e);
	if (!ret)
		ret = open_lines(s, o, e);
	if (!ret) {
		s->event = s->p->event[0] ? s->p->event : "event";
		if (s->p->partial)
			fprintf(stderr, "kvmprof: %s: %s\n", o->input, s->p->message);
		ret = print_samples(s, e);
	}
	srcline_destroy(s->lines);
	display_names_deinit(&s->display);
	names_destroy(s->n);
	tasks_destroy(s->tasks);
	perfdata_close(s->p);
	buf_deinit(&s->out);
	free(s);
	return ret;
}

/* perf's way to ask: a list of +srcline and +inline, which is one thing here. */
static bool take_fields(struct options *o, char *list)
{
	for (char *f = strtok(list, ","); f; f = strtok(NULL, ",")) {
		if (strcmp(f, "+srcline") && strcmp(f, "+inline"))
			return false;
		o->srcline |= !strcmp(f, "+srcline");
	}
	return o->srcline;
}

int cmd_script(int argc, char **argv)
{
	enum { OPT_BUILDID_DIR = 256, OPT_SRCLINE, OPT_FULL, OPT_NO_DEMANGLE, OPT_PHASE };
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "srcline", no_argument, NULL, OPT_SRCLINE },
		{ "full-source-path", no_argument, NULL, OPT_FULL },
		{ "fields", required_argument, NULL, 'F' },
		{ "phase", required_argument, NULL, OPT_PHASE },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		CMD_DEBUGINFO_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = { .input = "perf.data" };
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:F:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
			o.input = optarg;
			break;
		case OPT_BUILDID_DIR:
			o.buildid_dir = o.places.cache_dir = optarg;
			break;
		case OPT_SRCLINE:
			o.srcline = true;
			break;
		case OPT_FULL:
			o.full_path = true;
			break;
		case OPT_NO_DEMANGLE:
			o.no_demangle = true;
			break;
		case 'F':
			if (take_fields(&o, optarg))
				break;
			fputs("kvmprof script: -F takes +srcline and +srcline,+inline only\n",
			      stderr);
			return 2;
		case OPT_PHASE:
			o.phase = optarg;
			break;
		case OPT_DEBUGINFO:
		case OPT_BUILD_ID_MAP:
			cmd_debuginfo_option(&o.places, c, optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			return cmd_wrong_option(argv, c);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kvmprof script: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (isatty(STDERR_FILENO))
		o.places.progress = cmd_debuginfo_progress;
	if (script(&o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}
