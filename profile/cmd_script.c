/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/names.h"
#include "profile/perfdata_read.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OUT_CHUNK (1u << 20)
#define THREAD_SLOTS 4096u	/* power of two; threads beyond share their place: the last name wins */

struct thread_name {
	uint32_t tid;
	bool used;
	char comm[32];
};

struct script {
	struct perfdata *p;
	struct names *n;
	struct buf out;
	const char *event;
	struct thread_name thread[THREAD_SLOTS];
};

static void usage(FILE *f)
{
	fputs("usage: kvmprof script [options]\n"
	      "\n"
	      "Every sample as text, in the form that `perf script` prints and flame graph\n"
	      "tools read: a line for the sample, a line for each frame, innermost first.\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "  -h, --help             this text\n",
	      f);
}

/* -- threads ------------------------------------------------------------------------ */

static struct thread_name *thread_at(struct script *s, uint32_t tid)
{
	return &s->thread[(tid * 0x9e3779b1u) >> 20 & (THREAD_SLOTS - 1)];
}

static void set_comm(struct script *s, const struct perfdata_record *r)
{
	struct thread_name *t = thread_at(s, r->tid);

	t->used = true;
	t->tid = r->tid;
	snprintf(t->comm, sizeof(t->comm), "%s", r->comm);
	for (char *c = t->comm; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

/* perf's names for threads that no record named. */
static void get_comm(struct script *s, uint32_t tid, char *buf, size_t size)
{
	const struct thread_name *t = thread_at(s, tid);

	if (t->used && t->tid == tid)
		snprintf(buf, size, "%s", t->comm);
	else if (tid == 0)
		snprintf(buf, size, "swapper");
	else
		snprintf(buf, size, ":%" PRIu32, tid);
}

/* -- text ----------------------------------------------------------------------------- */

static void put_text(struct buf *b, const char *s)
{
	size_t start = b->len;

	buf_add(b, s, strlen(s));
	/* Names come out of files: one line each, nothing that a terminal would obey. */
	for (size_t i = start; i < b->len; i++)
		if (b->data[i] < 0x20 || b->data[i] == 0x7f)
			b->data[i] = '?';
}

static size_t hex_text(char out[16], uint64_t v)
{
	static const char digit[] = "0123456789abcdef";
	size_t n = v ? (67 - (size_t)__builtin_clzll(v)) / 4 : 1;

	for (size_t i = 0; i < n; i++)
		out[i] = digit[v >> (4 * (n - 1 - i)) & 15];
	return n;
}

/* "\t%16lx sym+0xoff (dso)": the hot line, without printf. */
static void put_frame(struct script *s, uint32_t pid, const struct perfdata_frame *f)
{
	uint64_t addr = f->innermost || s->p->ours || !f->ip ? f->ip : f->ip - 1;
	struct buf *b = &s->out;
	struct name name;
	char hex[16];
	size_t n;

	names_lookup(s->n, pid, f->kernel, addr, &name);
	n = hex_text(hex, f->ip + name.to_file);
	buf_add(b, "\t                ", 17 - n);
	buf_add(b, hex, n);
	buf_u8(b, ' ');
	if (name.symbol) {
		put_text(b, name.symbol->name);
		buf_add(b, "+0x", 3);
		n = hex_text(hex, name.off + (f->ip - addr));
		buf_add(b, hex, n);
	} else {
		put_text(b, "[unknown]");
	}
	buf_add(b, " (", 2);
	put_text(b, name.dso);
	buf_add(b, ")\n", 2);
}

static void put_sample(struct script *s, const struct perfdata_record *r)
{
	struct perfdata_walk walk;
	struct perfdata_frame f;
	char comm[32];

	get_comm(s, r->tid, comm, sizeof(comm));
	buf_printf(&s->out, "%s %5" PRIu32 " [%03" PRIu32 "] %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64
		   " %s: \n",
		   comm, r->tid, r->cpu, r->time_ns / 1000000000u, r->time_ns % 1000000000u / 1000u,
		   r->sample.period, s->event);
	perfdata_walk_begin(&walk, r);
	while (perfdata_walk_next(&walk, &f))
		put_frame(s, r->pid, &f);
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
		if (r.kind == PERFDATA_COMM)
			set_comm(s, &r);
		else if (r.kind == PERFDATA_MAP)
			ret = names_map(s->n, &r, e);
		else if (r.kind == PERFDATA_SAMPLE)
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
	ret = perfdata_open(&s->p, input, e);
	if (!ret)
		ret = names_create(&s->n, s->p, buildid_dir, e);
	if (!ret) {
		s->event = s->p->event[0] ? s->p->event : "event";
		if (s->p->partial)
			fprintf(stderr, "kvmprof: %s: %s\n", input, s->p->message);
		ret = print_samples(s, e);
	}
	names_destroy(s->n);
	perfdata_close(s->p);
	buf_deinit(&s->out);
	free(s);
	return ret;
}

int cmd_script(int argc, char **argv)
{
	enum { OPT_BUILDID_DIR = 256 };
	static const struct option long_options[] = {
		{"input", required_argument, NULL, 'i'},
		{"buildid-dir", required_argument, NULL, OPT_BUILDID_DIR},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *input = "perf.data", *buildid_dir = NULL;
	struct err e = {0};
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
			fprintf(stderr, "kvmprof: script: %s '%s' (try kvmprof script --help)\n",
				c == ':' ? "missing value for" : "unknown option", argv[optind - 1]);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kvmprof: script: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (script(input, buildid_dir, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}
