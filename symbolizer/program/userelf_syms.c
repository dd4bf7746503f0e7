/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the names of a user file: decides which tables are read, and what counts as a function. */
#include "symbolizer/program/userelf_syms.h"

#include "symbolizer/program/gopclntab.h"
#include "symbolizer/program/userelf_cfi.h"
#include "symbolizer/program/userelf_dynamic.h"
#include "symbolizer/program/userelf_plt.h"

#include <errno.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SECTIONS 65535u
/* Limit for liblzma's memory: its largest preset needs 65 MiB. */
#define LZMA_MEMORY (128u << 20)

void userelf_note_reason(struct userelf_load *l, const char *fmt, ...)
{
	va_list ap;

	if (l->n.why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(l->n.why, sizeof(l->n.why), fmt, ap);
	va_end(ap);
}

bool userelf_section(const struct userelf_load *l, uint32_t i, Elf64_Shdr *s)
{
	struct cursor c = filepiece_cursor(&l->shdrs);

	if (i >= l->shnum || !filepiece_has(&l->shdrs, (uint64_t)i * sizeof(*s), sizeof(*s)))
		return false;
	cursor_seek(&c, (uint64_t)i * sizeof(*s));
	s->sh_name = cursor_u32(&c);
	s->sh_type = cursor_u32(&c);
	s->sh_flags = cursor_u64(&c);
	s->sh_addr = cursor_u64(&c);
	s->sh_offset = cursor_u64(&c);
	s->sh_size = cursor_u64(&c);
	s->sh_link = cursor_u32(&c);
	s->sh_info = cursor_u32(&c);
	s->sh_addralign = cursor_u64(&c);
	s->sh_entsize = cursor_u64(&c);
	return !c.bad;
}

const char *userelf_section_name(const struct userelf_load *l, const Elf64_Shdr *s)
{
	const char *name = filepiece_str(&l->shstr, s->sh_name, 64);

	return name ? name : "";
}

bool userelf_table_sym(const struct userelf_table *t, uint32_t i, Elf64_Sym *s)
{
	struct cursor c = filepiece_cursor(&t->sym);

	if (!filepiece_has(&t->sym, (uint64_t)i * sizeof(*s), sizeof(*s)))
		return false;
	cursor_seek(&c, (uint64_t)i * sizeof(*s));
	s->st_name = cursor_u32(&c);
	s->st_info = cursor_u8(&c);
	s->st_other = cursor_u8(&c);
	s->st_shndx = cursor_u16(&c);
	s->st_value = cursor_u64(&c);
	s->st_size = cursor_u64(&c);
	return !c.bad;
}

static bool was_added(struct userelf_load *l, int ret)
{
	if (ret == -ENOMEM)
		l->no_memory = true;
	if (ret == -E2BIG && !l->full) {
		l->full = true;
		userelf_note_reason(l, "more than %zu names; the rest is left out",
				    symtab_count(l->t));
	}
	return ret == 0;
}

bool userelf_add(struct userelf_load *l, uint64_t va, uint64_t size, char type, const char *name)
{
	return was_added(l, symtab_add(l->t, va, size, type, name));
}

/*
 * Adds a function without a size from a table that lacks static functions: these may follow it, up
 * to the next name. It ends where its call frame information ends; without any, only its first
 * byte is known to belong to it.
 */
static bool add_unsized(struct userelf_load *l, uint64_t va, char type, const char *name)
{
	uint64_t end = 0;

	if (!l->asked_cfi && userelf_cfi_open(&l->cfi, l->u) != CFI_FOUND)
		l->cfi = NULL;
	l->asked_cfi = true;
	if (!l->cfi || userelf_cfi_end(l->cfi, va, &end) != CFI_FOUND || end <= va)
		end = va + 1;
	return was_added(l, symtab_add_bounded(l->t, va, end - va, type, name));
}

/*
 * Returns whether a symbol is a function, or a label in an executable segment, because assembly
 * code has no other names. Hidden labels are ignored: linkers and compilers generate them.
 */
static bool is_function(const struct userelf *u, const Elf64_Sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->st_info), vis = ELF64_ST_VISIBILITY(s->st_other);

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && vis != STV_HIDDEN && vis != STV_INTERNAL &&
	       userelf_is_text(u, s->st_value);
}

static char letter(const Elf64_Sym *s)
{
	switch (ELF64_ST_BIND(s->st_info)) {
	case STB_LOCAL:
		return 't';
	case STB_WEAK:
		return 'W';
	default:
		return 'T';
	}
}

