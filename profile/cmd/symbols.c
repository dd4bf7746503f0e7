/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_symbols: `kvmprof symbols`: what a kernel image says about itself, and its names.
 *
 * Works on the file alone: no guest, no /dev/kvm. The table goes to stdout in the
 * form of a System.map, the facts to stderr.
 */
#include "profile/cmd/cmd.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "profile/cmd/common.h"
#include "profile/format/files/debuginfo.h"
#include "profile/format/names/function.h"
#include "profile/record/guest/image_check.h"
#include "profile/record/run/kernel.h"
#include "symbolizer/core/demangle.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/types/btf_types.h"
#include "symbolizer/unwind/orc_format.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct symbols_at {
	const char *path; /* path of the image */
	const struct kimage *kernel;
	const struct symtab *symbols;
	struct debuginfo_places places;
	bool json, demangle;
};

/* Debug information, opened when it is asked for: one of the two is set, or none. */
struct symbols_source {
	const struct symbols_at *at;
	bool opened;
	int ret; /* the result of opening it: 0 or -errno */
	struct err err;
	struct lines *own;
	struct srcline *found;
	const char *why; /* neither, as text */
};

/* One of the addresses to print. */
struct symbols_address {
	uint64_t va;
	struct function function; /* the function that it is in; symbol NULL: none */
	unsigned int of;	  /* how many have its name */
	uint64_t off;
	const char *name; /* as it is shown */
};

/* Returns s, or NULL if it is empty: in JSON that is null. */
static const char *symbols_at_text(const char *s)
{
	return s && *s ? s : NULL;
}

static int open_source(struct symbols_source *src, struct err *e)
{
	const struct symbols_at *s = src->at;
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
	src->why = srcline_reason(src->found);
	/* Not to have found any is no failure. */
	if (ret != -ENOENT || places.given || places.map_file)
		return ret;
	err_clear(e);
	return 0;
}

static int source_ready(struct symbols_source *src, struct err *e)
{
	if (!src->opened)
		src->ret = open_source(src, &src->err);
	src->opened = true;
	return src->ret ? err_set(e, -src->ret, "%s", src->err.text) : 0;
}

/* Implements function_table.lines; addresses are as linked. */
static struct lines *source_lines(void *ctx, enum function_search how, uint64_t *addr)
{
	struct symbols_source *src = ctx;

	(void)how;
	(void)addr;
	if (source_ready(src, NULL))
		return NULL;
	if (src->own)
		return src->own;
	return srcline_file(src->found) ? srcline_lines(src->found) : NULL;
}

static struct srcline_result lines_at(struct symbols_source *src, uint64_t va,
				      struct line_frame *frame)
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

static void print_frame(const struct symbols_at *s, const struct line_frame *f, const char *symbol)
{
	cleanup_free char *own = NULL;
	const char *function = function_of(s, f, &own);

	fputs("    ", stdout);
	utf8_put(stdout, function ? function : symbol ? symbol : "?");
	fputs(" at ", stdout);
	utf8_put(stdout, f->file ? f->file : "?");
	if (f->line)
		printf(":%u", f->line);
	if (f->line && f->column)
		printf(":%u", f->column);
	puts(f->inlined ? " (inlined)" : "");
}

/* Prints which of several functions of a name it is, and its file. */
static void print_which(const struct symbols_address *x)
{
	printf(" (#%u of %u", x->function.number, x->of);
	if (x->function.file) {
		fputs(", ", stdout);
		utf8_put(stdout, x->function.file);
	}
	putchar(')');
}

static void print_text(const struct symbols_at *s, const struct symbols_address *x,
		       const struct srcline_result *r)
{
	printf("%016" PRIx64 " ", x->va);
	utf8_put(stdout, x->name ? x->name : "?");
	if (x->name)
		printf("+0x%" PRIx64, x->off);
	if (x->of > 1)
		print_which(x);
	putchar('\n');
	for (unsigned int i = 0; i < r->n; i++)
		print_frame(s, &r->frame[i], r->frame[i].inlined ? NULL : x->name);
}

/* -- JSON ------------------------------------------------------------------------------------ */

