/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/symbols_at.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/cmd/debuginfo.h"
#include "symbolizer/core/display_name.h"
#include "symbolizer/core/demangle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One of them is set, or none. */
struct source {
	struct lines *own;
	struct srcline *found;
	const char *why; /* neither, as text */
};

void symbols_at_json_text(const char *key, const char *s)
{
	printf("\"%s\":", key);
	if (!s || !*s) {
		printf("null");
		return;
	}
	json_quote_file(stdout, s);
}

static int open_source(struct source *src, const struct symbols_at *s, struct err *e)
{
	struct debuginfo_places places = s->places;
	uint8_t id[LINES_MAX_ALT_ID];
	const char *second = NULL;
	int ret;

	src->why = "";
	if (!places.given && !places.map_file &&
	    lines_open(s->kernel->elf, s->kernel->elf_len, s->path, &src->own, NULL) == 0) {
		(void)lines_alt(src->own, id, &second);
		if (!second)
			return 0;
		/* It needs another one with it, which is a matter of a search. */
		lines_close(src->own);
		src->own = NULL;
		places.given = s->path;
	}
	cmd_debuginfo_show_progress(&places);
	ret = srcline_create(&src->found, &places, e);
	if (ret)
		return ret;
	srcline_set_id(src->found, s->kernel->build_id, s->kernel->build_id_len);
	ret = srcline_load(src->found, e);
	src->why = srcline_why(src->found);
	/* Not to have found any is no failure. */
	if (ret != -ENOENT || places.given || places.map_file)
		return ret;
	err_clear(e);
	return 0;
}

static struct srcline_result lines_at(struct source *src, uint64_t va, struct line_frame *frame)
{
	struct srcline_result r = { .frame = frame };
	struct err e = { 0 };
	int n;

	if (!src->own)
		return srcline_of(src->found, va);
	n = lines_lookup(src->own, va, frame, LINES_MAX_FRAMES, &e);
	r.n = n > 0 ? (unsigned int)n : 0;
	if (n < 0)
		fprintf(stderr, "kvmprof symbols: %s\n", e.text);
	return r;
}

/* As the source has it, unless that was refused; *own is the caller's to free. */
static const char *function_of(const struct symbols_at *s, const struct line_frame *f, char **own)
{
	*own = s->demangle && f->function ? demangle(f->function) : NULL;
	return *own ? *own : f->function;
}

/* -- text ------------------------------------------------------------------------------------ */

/* Names come out of files: nothing that a terminal would obey. */
static void put_plain(const char *s)
{
	for (; *s; s++)
		putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

static void print_frame(const struct symbols_at *s, const struct line_frame *f, const char *symbol)
{
	cleanup_free char *own = NULL;
	const char *function = function_of(s, f, &own);

	fputs("    ", stdout);
	put_plain(function ? function : symbol ? symbol : "?");
	fputs(" at ", stdout);
	put_plain(f->file ? f->file : "?");
	if (f->line)
		printf(":%u", f->line);
	if (f->line && f->column)
		printf(":%u", f->column);
	puts(f->inlined ? " (inlined)" : "");
}

/* name: NULL when there is no symbol. */
static void print_text(const struct symbols_at *s, uint64_t va, const char *name, uint64_t off,
		       const struct srcline_result *r)
{
	printf("%016" PRIx64 " ", va);
	put_plain(name ? name : "?");
	if (name)
		printf("+0x%" PRIx64, off);
	putchar('\n');
	for (unsigned int i = 0; i < r->n; i++)
		print_frame(s, &r->frame[i], r->frame[i].inlined ? NULL : name);
}

/* -- JSON ------------------------------------------------------------------------------------ */

static void print_json(const struct symbols_at *s, uint64_t va, const char *name, uint64_t off,
		       const struct srcline_result *r)
{
	printf("{\"address\":\"0x%" PRIx64 "\",", va);
	symbols_at_json_text("symbol", name);
	if (name)
		printf(",\"offset\":%" PRIu64, off);
	printf(",\"frames\":[");
	for (unsigned int i = 0; i < r->n; i++) {
		const struct line_frame *f = &r->frame[i];
		cleanup_free char *own = NULL;

		printf("%s{", i ? "," : "");
		symbols_at_json_text("function", function_of(s, f, &own));
		putchar(',');
		symbols_at_json_text("file", f->file);
		printf(",\"line\":%u,\"column\":%u,\"inlined\":%s}", f->line, f->column,
		       f->inlined ? "true" : "false");
	}
	printf("]}");
}

static void begin_json(const struct symbols_at *s, const struct source *src)
{
	putchar('{');
	symbols_at_json_text("image", s->path);
	putchar(',');
	symbols_at_json_text("debug_file", src->own ? s->path : srcline_file(src->found));
	putchar(',');
	symbols_at_json_text("no_lines_because", src->why);
	printf(",\"addresses\":[");
}

/* -- interface --------------------------------------------------------------------------------- */

/* A function's name, exactly; else hexadecimal digits. */
static int symbols_at_find(const struct symbols_at *s, const char *text, uint64_t *va,
			   struct err *e)
{
	const struct symbol *sym = symtab_find(s->symbols, text);
	char *end;

	*va = sym ? sym->addr : 0;
	if (sym)
		return 0;
	errno = 0;
	*va = strtoull(text, &end, 16);
	if (*text && !strchr("-+ ", *text) && !*end && !errno)
		return 0;
	return err_set(e, ENOENT,
		       "%s: '%.200s' is neither a function of it nor a hexadecimal address",
		       s->path, text);
}

int symbols_at_print(const struct symbols_at *s, char **address, struct err *e)
{
	struct source src = { 0 };
	struct line_frame frame[LINES_MAX_FRAMES];
	struct display_names names;
	int ret = 0;
	uint64_t va;

	/* Before anything is printed. */
	for (size_t i = 0; ret == 0 && address[i]; i++)
		ret = symbols_at_find(s, address[i], &va, e);
	ret = ret ? ret : open_source(&src, s, e);
	display_names_init(&names, s->demangle ? DEMANGLE_ALL : DEMANGLE_NONE);
	if (ret == 0 && s->json)
		begin_json(s, &src);
	else if (ret == 0 && *src.why)
		fprintf(stderr, "kvmprof symbols: %s%s\n",
			src.own || srcline_file(src.found) ? "" : "no source lines: ", src.why);
	for (size_t i = 0; ret == 0 && address[i]; i++) {
		const struct symbol *sym;
		const char *name;
		struct srcline_result r;
		uint64_t off = 0;

		(void)symbols_at_find(s, address[i], &va, NULL);
		sym = symtab_lookup(s->symbols, va, &off);
		name = sym ? display_name(&names, sym, NAMES_KERNEL) : NULL;
		r = lines_at(&src, va, frame);
		if (s->json && i)
			putchar(',');
		(s->json ? print_json : print_text)(s, va, name, off, &r);
	}
	if (ret == 0 && s->json)
		puts("]}");
	display_names_deinit(&names);
	lines_close(src.own);
	srcline_destroy(src.found);
	return ret;
}