/*
 * Sets the file of the following symbols. Local symbols belong to the preceding STT_FILE symbol;
 * one without a name ends its effect.
 */
static void userelf_set_file(struct userelf_load *l, const struct userelf_table *t,
			     const Elf64_Sym *s)
{
	const char *file = NULL;

	if (ELF64_ST_TYPE(s->st_info) == STT_FILE)
		file = s->st_name ? filepiece_str(&t->str, s->st_name, SYMTAB_MAX_NAME + 1) : NULL;
	else if (ELF64_ST_BIND(s->st_info) == STB_LOCAL)
		return;
	(void)symtab_set_file(l->t, file); /* one that cannot be stored is unknown */
}

/*
 * Adds the functions of a table. In a table with holes, a symbol without a size could be extended
 * over missing functions, so it is omitted. A linker may have put the default version into a name
 * ("memcpy@@GLIBC_2.14"); .dynsym has the same function without it.
 */
static uint32_t add_table(struct userelf_load *l, const struct userelf_table *t)
{
	bool holes = t->sym.nmissing || t->str.nmissing;
	char cut[SYMTAB_MAX_NAME + 2];
	uint32_t added = 0;

	for (uint32_t i = 1; i < t->count && !l->no_memory && !l->full; i++) {
		const char *name, *version;
		Elf64_Sym s;

		if (!userelf_table_sym(t, i, &s)) {
			l->n.lost++;
			continue;
		}
		userelf_set_file(l, t, &s);
		if (!is_function(l->u, &s) || s.st_name == 0)
			continue;
		name = filepiece_str(&t->str, s.st_name, SYMTAB_MAX_NAME + 1);
		/* symtab_add() marks it as truncated. */
		if (!name && filepiece_str_start(&t->str, s.st_name, cut, SYMTAB_MAX_NAME + 1))
			name = cut;
		if (!name || (holes && s.st_size == 0)) {
			l->n.lost++;
			continue;
		}
		version = strstr(name, "@@");
		if (version && version != name) {
			memmove(cut, name, (size_t)(version - name));
			cut[version - name] = 0;
			name = cut;
		}
		if (!*name)
			continue;
		added += s.st_size || l->whole
				 ? userelf_add(l, s.st_value, s.st_size, letter(&s), name)
				 : add_unsized(l, s.st_value, letter(&s), name);
	}
	(void)symtab_set_file(l->t, NULL);
	return added;
}

static void table_deinit(struct userelf_table *t)
{
	filepiece_deinit(&t->sym);
	filepiece_deinit(&t->str);
	t->count = 0;
}

/* Reads the symbols of a section and the strings that it refers to. */
static enum userelf_part read_table(struct userelf_load *l, const Elf64_Shdr *s, const char *what,
				    struct userelf_table *t)
{
	struct userelf_table x = { 0 };
	Elf64_Shdr str;
	int ret;

	if (s->sh_entsize != sizeof(Elf64_Sym) || !userelf_section(l, s->sh_link, &str) ||
	    str.sh_type != SHT_STRTAB) {
		userelf_note_reason(l, "%s has no string table", what);
		return USERELF_BAD;
	}
	ret = filepiece_read(&x.sym, &l->u->src, s->sh_offset, s->sh_size, USERELF_MAX_TABLE);
	if (ret == 0)
		ret = filepiece_read(&x.str, &l->u->src, str.sh_offset, str.sh_size,
				     USERELF_MAX_TABLE);
	if (ret < 0) {
		userelf_note_reason(
			l, "%s (%llu bytes at offset %llu, names %llu bytes at %llu): %s", what,
			(unsigned long long)s->sh_size, (unsigned long long)s->sh_offset,
			(unsigned long long)str.sh_size, (unsigned long long)str.sh_offset,
			ret == -EINVAL ? "not inside the file" : strerror(-ret));
		l->no_memory |= ret == -ENOMEM;
		table_deinit(&x);
		return USERELF_BAD;
	}
	x.count = (uint32_t)(x.sym.len / sizeof(Elf64_Sym));
	*t = x;
	if (x.sym.nmissing + x.str.nmissing == 0)
		return USERELF_READ;
	userelf_note_reason(l, "%u of %llu pages of %s are not in memory",
			    x.sym.nmissing + x.str.nmissing,
			    (unsigned long long)((x.sym.len + x.str.len) / FILEPIECE_PAGE + 1),
			    what);
	return USERELF_HOLES;
}