static void put_json_address(struct json_writer *w, const struct symbols_at *s,
			     const struct symbols_address *x, const struct srcline_result *r)
{
	json_object_begin(w, NULL);
	json_put(w, "address", json_address(x->va), "symbol", symbols_at_text(x->name));
	if (x->name)
		json_put(w, "offset", x->off, "number", x->function.number, "of", x->of, "file",
			 symbols_at_text(x->function.file));
	json_array_begin(w, "frames");
	for (unsigned int i = 0; i < r->n; i++) {
		const struct line_frame *f = &r->frame[i];
		cleanup_free char *own = NULL;

		json_put_object(w, NULL, "function", symbols_at_text(function_of(s, f, &own)),
				"file", symbols_at_text(f->file), "line", f->line, "column",
				f->column, "inlined", f->inlined);
	}
	json_array_end(w);
	json_object_end(w);
}

/* -- interface --------------------------------------------------------------------------------- */

/* Reads hexadecimal digits, with or without 0x. */
static bool parse_hex(const char *text, uint64_t *va)
{
	char *end;

	errno = 0;
	*va = strtoull(text, &end, 16);
	return *text && !strchr("-+ ", *text) && !*end && !errno;
}

struct address_list {
	struct symbols_address *at;
	size_t n, cap;
};

static int add_address(struct address_list *l, uint64_t va, const struct symbol *symbol,
		       struct err *e)
{
	if (ARRAY_ROOM(l->at, l->n, l->cap))
		return err_nomem(e);
	l->at[l->n++] = (struct symbols_address){ .va = va, .function = { .symbol = symbol } };
	return 0;
}

/* Adds the functions that the text means, all of them where there are several; else an address. */
static int symbols_at_find(const struct function_table *t, const char *text, struct address_list *l,
			   struct err *e)
{
	struct functions f = { .n = 0 };
	struct function_name parts;
	struct err why = { 0 };
	uint64_t va;
	int ret = function_resolve(t, text, FUNCTION_EACH, &f, &why);

	if (ret && parse_hex(text, &va))
		return add_address(l, va, NULL, e);
	function_name_parse(&parts, text);
	if (ret == -ENOENT && !parts.file[0] && !parts.number)
		return err_set(e, ENOENT,
			       "%s: '%.200s' is neither a function of it nor a hexadecimal address",
			       t->name, text);
	if (ret)
		return err_set(e, -ret, "%s", why.text);
	for (size_t i = 0; !ret && i < f.n; i++)
		ret = add_address(l, f.at[i].symbol->addr, f.at[i].symbol, e);
	function_deinit(&f);
	return ret;
}

/* -- interface --------------------------------------------------------------------------------- */

static void describe(const struct function_table *t, struct display_names *names,
		     struct symbols_address *x)
{
	if (!x->function.symbol)
		x->function.symbol = symtab_lookup(t->symbols, x->va, &x->off);
	if (!x->function.symbol)
		return;
	x->name = demangle_shown(names, x->function.symbol, NAMES_KERNEL);
	x->function.number = function_number(t->symbols, x->function.symbol, &x->of);
	function_locate(t, FUNCTION_WANTED, &x->function);
}

static int print_all(struct symbols_source *src, const struct function_table *t,
		     const struct address_list *l)
{
	const struct symbols_at *s = src->at;
	struct line_frame frame[LINES_MAX_FRAMES];
	struct display_names names;
	struct json_writer w;

	demangle_names_init(&names, s->demangle ? DEMANGLE_ALL : DEMANGLE_NONE);
	json_open(&w);
	json_put(&w, "image", symbols_at_text(s->path), "debug_file",
		 symbols_at_text(src->own ? s->path : srcline_file(src->found)), "no_lines_because",
		 symbols_at_text(src->why));
	json_array_begin(&w, "addresses");
	if (!s->json && *src->why)
		fprintf(stderr, "kvmprof symbols: %s%s\n",
			src->own || srcline_file(src->found) ? "" : "no source lines: ", src->why);
	for (size_t i = 0; i < l->n; i++) {
		struct srcline_result r;

		describe(t, &names, &l->at[i]);
		r = lines_at(src, l->at[i].va, frame);
		if (s->json)
			put_json_address(&w, s, &l->at[i], &r);
		else
			print_text(s, &l->at[i], &r);
	}
	demangle_names_deinit(&names);
	json_array_end(&w);
	return json_close(&w, s->json ? stdout : NULL);
}

