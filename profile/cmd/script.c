/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/digits.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "profile/cmd/common.h"
#include "symbolizer/core/demangle.h"
#include "profile/format/names/reader.h"
#include "profile/analyse/stacks/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OUT_CHUNK (1u << 20)
#define SCRIPT_WIDEST 3u  /* bytes that one byte of a name becomes at most: U+FFFD */
#define LINE_SLOTS 32768u /* power of two */
#define LINE_BYTES 96u	  /* lines of this length at most are kept */

/* The line of a frame as it was printed last; two cache lines. */
struct script_line {
	char text[LINE_BYTES];
	uint64_t ip;
	uint32_t space; /* user space; the kernel's space for a kernel frame */
	uint32_t stamp; /* names_stamp() at that time */
	uint8_t owner;
	bool kernel, interrupted, settled;
	uint8_t len; /* 0: the slot is empty */
} __attribute__((aligned(128)));

struct script_command {
	struct reader in;
	struct selection_use selection;
	struct srcline *lines; /* NULL: not asked for */
	bool full_path, json;
	struct display_names display;
	struct buf out;
	const char *event;
	struct script_line *line; /* LINE_SLOTS; owned */
};

/* -- text ----------------------------------------------------------------------------- */

/* Returns whether all bytes are printable ASCII: eight at a time, as this is run for each frame. */
static bool is_plain(const char *s, size_t len)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t w;

	for (; len >= sizeof(w); s += sizeof(w), len -= sizeof(w)) {
		memcpy(&w, s, sizeof(w));
		/* Bit 7 of a byte is set by one above 0x7f, below 0x20 (a borrow), or of 0x7f; a false one needs a true one. */
		if ((w | (w - 0x20 * ones) | ((w ^ 0x7f * ones) - ones)) & 0x80 * ones)
			return false;
	}
	for (; len; s++, len--)
		if (*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/*
 * Names come out of files: one line each, nothing that a terminal would obey, and UTF-8. `dst` has room for
 * SCRIPT_WIDEST * len + 1 bytes.
 */
static char *script_put_text(char *dst, const char *s, size_t len)
{
	if (is_plain(s, len))
		return mempcpy(dst, s, len);
	return dst + utf8_clean(dst, SCRIPT_WIDEST * len + 1, s);
}

static void script_put_place(struct script_command *s, const struct line_frame *f,
			     const char *after)
{
	const char *file = s->full_path && f->file ? f->file : srcline_basename(f);
	char *p = (char *)buf_reserve(&s->out, SCRIPT_WIDEST * strlen(file) + 3);

	if (!p)
		return;
	memcpy(p, "  ", 2);
	s->out.len += (size_t)(script_put_text(p + 2, file, strlen(file)) - p);
	buf_printf(&s->out, ":%u%s\n", f->line, after);
}

/* As perf does: the address and the offset are those of the function around. */
static void script_put_inlined(struct script_command *s, const struct perfdata_frame *f,
			       const struct name *name, uint64_t off,
			       const struct line_frame *frame)
{
	const char *function = frame->function ? frame->function : "[unknown]";
	char *p;

	buf_printf(&s->out, "\t%16" PRIx64 " ", f->ip);
	p = (char *)buf_reserve(&s->out, SCRIPT_WIDEST * strlen(function) + 1);
	if (!p)
		return;
	s->out.len += (size_t)(script_put_text(p, function, strlen(function)) - p);
	if (name->symbol)
		buf_printf(&s->out, "+0x%" PRIx64, off);
	buf_u8(&s->out, '\n');
	script_put_place(s, frame, " (inlined)");
}

/* Returns the slot of a frame's line. */
static struct script_line *line_slot(const struct script_command *s, struct names_view view,
				     const struct perfdata_frame *f)
{
	const uint64_t space = f->kernel ? view.kernel : view.user;
	const uint64_t hash = (f->ip ^ space << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return &s->line[hash >> 40 & (LINE_SLOTS - 1)];
}

/* Appends the line of a frame if it was printed before and its name cannot have changed. */
static bool script_put_known(struct script_command *s, struct names_view view,
			     const struct perfdata_frame *f)
{
	const struct script_line *l = line_slot(s, view, f);
	uint8_t *p;

	if (!l->len || l->ip != f->ip || l->space != (f->kernel ? view.kernel : view.user) ||
	    l->owner != f->owner || l->kernel != f->kernel || l->interrupted != f->interrupted ||
	    (!l->settled && l->stamp != names_stamp(s->in.names)))
		return false;
	p = buf_reserve(&s->out, LINE_BYTES);
	if (p) {
		/* In pieces, because compilers copy this many bytes at once by a slow instruction. */
		for (size_t i = 0; i < LINE_BYTES; i += 32)
			memcpy(p + i, l->text + i, 32);
		s->out.len += l->len;
	}
	return true;
}

static void script_keep(struct script_command *s, struct names_view view,
			const struct perfdata_frame *f, bool settled, const char *text, size_t len)
{
	struct script_line *l = line_slot(s, view, f);

	if (len > LINE_BYTES)
		return;
	*l = (struct script_line){ .ip = f->ip,
				   .space = f->kernel ? view.kernel : view.user,
				   .stamp = names_stamp(s->in.names),
				   .owner = f->owner,
				   .kernel = f->kernel,
				   .interrupted = f->interrupted,
				   .settled = settled,
				   .len = (uint8_t)len };
	memcpy(l->text, text, len);
}

/* Appends "\t%16lx sym+0xoff (dso)\n", and what is known of the source lines. */
static void script_put_frame(struct script_command *s, struct names_view view,
			     const struct perfdata_frame *f)
{
	uint64_t addr, line_addr;
	struct srcline_result at = { 0 };
	struct name name;
	const char *sym;
	char hex[DIGITS_HEX], *line, *p;
	size_t n, sym_len, dso_len;

	if (!s->lines && script_put_known(s, view, f))
		return;
	addr = names_lookup_frame(s->in.names, view, f, s->in.p->ours, &name);
	line_addr = addr;
	if (s->lines && f->kernel && names_to_first_kernel(&name, &line_addr))
		at = srcline_of(s->lines, line_addr);
	for (unsigned int i = 0; i + 1 < at.n; i++)
		script_put_inlined(s, f, &name, names_shown_off(&name) + (f->ip - addr),
				   &at.frame[i]);
	sym = name.symbol ? demangle_shown(&s->display, name.symbol, f->kernel) : "[unknown]";
	sym_len = strlen(sym);
	dso_len = strlen(name.dso);
	p = line = (char *)buf_reserve(&s->out, SCRIPT_WIDEST * (sym_len + dso_len) + 48);
	if (!line)
		return;
	n = digits_hex(hex, f->ip + name.to_file);
	*p++ = '\t';
	memset(p, ' ', 16);
	memcpy(p + 16 - n, hex, n);
	p += 16;
	*p++ = ' ';
	p = script_put_text(p, sym, sym_len);
	if (name.symbol) {
		memcpy(p, "+0x", 3);
		p += 3 + digits_hex(p + 3, names_shown_off(&name) + (f->ip - addr));
	}
	memcpy(p, " (", 2);
	p = script_put_text(p + 2, name.dso, dso_len);
	memcpy(p, ")\n", 2);
	script_keep(s, view, f, name.settled, line, (size_t)(p + 2 - line));
	s->out.len += (size_t)(p + 2 - line);
	if (at.n && at.frame[at.n - 1].line)
		script_put_place(s, &at.frame[at.n - 1], "");
}

/*
 * Appends the line of a sample, "%s %5u [%03d] %5lu.%06lu: %10lu %s: \n": task, its number,
 * processor, time, weight and event.
 */
static void script_put_head(struct script_command *s, const struct perfdata_record *r)
{
	const char *comm = tasks_text(s->in.tasks, tasks_name(s->in.tasks, r->tid));
	const size_t comm_len = strlen(comm), event_len = strlen(s->event);
	char *line = (char *)buf_reserve(&s->out, comm_len + event_len + 5 * DIGITS_DEC + 16), *p;

	if (!line)
		return;
	p = mempcpy(line, comm, comm_len);
	*p++ = ' ';
	p = digits_put(p, r->tid, 5, ' ');
	*p++ = ' ';
	if (s->in.p->has_cpu) {
		*p++ = '[';
		if ((int32_t)r->cpu < 0)
			p += sprintf(p, "%03" PRId32, (int32_t)r->cpu);
		else
			p = digits_put(p, r->cpu, 3, '0');
		p = mempcpy(p, "] ", 2);
	}
	p = digits_put(p, r->time_ns / 1000000000u, 5, ' ');
	*p++ = '.';
	p = digits_put(p, r->time_ns % 1000000000u / 1000u, 6, '0');
	p = mempcpy(p, ": ", 2);
	p = digits_put(p, r->sample.period, 10, ' ');
	*p++ = ' ';
	p = mempcpy(p, s->event, event_len);
	p = mempcpy(p, ": \n", 3);
	s->out.len += (size_t)(p - line);
}

static void script_put_sample(struct script_command *s, const struct perfdata_record *r)
{
	struct names_view view = names_view(s->in.names, r->pid);
	struct perfdata_walk walk;
	struct perfdata_frame f;

	script_put_head(s, r);
	perfdata_walk_begin(&walk, r);
	while (perfdata_walk_next(&walk, &f))
		if (selection_frame(s->selection.f, &f))
			script_put_frame(s, view, &f);
	buf_u8(&s->out, '\n');
}

/* -- JSON ------------------------------------------------------------------------------ */

static void script_json_place(const struct script_command *s, struct json_writer *w,
			      const struct line_frame *f)
{
	json_put(w, "file", s->full_path && f->file ? f->file : srcline_basename(f), "line",
		 f->line);
}

static void script_json_frame(struct script_command *s, struct json_writer *w,
			      struct names_view view, const struct perfdata_frame *f)
{
	struct srcline_result at = { 0 };
	struct name name;
	uint64_t addr = names_lookup_frame(s->in.names, view, f, s->in.p->ours, &name);
	uint64_t line_addr = addr;

	if (s->lines && f->kernel && names_to_first_kernel(&name, &line_addr))
		at = srcline_of(s->lines, line_addr);
	for (unsigned int i = 0; i + 1 < at.n; i++) {
		json_object_begin(w, NULL);
		json_hex(w, "address", f->ip);
		json_put(w, "symbol", at.frame[i].function, "inlined", json_of_bool(true));
		script_json_place(s, w, &at.frame[i]);
		json_object_end(w);
	}
	json_object_begin(w, NULL);
	json_hex(w, "address", f->ip + name.to_file);
	json_str(w, "symbol",
		 name.symbol ? demangle_shown(&s->display, name.symbol, f->kernel) : NULL);
	if (name.symbol)
		json_u64(w, "offset", names_shown_off(&name) + (f->ip - addr));
	json_put(w, "dso", name.dso, "kernel", json_of_bool(f->kernel));
	if (at.n && at.frame[at.n - 1].line)
		script_json_place(s, w, &at.frame[at.n - 1]);
	json_object_end(w);
}

/* Appends one line with an object. */
static void script_json_sample(struct script_command *s, const struct perfdata_record *r)
{
	struct names_view view = names_view(s->in.names, r->pid);
	struct perfdata_walk walk;
	struct perfdata_frame f;
	struct json_writer w;

	json_begin(&w, &s->out);
	json_object_begin(&w, NULL);
	json_put(&w, "comm", tasks_text(s->in.tasks, tasks_name(s->in.tasks, r->tid)), "pid",
		 json_of_i64((int32_t)r->pid), "tid", json_of_i64((int32_t)r->tid));
	if (s->in.p->has_cpu)
		json_i64(&w, "cpu", (int32_t)r->cpu);
	json_put(&w, "time_ns", r->time_ns, "weight", r->sample.period, "event", s->event);
	json_array_begin(&w, "frames");
	perfdata_walk_begin(&walk, r);
	while (perfdata_walk_next(&walk, &f))
		if (selection_frame(s->selection.f, &f))
			script_json_frame(s, &w, view, &f);
	json_array_end(&w);
	json_object_end(&w);
	buf_u8(&s->out, '\n');
}

/* -- command ---------------------------------------------------------------------------- */

static int script_flush(struct script_command *s, struct err *e)
{
	int ret;

	if (s->out.failed)
		return err_nomem(e);
	ret = file_write_all(STDOUT_FILENO, s->out.data, s->out.len);
	s->out.len = 0;
	return ret ? err_set(e, -ret, "cannot write to standard output: %s", strerror(-ret)) : 0;
}

/* Returns 1 if the selection passes a sample, 0 if not, or -ENOMEM. */
static int script_passes(struct script_command *s, const struct perfdata_record *r)
{
	struct chain chain;

	if (!selection_sample(&s->selection, r))
		return 0;
	if (!selection_needs_chain(s->selection.f))
		return 1;
	chain = chain_of(r, s->in.names);
	return selection_chain(&s->selection, &chain, s->in.p->ours);
}

static int print_samples(struct script_command *s, struct err *e)
{
	struct perfdata_record r;
	int ret, passes;

	while ((ret = reader_next(&s->in, &r, e)) > 0) {
		passes = r.kind == PERFDATA_SAMPLE ? script_passes(s, &r) : 0;
		if (passes < 0) {
			ret = err_nomem(e);
			break;
		}
		if (passes && s->json)
			script_json_sample(s, &r);
		else if (passes)
			script_put_sample(s, &r);
		if ((s->out.len >= OUT_CHUNK || s->out.failed) && (ret = script_flush(s, e)))
			break;
	}
	return ret ? ret : script_flush(s, e);
}

struct script_options {
	const char *input, *buildid_dir, *event;
	uint32_t epoch;
	struct selection selection;
	bool srcline, full_path, no_demangle, json;
	struct debuginfo_places places;
};

static int script_print(struct script_options *o, struct err *e)
{
	const struct reader_options from = { .input = o->input,
					     .event = o->event,
					     .epoch = o->epoch,
					     .buildid_dir = o->buildid_dir };
	struct script_command *s = calloc(1, sizeof(*s));
	struct selection_window window;
	char note[NAMES_NOTE_MAX];
	int ret;

	if (!s)
		return err_nomem(e);
	s->line = aligned_alloc(sizeof(*s->line), LINE_SLOTS * sizeof(*s->line));
	if (s->line)
		memset(s->line, 0, LINE_SLOTS * sizeof(*s->line));
	else {
		free(s);
		return err_nomem(e);
	}
	demangle_names_init(&s->display, o->no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	ret = reader_open(&s->in, &from, e);
	if (!ret)
		ret = selection_set_window(&o->selection, s->in.p, o->input, o->buildid_dir,
					   &window, e);
	if (!ret && o->srcline)
		ret = cmd_debuginfo_open(&s->lines, &o->places, s->in.p, e);
	if (!ret) {
		s->in.lines = s->lines;
		selection_use_init(&s->selection, &o->selection, s->in.names, s->in.tasks,
				   &s->display);
		s->full_path = o->full_path;
		s->json = o->json;
		s->event = s->in.p->event[0] ? s->in.p->event : "event";
		if (s->in.p->partial)
			fprintf(stderr, "kvmprof: %s: %s\n", o->input, s->in.p->message);
		ret = print_samples(s, e);
		names_note(s->in.names, note);
		if (note[0])
			fprintf(stderr, "kvmprof: %s: %s\n", o->input, note);
		ret = ret ? ret : reader_need_samples(&s->in, o->input, e);
		ret = ret ? ret : selection_missed(&s->selection, e);
	}
	selection_use_deinit(&s->selection);
	srcline_destroy(s->lines);
	demangle_names_deinit(&s->display);
	reader_close(&s->in);
	buf_deinit(&s->out);
	free(s->line);
	free(s);
	return ret;
}

/* perf's way to ask: a list of +srcline and +inline, which is one thing here. */
static int parse_fields(void *at, char *arg, struct err *e)
{
	struct script_options *o = at;
	char *save = NULL;

	(void)e;
	for (char *f = strtok_r(arg, ",", &save); f; f = strtok_r(NULL, ",", &save)) {
		if (strcmp(f, "+srcline") && strcmp(f, "+inline"))
			return -EINVAL;
		o->srcline |= !strcmp(f, "+srcline");
	}
	return o->srcline ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct script_options

static const struct option_row rows[] = {
	CMD_INPUT(input),
	CMD_BUILDID_DIR(buildid_dir),
	CMD_NO_DEMANGLE(no_demangle),
	{ "srcline", 0, NULL,
	  "below each kernel frame its source line, and above it the\n"
	  "functions inlined there, as `perf script -F +srcline` does",
	  OPTION_PUT(srcline, true) },
	{ "fields", 'F', "+srcline", "the same",
	  OPTION_CALL(parse_fields,
		      "+srcline or +srcline,+inline: the other fields are always the same") },
	{ "full-source-path", 0, NULL, "paths of source files instead of their names",
	  OPTION_PUT(full_path, true) },
	OPTION_ROWS(cmd_debuginfo_rows, places),
	{ "json", 0, NULL, "one JSON object on a line for each sample", OPTION_PUT(json, true) },
	OPTION_HEADING("\nWhich samples:\n"),
	CMD_EVENT(event),
	CMD_EPOCH(epoch),
	SELECTION_ROWS(selection),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof script [OPTIONS] [PROFILE]\n"
		 "\n"
		 "Every sample as text, in the form that `perf script` prints and flame graph\n"
		 "tools read: a line for the sample, a line for each frame, innermost first.\n"
		 "\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

int cmd_script(int argc, char **argv)
{
	static struct script_options o = { .input = "perf.data" }; /* large lists */
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (selection_check(&o.selection, &e))
		return cmd_wrong(argv, e.text);
	o.places.cache_dir = o.buildid_dir;
	status = cmd_status(script_print(&o, &e), &e);
	selection_deinit(&o.selection);
	return status;
}