static void load_symtab(struct userelf_load *l, const Elf64_Shdr *s)
{
	struct userelf_table t = { 0 };

	l->n.symtab = read_table(l, s, ".symtab", &t);
	l->whole |= l->n.symtab == USERELF_READ;
	if (l->n.symtab == USERELF_READ)
		l->n.from_symtab = add_table(l, &t);
	table_deinit(&t);
}

/* Reads the section headers. Returns false if they cannot be used. */
static bool open_sections(struct userelf_load *l)
{
	const struct userelf *u = l->u;
	uint32_t shnum = u->shnum, shstrndx = u->shstrndx;
	Elf64_Shdr s;
	int ret;

	if (!u->shoff)
		return false;
	ret = filepiece_read(&l->shdrs, &u->src, u->shoff, sizeof(s), sizeof(s));
	l->shnum = 1;
	/* Numbers that do not fit in 16 bits are in section 0 (System V ABI, "ELF Header"). */
	if (ret == 0 && (shnum == 0 || shstrndx == SHN_XINDEX) && userelf_section(l, 0, &s)) {
		shnum = shnum ? shnum : (uint32_t)(s.sh_size < UINT32_MAX ? s.sh_size : 0);
		shstrndx = shstrndx == SHN_XINDEX ? s.sh_link : shstrndx;
	}
	filepiece_deinit(&l->shdrs);
	l->shnum = 0;
	if (ret == 0)
		ret = filepiece_read(&l->shdrs, &u->src, u->shoff, (uint64_t)shnum * sizeof(s),
				     MAX_SECTIONS * sizeof(s));
	if (ret < 0 || shnum == 0) {
		userelf_note_reason(l,
				    "section headers (%u at offset %llu) are not inside the file",
				    shnum, (unsigned long long)u->shoff);
		return false;
	}
	l->shnum = shnum;
	if (l->shdrs.nmissing)
		userelf_note_reason(l, "section headers are not in memory");
	if (userelf_section(l, shstrndx, &s) && s.sh_type == SHT_STRTAB)
		(void)filepiece_read(&l->shstr, &u->src, s.sh_offset, s.sh_size, 16u << 20);
	return true;
}

/*
 * Returns the unpacked bytes, which the caller frees, or NULL if they are not xz, damaged, or too
 * long.
 */
static uint8_t *unpack_xz(const uint8_t *in, size_t in_len, size_t *out_len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret ret = lzma_stream_decoder(&z, LZMA_MEMORY, 0);
	size_t cap = 1u << 20;
	uint8_t *out = NULL;

	z.next_in = in;
	z.avail_in = in_len;
	while (ret == LZMA_OK && z.total_out < USERELF_MAX_DEBUGDATA) {
		uint8_t *more = realloc(out, cap);

		if (!more)
			break;
		out = more;
		z.next_out = out + z.total_out;
		z.avail_out = cap - (size_t)z.total_out;
		ret = lzma_code(&z, LZMA_FINISH);
		cap *= 2;
	}
	*out_len = (size_t)z.total_out;
	lzma_end(&z);
	if (ret == LZMA_STREAM_END)
		return out;
	free(out);
	return NULL;
}

/* Reads an embedded ELF file that contains only a .symtab, with the addresses of this one. */
static void load_debugdata(struct userelf_load *l, const Elf64_Shdr *s)
{
	struct filepiece packed = { 0 };
	struct file_bytes bytes = { 0 };
	struct file_source src = { 0 };
	struct userelf_load inner = { .t = l->t };
	struct userelf *u = NULL;
	uint8_t *plain = NULL;

	l->n.debugdata = USERELF_BAD;
	if (filepiece_read(&packed, &l->u->src, s->sh_offset, s->sh_size, USERELF_MAX_DEBUGDATA) <
	    0)
		return;
	if (packed.nmissing)
		l->n.debugdata = USERELF_HOLES;
	else
		plain = unpack_xz(packed.data, packed.len, &bytes.len);
	filepiece_deinit(&packed);
	bytes.data = plain;
	src = filepiece_source_of_bytes(&bytes);
	u = plain ? malloc(sizeof(*u)) : NULL;
	if (u && userelf_open(u, l->u->name, &src, NULL) == 0) {
		inner.u = u;
		for (uint32_t i = open_sections(&inner) ? 1 : UINT32_MAX; i < inner.shnum; i++) {
			Elf64_Shdr t;

			if (!userelf_section(&inner, i, &t) || t.sh_type != SHT_SYMTAB)
				continue;
			load_symtab(&inner, &t);
			l->n.debugdata = inner.n.symtab;
			l->n.from_debugdata = inner.n.from_symtab;
			break;
		}
	}
	l->whole |= inner.whole;
	l->no_memory |= inner.no_memory;
	l->full |= inner.full;
	filepiece_deinit(&inner.shdrs);
	filepiece_deinit(&inner.shstr);
	free(u);
	free(plain);
	if (l->n.debugdata != USERELF_READ)
		userelf_note_reason(l, ".gnu_debugdata is %s", userelf_part_name(l->n.debugdata));
}