/*
 * Prints to stdout. address is a list of functions (profile/format/names/function.h; all of a name that several have) and
 * hexadecimal numbers that ends with NULL; one that is neither fails before anything is printed. Debug information
 * is that of --debuginfo or --build-id-map, else the image's own, else what is found by build id; without any there
 * are functions alone. -errno when what the user gave can't be used.
 */
static int symbols_at_print(const struct symbols_at *s, char **address, struct err *e)
{
	struct symbols_source src = { .at = s };
	const struct function_table table = { s->symbols, s->path, source_lines, &src };
	struct address_list list = { .n = 0 };
	int ret = 0;

	/* Before anything is printed. */
	for (size_t i = 0; ret == 0 && address[i]; i++)
		ret = symbols_at_find(&table, address[i], &list, e);
	ret = ret ? ret : source_ready(&src, e);
	if (ret == 0 && print_all(&src, &table, &list))
		ret = err_nomem(e);
	free(list.at);
	lines_close(src.own);
	srcline_destroy(src.found);
	return ret;
}

struct facts {
	const char *path;
	struct boot_image image;
	struct kimage kernel;
	struct symtab *symbols; /* owned; NULL: none */
	const char *source;
	struct err why;		       /* when there are no symbols */
	struct kallsyms_info kallsyms; /* count 0: not used */
	struct orc *orc;	       /* owned; NULL: none that can be used */
	struct err no_orc;	       /* why */
	uint64_t ready_ns;	       /* from the unpacked image to the table */
	struct btf *btf;	       /* owned; NULL: none */
	struct err no_btf;	       /* why */
	uint64_t btf_ns;	       /* to find and check it */
	uint64_t task_struct_bytes;    /* 0: not known */
};

static void find_types(struct facts *f)
{
	uint64_t start = clock_mono_ns();
	struct types t;

	if (btf_from_image(&f->btf, &f->kernel, f->path, &f->no_btf) < 0)
		return;
	f->btf_ns = clock_mono_ns() - start;
	t = btf_types(f->btf);
	(void)t.size(t.ctx, "task_struct", &f->task_struct_bytes); /* stays 0 */
}

static void find_symbols(struct facts *f)
{
	uint64_t start = clock_mono_ns();

	if (f->kernel.has_symtab) {
		if (kimage_symbols(&f->kernel, &f->symbols, &f->why) == 0)
			f->source = ".symtab";
	} else if (kallsyms_from_image(&f->kernel, f->path, &f->symbols, &f->kallsyms, &f->why) ==
		   0) {
		f->source = "kallsyms";
	}
	f->ready_ns = clock_mono_ns() - start;
}

static void symbols_hex_id(const struct kimage *k, char out[2 * KIMAGE_BUILD_ID_MAX + 1])
{
	out[0] = 0;
	for (unsigned int i = 0; i < k->build_id_len; i++)
		snprintf(out + 2 * i, 3, "%02x", k->build_id[i]);
}

static const char *symbols_kind_of(const struct facts *f)
{
	return f->image.kind == BOOT_BZIMAGE ? "bzImage" : "ELF64";
}

