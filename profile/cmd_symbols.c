/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_symbols: `kvmprof symbols`: what a kernel image says about itself, and its names.
 *
 * Works on the file alone: no guest, no /dev/kvm. The table goes to stdout in the
 * form of a System.map, the facts to stderr.
 */
#include "profile/cmd.h"

#include "base/clock.h"
#include "base/file.h"
#include "symbolizer/btf.h"
#include "profile/display_name.h"
#include "symbolizer/elf64.h"
#include "symbolizer/kallsyms.h"
#include "symbolizer/kimage.h"
#include "vmm/boot/image.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: kvmprof symbols [--json] [--no-demangle] IMAGE [ADDRESS...]\n"
	"\n"
	"Print the symbols in a kernel image (bzImage, vmlinux) in the form of a System.map,\n"
	"and on stderr what the image is. Where it has no symbol table, names come from the\n"
	"tables that the kernel carries for its own use (kallsyms). With ADDRESSes (hexadecimal)\n"
	"print for each the function and the offset in it, or ? where there is none; names of\n"
	"C++ and Rust functions are shown as in the source. The table has them as they are.\n"
	"\n"
	"      --json          the facts alone, on stdout\n"
	"      --no-demangle   show the names of C++ and Rust functions as they are\n"
	"\n"
	"Exit status: 0 fine; 1 no names, or not a kernel image; 2 wrong usage.\n";

struct facts {
	const char *path;
	struct boot_image image;
	struct kimage kernel;
	struct symtab *symbols; /* owned; NULL: none */
	const char *source;
	struct err why;		       /* when there are no symbols */
	struct kallsyms_info kallsyms; /* count 0: not used */
	uint64_t orc_entries;	       /* 0: no such section */
	uint64_t ready_ns;	       /* from the unpacked image to the table */
	struct btf *btf;	       /* owned; NULL: none */
	struct err no_btf;	       /* why */
	uint64_t btf_ns;	       /* to find and check it */
	uint64_t task_struct_bytes;    /* 0: not known */
};

static void find_sections(struct facts *f)
{
	struct elf64 elf;

	if (elf64_open(&elf, f->path, f->image.elf, f->image.elf_len, NULL) < 0)
		return;
	for (uint32_t i = 0; i < elf.shnum; i++) {
		Elf64_Shdr s = elf64_shdr(&elf, i);
		const char *name = elf64_section_name(&elf, &s);

		/* Each entry's address: a 4-byte distance from where it stands. */
		if (!strcmp(name, ".orc_unwind_ip"))
			f->orc_entries = s.sh_size / 4;
	}
}

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

static void hex_id(const struct kimage *k, char out[2 * KIMAGE_BUILD_ID_MAX + 1])
{
	out[0] = 0;
	for (unsigned int i = 0; i < k->build_id_len; i++)
		snprintf(out + 2 * i, 3, "%02x", k->build_id[i]);
}

static const char *kind_of(const struct facts *f)
{
	return f->image.kind == BOOT_BZIMAGE ? "bzImage" : "ELF64";
}

static void print_facts(const struct facts *f, FILE *out)
{
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];

	hex_id(&f->kernel, id);
	fprintf(out, "image      %s: %s, compression %s\n", f->path, kind_of(f),
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
	if (f->orc_entries)
		fprintf(out, "ORC        %" PRIu64 " entries\n", f->orc_entries);
	else
		fputs("ORC        none\n", out);
	if (!f->btf) {
		fprintf(out, "BTF        none: %s\n", f->no_btf.text);
		return;
	}
	fprintf(out, "BTF        %" PRIu32 " types in %zu bytes, read in %.1f ms\n",
		btf_count(f->btf), btf_size(f->btf), (double)f->btf_ns / 1e6);
	if (f->task_struct_bytes)
		fprintf(out, "           sizeof(task_struct) %" PRIu64 "\n", f->task_struct_bytes);
}

/* "key": "value", with what JSON wants escaped; UTF-8 passes. */
static void json_text(const char *key, const char *s)
{
	printf("\"%s\":", key);
	if (!s || !*s) {
		printf("null");
		return;
	}
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\u%04x", (unsigned int)(unsigned char)*s);
		else
			putchar(*s);
	}
	putchar('"');
}

