/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_symbols: `kvmprof symbols`: what a kernel image says about itself, and its names.
 *
 * Works on the file alone: no guest, no /dev/kvm. The table goes to stdout in the
 * form of a System.map, the facts to stderr.
 */
#include "profile/cmd/cmd.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "profile/cmd/common.h"
#include "profile/cmd/debuginfo.h"
#include "profile/cmd/symbols_at.h"
#include "profile/record/guest/image_check.h"
#include "symbolizer/types/btf.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/unwind/orc.h"
#include "vmm/image/image.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void print_json(const struct facts *f)
{
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];

	symbols_hex_id(&f->kernel, id);
	printf("{");
	symbols_at_json_text("image", f->path);
	printf(",");
	symbols_at_json_text("kind", symbols_kind_of(f));
	printf(",");
	symbols_at_json_text("compression", f->image.compression ? f->image.compression : "none");
	printf(",");
	symbols_at_json_text("banner", f->kernel.banner);
	printf(",");
	symbols_at_json_text("build_id", id);
	printf(",\"text\":\"0x%" PRIx64 "\",\"etext\":\"0x%" PRIx64 "\",\"end\":\"0x%" PRIx64 "\",",
	       f->kernel.text, f->kernel.etext, f->kernel.end);
	symbols_at_json_text("names_from", f->source);
	printf(",");
	symbols_at_json_text("no_names_because", f->symbols ? NULL : f->why.text);
	printf(",\"names\":%zu,\"ready_ns\":%" PRIu64 ",",
	       f->symbols ? symtab_count(f->symbols) : 0, f->ready_ns);
	symbols_at_json_text("kallsyms_layout", f->kallsyms.layout);
	printf(",");
	symbols_at_json_text("orc_layout", f->orc ? orc_layout_name(orc_layout(f->orc)) : NULL);
	printf(",");
	symbols_at_json_text("orc_registers",
			     f->orc ? orc_format_registers(orc_format_of(f->orc)) : NULL);
	printf(",");
	symbols_at_json_text("no_orc_because", f->orc ? NULL : f->no_orc.text);
	printf(",\"orc_entries\":%zu,\"btf_bytes\":%zu,\"btf_types\":%" PRIu32
	       ",\"btf_ns\":%" PRIu64 ",",
	       f->orc ? orc_count(f->orc) : 0, f->btf ? btf_size(f->btf) : 0,
	       f->btf ? btf_count(f->btf) : 0, f->btf_ns);
	symbols_at_json_text("no_btf_because", f->btf ? NULL : f->no_btf.text);
	if (f->task_struct_bytes)
		printf(",\"sizeof_task_struct\":%" PRIu64 "}\n", f->task_struct_bytes);
	else
		printf(",\"sizeof_task_struct\":null}\n");
}

static void print_table(const struct symtab *t)
{
	for (size_t i = 0; i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);

		printf("%016" PRIx64 " %c %s\n", s->addr, s->type, s->name);
	}
}

struct options {
	bool json, demangle, check;
	struct debuginfo_places places;
};

static int symbols_show(struct facts *f, const struct options *o, char **address, struct err *e)
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

	ret = ret ? ret : boot_image_parse(&f->image, f->path, map.data, map.len, e);
	ret = ret ? ret : kimage_parse(&f->kernel, f->path, f->image.elf, f->image.elf_len, e);
	if (ret == 0) {
		(void)orc_open(&f->orc, &f->kernel, &f->no_orc);
		find_symbols(f);
		if (!*address)
			find_types(f);
		if (o->json && !*address)
			print_json(f);
		else if (!*address)
			print_facts(f, stderr);
		if (!f->symbols)
			ret = err_set(e, f->why.code, "%s", f->why.text);
		else if (*address) {
			at.symbols = f->symbols;
			ret = symbols_at_print(&at, address, e);
		} else if (!o->json)
			print_table(f->symbols);
	}
	btf_destroy(f->btf);
	symtab_destroy(f->symbols);
	orc_destroy(f->orc);
	boot_image_deinit(&f->image);
	file_map_close(&map);
	return ret;
}

/* --check: as a run would find the image. */
static int symbols_check(const char *path, bool json, struct err *e)
{
	struct target t;
	struct image_check c;
	struct buf out;
	int ret = target_open(&t, path, NULL, e);

	if (ret)
		return ret;
	image_check(&t, &c);
	buf_init(&out);
	if (json) {
		buf_printf(&out, "{\"image\":");
		json_quote(&out, path);
		buf_printf(&out, ",\"release\":");
		json_quote(&out, t.osrelease);
		buf_printf(&out, ",\"check\":");
		image_check_json(&c, &out);
		buf_printf(&out, "}\n");
	} else {
		for (unsigned int i = 0; i < c.n; i++)
			buf_printf(&out, "%-9s %-9s %s\n",
				   image_check_title((enum image_check_what)i),
				   image_check_answer_name(c.row[i].answer), c.row[i].text);
	}
	if (out.failed)
		ret = err_set(e, ENOMEM, "out of memory");
	else
		fwrite(out.data, 1, out.len, stdout);
	buf_deinit(&out);
	target_close(&t);
	return ret;
}

#define OPTION_STRUCT struct options

static const struct option_row rows[] = {
	{ "json", 0, NULL, "the facts alone, or the ADDRESSes, as JSON on stdout",
	  OPTION_PUT(json, true) },
	{ "check", 0, NULL, "what kvmprof will be able to tell of this kernel, and why not",
	  OPTION_PUT(check, true) },
	{ "no-demangle", 0, NULL, "show the names of C++ and Rust functions as they are",
	  OPTION_PUT(demangle, false) },
	OPTION_ROWS(cmd_debuginfo_rows, places),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof symbols [OPTIONS] IMAGE [ADDRESS|NAME...]\n"
		"\n"
		"Print the symbols in a kernel image (bzImage, vmlinux) in the form of a "
		"System.map,\n"
		"and on stderr what the image is. Where it has no symbol table, names come from "
		"the\n"
		"tables that the kernel carries for its own use (kallsyms). With ADDRESSes "
		"(hexadecimal) or NAMEs\n"
		"print for each the function and the offset in it, or ? where there is none, and "
		"the\n"
		"source line with inlined calls, innermost first, where debug information is "
		"found: the\n"
		"image's own, or by its build id in ~/.debug, /usr/lib/debug or from "
		"DEBUGINFOD_URLS.\n"
		"Names of C++ and Rust functions are shown as in the source. The table has them "
		"as they are.\n"
		"With --check say instead what kvmprof will be able to tell of this kernel when it "
		"runs:\n"
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
	struct options o = { .demangle = true };
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