static void print_facts(const struct facts *f, FILE *out)
{
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];

	symbols_hex_id(&f->kernel, id);
	fprintf(out, "image      %s: %s, compression %s\n", f->path, symbols_kind_of(f),
		f->image.compression ? f->image.compression : "none");
	fprintf(out, "banner     %s\n", f->kernel.banner[0] ? f->kernel.banner : "none");
	fprintf(out, "build id   %s\n", id[0] ? id : "none");
	fprintf(out, "text       0x%016" PRIx64 " to 0x%016" PRIx64 ", end 0x%016" PRIx64 "\n",
		f->kernel.text, f->kernel.etext, f->kernel.end);
	if (f->symbols)
		fprintf(out, "names      %zu from %s in %.1f ms\n", symtab_count(f->symbols),
			f->source, (double)f->ready_ns / 1e6);
	else
		fprintf(out, "names      none: %s\n", f->why.text);
	if (f->kallsyms.count)
		fprintf(out,
			"kallsyms   %s\n           names at 0x%" PRIx64 ", tokens at 0x%" PRIx64
			", addresses at 0x%" PRIx64 "\n",
			f->kallsyms.layout, f->kallsyms.names_va, f->kallsyms.token_va,
			f->kallsyms.addresses_va);
	if (f->orc)
		fprintf(out, "ORC        %zu entries, layout of %s, registers of %s\n",
			orc_count(f->orc), orc_layout_name(orc_layout(f->orc)),
			orc_format_registers(orc_format_of(f->orc)));
	else
		fprintf(out, "ORC        %s: %s\n",
			f->no_orc.code == ENOENT ? "none" : "a table, not used", f->no_orc.text);
	if (!f->btf) {
		fprintf(out, "BTF        none: %s\n", f->no_btf.text);
		return;
	}
	fprintf(out, "BTF        %" PRIu32 " types in %zu bytes, read in %.1f ms\n",
		btf_count(f->btf), btf_size(f->btf), (double)f->btf_ns / 1e6);
	if (f->task_struct_bytes)
		fprintf(out, "           sizeof(task_struct) %" PRIu64 "\n", f->task_struct_bytes);
}

static int print_json(const struct facts *f)
{
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];
	struct json_writer w;

	symbols_hex_id(&f->kernel, id);
	json_open(&w);
	json_put(&w, "image", symbols_at_text(f->path), "kind", symbols_kind_of(f), "compression",
		 f->image.compression ? symbols_at_text(f->image.compression) : "none", "banner",
		 symbols_at_text(f->kernel.banner), "build_id", symbols_at_text(id), "text",
		 json_address(f->kernel.text), "etext", json_address(f->kernel.etext), "end",
		 json_address(f->kernel.end));
	json_put(&w, "names_from", symbols_at_text(f->source), "no_names_because",
		 f->symbols ? NULL : symbols_at_text(f->why.text), "names",
		 f->symbols ? symtab_count(f->symbols) : 0, "ready_ns", f->ready_ns,
		 "kallsyms_layout", symbols_at_text(f->kallsyms.layout));
	json_put(&w, "orc_layout", f->orc ? orc_layout_name(orc_layout(f->orc)) : NULL,
		 "orc_registers", f->orc ? orc_format_registers(orc_format_of(f->orc)) : NULL,
		 "no_orc_because", f->orc ? NULL : symbols_at_text(f->no_orc.text), "orc_entries",
		 f->orc ? orc_count(f->orc) : 0);
	json_put(&w, "btf_bytes", f->btf ? btf_size(f->btf) : 0, "btf_types",
		 f->btf ? btf_count(f->btf) : 0, "btf_ns", f->btf_ns, "no_btf_because",
		 f->btf ? NULL : symbols_at_text(f->no_btf.text), "sizeof_task_struct",
		 f->task_struct_bytes ? json_of_u64(f->task_struct_bytes) : json_of_str(NULL));
	return json_close(&w, stdout);
}

static void print_table(const struct symtab *t)
{
	for (size_t i = 0; i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);

		printf("%016" PRIx64 " %c %s\n", s->addr, s->type, s->name);
	}
}

struct symbols_options {
	bool json, demangle, check;
	struct debuginfo_places places;
};

static int symbols_show(struct facts *f, const struct symbols_options *o, char **address,
			struct err *e)
{
	struct symbols_at at = {
		.path = f->path,
		.kernel = &f->kernel,
		.places = o->places,
		.json = o->json,
		.demangle = o->demangle,
	};
	struct file_map map = { 0 };
	int ret = file_map_open(&map, f->path, BOOT_MAX_FILE, e);

