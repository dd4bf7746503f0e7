/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/names.h"
#include "profile/perfdata_read.h"
#include "profile/tasks.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OUT_CHUNK (1u << 20)

struct script {
	struct perfdata *p;
	struct names *n;
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
	      "  -h, --help             this text\n",
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

/* "\t%16lx sym+0xoff (dso)": the hot line, without printf. */
static void put_frame(struct script *s, struct names_view view, const struct perfdata_frame *f)
{
	uint64_t addr = f->innermost || s->p->ours || !f->ip ? f->ip : f->ip - 1;
	struct name name;
	const char *sym;
	char hex[16], *line, *p;
	size_t n, sym_len, dso_len;

	names_lookup_in(s->n, view, f->kernel, addr, &name);
	sym = name.symbol ? name.symbol->name : "[unknown]";
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
		if (!ret && r.kind == PERFDATA_SAMPLE)
			put_sample(s, &r);
		if (!ret && (s->out.len >= OUT_CHUNK || s->out.failed))
			ret = push(s, e);
	}
	return ret ? ret : push(s, e);
}

static int script(const char *input, const char *buildid_dir, struct err *e)
{
	struct script *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->tasks = tasks_create();
	ret = s->tasks ? perfdata_open(&s->p, input, e) : err_set(e, ENOMEM, "out of memory");
	if (!ret)
		ret = names_create(&s->n, s->p, buildid_dir, e);
	if (!ret) {
		s->event = s->p->event[0] ? s->p->event : "event";
		if (s->p->partial)
			fprintf(stderr, "kvmprof: %s: %s\n", input, s->p->message);
		ret = print_samples(s, e);
	}
	names_destroy(s->n);
	tasks_destroy(s->tasks);
	perfdata_close(s->p);
	buf_deinit(&s->out);
	free(s);
	return ret;
}

int cmd_script(int argc, char **argv)
{
	enum { OPT_BUILDID_DIR = 256 };
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *input = "perf.data", *buildid_dir = NULL;
	struct err e = { 0 };
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
			input = optarg;
			break;
		case OPT_BUILDID_DIR:
			buildid_dir = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			fprintf(stderr, "kvmprof script: %s '%s' (try kvmprof script --help)\n",
				c == ':' ? "missing value for" : "unknown option",
				argv[optind - 1]);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kvmprof script: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (script(input, buildid_dir, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}