static void print_json(const struct facts *f)
{
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];

	hex_id(&f->kernel, id);
	printf("{");
	json_text("image", f->path);
	printf(",");
	json_text("kind", kind_of(f));
	printf(",");
	json_text("compression", f->image.compression ? f->image.compression : "none");
	printf(",");
	json_text("banner", f->kernel.banner);
	printf(",");
	json_text("build_id", id);
	printf(",\"text\":\"0x%" PRIx64 "\",\"etext\":\"0x%" PRIx64 "\",\"end\":\"0x%" PRIx64 "\",",
	       f->kernel.text, f->kernel.etext, f->kernel.end);
	json_text("names_from", f->source);
	printf(",");
	json_text("no_names_because", f->symbols ? NULL : f->why.text);
	printf(",\"names\":%zu,\"ready_ns\":%" PRIu64 ",",
	       f->symbols ? symtab_count(f->symbols) : 0, f->ready_ns);
	json_text("kallsyms_layout", f->kallsyms.layout);
	printf(",\"orc_entries\":%" PRIu64 ",\"btf_bytes\":%zu,\"btf_types\":%" PRIu32
	       ",\"btf_ns\":%" PRIu64 ",",
	       f->orc_entries, f->btf ? btf_size(f->btf) : 0, f->btf ? btf_count(f->btf) : 0,
	       f->btf_ns);
	json_text("no_btf_because", f->btf ? NULL : f->no_btf.text);
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

static bool parse_address(const char *s, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(s, &end, 16);
	return *s && *s != '-' && *s != '+' && *s != ' ' && !*end && !errno;
}

static void print_lookups(const struct symtab *t, bool demangle, char **address)
{
	struct display_names names;

	display_names_init(&names, demangle, demangle);
	for (; *address; address++) {
		uint64_t va, off;
		const struct symbol *s;

		(void)parse_address(*address, &va); /* was checked */
		s = symtab_lookup(t, va, &off);
		if (s)
			printf("%016" PRIx64 " %s+0x%" PRIx64 "\n", va,
			       display_name(&names, s, true), off);
		else
			printf("%016" PRIx64 " ?\n", va);
	}
	display_names_deinit(&names);
}

static int show(struct facts *f, bool json, bool demangle, char **address, struct err *e)
{
	struct file_map map = { 0 };
	int ret = file_map_open(&map, f->path, BOOT_MAX_FILE, e);

	ret = ret ? ret : boot_image_parse(&f->image, f->path, map.data, map.len, e);
	ret = ret ? ret : kimage_parse(&f->kernel, f->path, f->image.elf, f->image.elf_len, e);
	if (ret == 0) {
		find_sections(f);
		find_symbols(f);
		find_types(f);
		if (json)
			print_json(f);
		else if (!*address)
			print_facts(f, stderr);
		if (!f->symbols)
			ret = err_set(e, f->why.code, "%s", f->why.text);
		else if (*address)
			print_lookups(f->symbols, demangle, address);
		else if (!json)
			print_table(f->symbols);
		if (ret == 0 && (fflush(stdout) || ferror(stdout)))
			ret = err_set(e, EIO, "cannot write: %s", strerror(errno));
	}
	btf_destroy(f->btf);
	symtab_destroy(f->symbols);
	boot_image_deinit(&f->image);
	file_map_close(&map);
	return ret;
}

int cmd_symbols(int argc, char **argv)
{
	static const struct option longopts[] = { { "help", no_argument, NULL, 'h' },
						  { "json", no_argument, NULL, 'j' },
						  { "no-demangle", no_argument, NULL, 'd' },
						  { 0 } };
	struct facts f = { 0 };
	struct err e = { 0 };
	bool json = false, demangle = true;
	int opt;

	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (opt == 'd') {
			demangle = false;
			continue;
		}
		if (opt != 'j') {
			fprintf(stderr,
				"kvmprof symbols: unknown option '%s'; see `kvmprof symbols "
				"--help`\n",
				argv[optind > 1 ? optind - 1 : 1]);
			return 2;
		}
		json = true;
	}
	if (optind == argc || (json && optind + 1 < argc)) {
		fputs(json && optind < argc
			      ? "kvmprof symbols: --json and addresses don't go together\n"
			      : "kvmprof symbols: which image? See `kvmprof symbols --help`\n",
		      stderr);
		return 2;
	}
	for (int i = optind + 1; i < argc; i++) {
		uint64_t va;

		if (!parse_address(argv[i], &va)) {
			fprintf(stderr, "kvmprof symbols: '%s' is not a hexadecimal address\n",
				argv[i]);
			return 2;
		}
	}
	f.path = argv[optind];
	if (show(&f, json, demangle, argv + optind + 1, &e) < 0) {
		fprintf(stderr, "kvmprof symbols: %s\n", e.text);
		return 1;
	}
	return 0;
}