	ret = ret ? ret : image_parse(&f->image, f->path, map.data, map.len, e);
	ret = ret ? ret : kimage_parse(&f->kernel, f->path, f->image.elf, f->image.elf_len, e);
	if (ret == 0) {
		(void)orc_open(&f->orc, &f->kernel, &f->no_orc);
		find_symbols(f);
		if (!*address)
			find_types(f);
		if (o->json && !*address)
			ret = print_json(f) ? err_nomem(e) : 0;
		else if (!*address)
			print_facts(f, stderr);
		if (!ret && !f->symbols)
			ret = err_set(e, f->why.code, "%s", f->why.text);
		else if (!ret && *address) {
			at.symbols = f->symbols;
			ret = symbols_at_print(&at, address, e);
		} else if (!ret && !o->json)
			print_table(f->symbols);
	}
	btf_destroy(f->btf);
	symtab_destroy(f->symbols);
	orc_destroy(f->orc);
	image_deinit(&f->image);
	file_map_close(&map);
	return ret;
}

/* --check: as a run would find the image. */
static int symbols_check(const char *path, bool json, struct err *e)
{
	struct target t;
	struct image_check c;
	struct json_writer w;
	struct boot_image image;
	int ret = kernel_open(&image, &t, path, NULL, e);

	if (ret)
		return ret;
	image_check(&t, &c);
	if (json) {
		json_open(&w);
		json_put(&w, "image", path, "release", t.osrelease);
		image_check_json(&w, "check", &c);
		ret = json_close(&w, stdout) ? err_nomem(e) : 0;
	}
	for (unsigned int i = 0; !json && i < c.n; i++)
		printf("%-9s %-9s %s\n", image_check_title((enum image_check_what)i),
		       image_check_answer_name(c.row[i].answer), c.row[i].text);
	target_close(&t);
	return ret;
}

#define OPTION_STRUCT struct symbols_options

static const struct option_row rows[] = {
	{ "json", 0, NULL, "the facts alone, or the ADDRESSes, as JSON on stdout",
	  OPTION_PUT(json, true) },
	{ "check", 0, NULL, "what kvmprof will know of this kernel, and why not",
	  OPTION_PUT(check, true) },
	{ "no-demangle", 0, NULL, "show the names of C++ and Rust functions without demangling",
	  OPTION_PUT(demangle, false) },
	OPTION_ROWS(cmd_debuginfo_rows, places),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof symbols [OPTIONS] IMAGE [ADDRESS|FUNCTION...]\n"
		 "\n"
		 "Print the symbols in a kernel image (bzImage, vmlinux) in the form of a "
		 "System.map,\n"
		 "and on stderr what the image is. Where it has no symbol table, names come from "
		 "the\n"
		 "tables that the kernel carries for its own use (kallsyms). With ADDRESSes "
		 "(hexadecimal) or FUNCTIONs\n"
		 "(NAME: all of that name; NAME@FILE: by source file; NAME#2: the second by "
		 "address)\n"
		 "print for each the function and the offset in it, or ? where there is none, and "
		 "the\n"
		 "source line with inlined calls, innermost first, where debug information is "
		 "found: the\n"
		 "image's own, or by its build id in ~/.debug, /usr/lib/debug or from "
		 "DEBUGINFOD_URLS.\n"
		 "Names of C++ and Rust functions are shown as in the source. The table has them "
		 "as they are.\n"
		 "With --check print instead what kvmprof will know of this kernel when it runs:\n"
		 "names, stacks, tasks, modules, mappings, files, tasks off the CPU; partly, "
		 "searched (the\n"
		 "running guest's memory may tell) and no have the reason.\n"
		 "\n",
	.after = "\nExit status: 0 fine; 1 no names, or not a kernel image; 2 wrong usage.\n",
	.rows = rows,
};

int cmd_symbols(int argc, char **argv)
{
	struct facts f = { 0 };
	struct symbols_options o = { .demangle = true };
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (optind == argc)
		return cmd_wrong(argv, "which image?");
	f.path = argv[optind];
	if (o.check && optind + 1 < argc)
		return cmd_wrong_usage(argv, "--check takes no address:", argv[optind + 1]);
	if ((o.check ? symbols_check(f.path, o.json, &e)
		     : symbols_show(&f, &o, argv + optind + 1, &e)) < 0) {
		fprintf(stderr, "kvmprof symbols: %s\n", e.text);
		return 1;
	}
	return 0;
}