/* Reads the names of a stripped Go program from its runtime's table. */
static void load_go(struct userelf_load *l, const Elf64_Shdr *s, uint64_t text)
{
	struct gopclntab_func f;
	struct gopclntab t;
	uint32_t holes = 0;

	if (gopclntab_open(&t, &l->u->src, s->sh_offset, s->sh_size, text) != CFI_FOUND)
		return;
	for (uint32_t i = 0; i < t.nfuncs; i++) {
		enum cfi_found found = gopclntab_func_at(&t, i, &f);

		holes += found == CFI_HOLE;
		if (found != CFI_FOUND)
			continue;
		if (!userelf_add(l, f.start, f.end - f.start, 't', f.name))
			break;
		l->n.from_go++;
	}
	l->n.symtab = holes ? USERELF_HOLES : USERELF_READ;
	l->n.from_symtab = l->n.from_go;
	if (holes)
		userelf_note_reason(l, "%u names of .gopclntab are not in memory", holes);
}

static bool is_go_table(const char *section)
{
	return !strcmp(section, ".gopclntab") || !strcmp(section, ".data.rel.ro.gopclntab");
}

static void load_sections(struct userelf_load *l)
{
	Elf64_Shdr s, debugdata = { 0 }, go = { 0 };
	uint64_t text = 0;

	for (uint32_t i = 1; i < l->shnum; i++) {
		if (!userelf_section(l, i, &s))
			continue;
		/* Debug files also have headers of sections that they lack. */
		if (s.sh_type == SHT_SYMTAB && !l->n.symtab)
			load_symtab(l, &s);
		else if (s.sh_type == SHT_DYNSYM && !l->n.dynsym)
			l->n.dynsym = read_table(l, &s, ".dynsym", &l->dyn);
		else if (s.sh_type == SHT_PROGBITS &&
			 !strcmp(userelf_section_name(l, &s), ".gnu_debugdata"))
			debugdata = s;
		else if (s.sh_type == SHT_PROGBITS && !strcmp(userelf_section_name(l, &s), ".text"))
			text = s.sh_addr;
		else if (is_go_table(userelf_section_name(l, &s)))
			go = s;
	}
	if (l->n.symtab == USERELF_ABSENT && go.sh_size)
		load_go(l, &go, text);
	if (l->n.symtab != USERELF_READ && debugdata.sh_size)
		load_debugdata(l, &debugdata);
}

static void load_all(struct userelf_load *l)
{
	bool sections = open_sections(l);

	if (sections)
		load_sections(l);
	if (!l->n.dynsym && l->u->dynamic_off) {
		l->n.no_sections = true;
		userelf_find_dynamic(l);
	}
	if (l->dyn.count)
		l->n.from_dynsym = add_table(l, &l->dyn);
	if (sections)
		userelf_load_plt(l);
}

int userelf_symbols(const struct userelf *u, struct symtab **out, struct userelf_names *info,
		    struct err *e)
{
	struct userelf_load l = { .u = u, .t = symtab_create() };
	int ret = 0;

	if (!l.t)
		return err_set(e, ENOMEM, "%s: no memory for symbols", u->name);
	load_all(&l);
	userelf_cfi_destroy(l.cfi);
	table_deinit(&l.dyn);
	filepiece_deinit(&l.shdrs);
	filepiece_deinit(&l.shstr);
	if (info)
		*info = l.n;
	if (l.no_memory)
		ret = err_set(e, ENOMEM, "%s: no memory for symbols", u->name);
	else if (symtab_count(l.t) == 0)
		ret = err_set(e, ENOENT, "%s: no names of functions in it%s%s", u->name,
			      l.n.why[0] ? ": " : "", l.n.why);
	else
		ret = symtab_freeze(l.t, e);
	if (ret < 0) {
		symtab_destroy(l.t);
		return ret;
	}
	*out = l.t;
	return 0;
}
