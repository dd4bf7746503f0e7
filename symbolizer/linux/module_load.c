/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a module's symbols and unwind tables from the kernel's own copies of them. */
#include "symbolizer/linux/module_load.h"

#include "base/cleanup.h"
#include "base/cursor.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE LINUX_MODULE_NONE
/* KSYM_NAME_LEN: 128; since 6.1, 512. */
#define MAX_NAME 512u
#define ORC_ENTRY_BYTES 6u

/* Returns a copy of all bytes, which the caller frees, or NULL with the reason in *ret. */
static uint8_t *fetch(const struct memory *m, uint64_t va, size_t len, int *ret)
{
	uint8_t *p = NULL;

	*ret = -ENOENT;
	if (!(va >> 63) || va > UINT64_MAX - len)
		return NULL;
	p = malloc(len);
	if (!p) {
		*ret = -ENOMEM;
		return NULL;
	}
	if (memory_read(m, MEMORY_KERNEL, va, p, len)) {
		*ret = 0;
		return p;
	}
	free(p);
	return NULL;
}

/* -- symbols -------------------------------------------------------------------------- */

/* Where a symbol's letter is stored. */
enum letter { IN_TYPETAB, IN_INFO, IN_SIZE };

struct tables {
	uint8_t *syms, *types;
	char *strings;
	size_t n, strings_len;
	enum letter letter;
};

static void tables_deinit(struct tables *t)
{
	free(t->syms);
	free(t->types);
	free(t->strings);
}

static Elf64_Sym symbol_at(const struct tables *t, size_t i)
{
	Elf64_Sym s;

	memcpy(&s, t->syms + i * sizeof(s), sizeof(s));
	return s;
}

static bool is_letter(uint64_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '?';
}

/*
 * Determines that for kernels without typetab: a genuine st_info is never a letter in all symbols.
 */
static enum letter find_letter(const struct tables *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (!is_letter(symbol_at(t, i).st_info))
			return IN_SIZE;
	return IN_INFO;
}

static char letter_of(const struct tables *t, size_t i, const Elf64_Sym *s)
{
	switch (t->letter) {
	case IN_TYPETAB:
		return (char)t->types[i];
	case IN_INFO:
		return (char)s->st_info;
	default:
		return is_letter(s->st_size) ? (char)s->st_size : '?';
	}
}

static bool covers(const struct linux_module_range *r, uint64_t va)
{
	return va >= r->start && va < r->end;
}

static bool is_code(char c)
{
	return c == 't' || c == 'T' || c == 'w' || c == 'W';
}

static bool is_wanted(const struct tables *t, size_t i, const struct linux_module *mod,
		      const Elf64_Sym *s)
{
	return s->st_shndx != SHN_UNDEF && s->st_shndx != SHN_ABS && s->st_name &&
	       (covers(&mod->text, s->st_value) || covers(&mod->init_text, s->st_value)) &&
	       is_code(letter_of(t, i, s));
}

/* Returns whether it is a function's name: the compiler's own names are ignored. */
static bool is_name(const char *s)
{
	if (!s[0] || s[0] == '$' || (s[0] == '.' && s[1] == 'L'))
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static int fetch_tables(const struct linux_module_layout *l, const struct memory *m,
			const struct linux_module *mod, struct tables *t)
{
	uint64_t at, syms, strings, types = 0, last = 0;
	uint32_t n;
	int ret;

	if (l->kallsyms == NONE || l->symtab == NONE || l->num_symtab == NONE ||
	    l->strtab == NONE || !memory_u64(m, mod->module + l->kallsyms, &at) || !(at >> 63) ||
	    !memory_u64(m, at + l->symtab, &syms) || !memory_u32(m, at + l->num_symtab, &n) ||
	    !memory_u64(m, at + l->strtab, &strings) ||
	    (l->typetab != NONE && !memory_u64(m, at + l->typetab, &types)))
		return -ENOENT;
	if (n < 2)
		return -ENOENT;
	if (n > LINUX_MODULE_MAX_SYMBOLS)
		return -E2BIG;
	t->n = n;
	t->syms = fetch(m, syms, n * sizeof(Elf64_Sym), &ret);
	if (ret)
		return ret;
	t->letter = IN_TYPETAB;
	if (l->typetab == NONE)
		t->letter = find_letter(t);
	else if (!(t->types = fetch(m, types, n, &ret)))
		return ret;
	for (size_t i = 1; i < n; i++) {
		Elf64_Sym s = symbol_at(t, i);

		if (is_wanted(t, i, mod, &s) && s.st_name > last)
			last = s.st_name;
	}
	if (last > LINUX_MODULE_MAX_STRINGS)
		return -E2BIG;
	if (!(strings >> 63) || strings > UINT64_MAX - last - MAX_NAME)
		return -ENOENT;
	t->strings = malloc(last + MAX_NAME);
	if (!t->strings)
		return -ENOMEM;
	/* The last name ends within these bytes; what follows it may be unreadable. */
	t->strings_len = m->read(m->ctx, MEMORY_KERNEL, strings, t->strings, last + MAX_NAME);
	return t->strings_len > last ? 0 : -ENOENT;
}

static int add_symbols(const struct tables *t, const struct linux_module *mod, struct symtab *out)
{
	for (size_t i = 1; i < t->n; i++) {
		Elf64_Sym s = symbol_at(t, i);
		const struct linux_module_range *r;
		const char *name;
		uint64_t size;
		int ret;

		if (!is_wanted(t, i, mod, &s))
			continue;
		name = t->strings + s.st_name;
		if (strnlen(name, t->strings_len - s.st_name) >=
			    (t->strings_len - s.st_name < MAX_NAME ? t->strings_len - s.st_name
								   : MAX_NAME) ||
		    !is_name(name))
			continue;
		r = covers(&mod->text, s.st_value) ? &mod->text : &mod->init_text;
		size = t->letter == IN_SIZE ? 0 : s.st_size;
		if (size > r->end - s.st_value)
			size = r->end - s.st_value;
		ret = symtab_add(out, s.st_value, size, letter_of(t, i, &s), name);
		if (ret)
			return ret;
	}
	return 0;
}

static int load_symbols(const struct linux_module_layout *l, const struct memory *m,
			const struct linux_module *mod, struct symtab **out)
{
	struct tables t = { 0 };
	struct symtab *s = NULL;
	int ret = fetch_tables(l, m, mod, &t);

	if (!ret) {
		s = symtab_create();
		ret = s ? add_symbols(&t, mod, s) : -ENOMEM;
	}
	tables_deinit(&t);
	if (!ret)
		ret = symtab_freeze(s, NULL);
	if (!ret && symtab_count(s) == 0)
		ret = -ENOENT;
	if (ret) {
		symtab_destroy(s);
		return ret;
	}
	*out = s;
	return 0;
}

/* -- unwind tables ---------------------------------------------------------------------- */

/*
 * Builds a table of the entries for one range. The kernel keeps one table for core and init text,
 * even when the latter is gone and its addresses are reused.
 */
static int build_orc(const struct linux_module_range *r, const struct orc_tables *all,
		     struct orc **out, struct err *e)
{
	const struct orc_format *format = all->format;
	size_t n = all->n;
	struct orc_format own_format;
	struct orc_tables t = { .text_start = r->start, .text_end = r->end };
	cleanup_free uint8_t *own_ips = malloc(n * 4);
	cleanup_free uint8_t *own = malloc(n * ORC_ENTRY_BYTES);
	int ret;

	if (!own_ips || !own)
		return -ENOMEM;
	/*
	 * The addresses of the entries themselves are invented: near enough to the code for 32
	 * bits.
	 */
	t.ips_va = r->start;
	for (size_t i = 0; i < n; i++) {
		int32_t rel;
		uint64_t va;
		uint32_t near;

		memcpy(&rel, all->ips + 4 * i, 4);
		va = all->ips_va + 4 * i + (uint64_t)(int64_t)rel;
		if (va < r->start || va > r->end)
			continue;
		near = (uint32_t)(va - (t.ips_va + 4 * t.n));
		memcpy(own_ips + 4 * t.n, &near, 4);
		memcpy(own + ORC_ENTRY_BYTES * t.n, all->entries + ORC_ENTRY_BYTES * i,
		       ORC_ENTRY_BYTES);
		t.n++;
	}
	if (!t.n)
		return 0;
	t.ips = own_ips;
	t.entries = own;
	t.format = format;
	ret = orc_build(out, &t, e);
	if (ret || format || orc_layout(*out) != ORC_LAYOUT_4_14)
		return ret;
	/*
	 * 4.18's layout looks like this if no entry is the end of a stack, and no stack ends in a
	 * module: an entry without a caller means that none is known.
	 */
	own_format = *orc_format_of(*out);
	own_format.layout = ORC_LAYOUT_4_18;
	orc_destroy(*out);
	*out = NULL;
	t.format = &own_format;
	return orc_build(out, &t, e);
}

static int load_orc(const struct linux_module_layout *l, const struct memory *m,
		    struct linux_module *mod, struct err *e)
{
	cleanup_free uint8_t *ips = NULL;
	cleanup_free uint8_t *entries = NULL;
	struct orc_format kernel = l->orc_format;
	struct orc_tables all = { .format = kernel.layout ? &kernel : NULL };
	uint64_t entries_va;
	uint32_t n;
	int ret, ret2 = 0;

	/* No stack ends in a module, which is the only difference between 4.14 and 4.18. */
	if (kernel.layout == ORC_LAYOUT_4_14)
		kernel.layout = ORC_LAYOUT_4_18;

	if (l->num_orcs == NONE || l->orc_ip == NONE || l->orc == NONE)
		return 0;
	if (!memory_u32(m, mod->module + l->num_orcs, &n) ||
	    !memory_u64(m, mod->module + l->orc_ip, &all.ips_va) ||
	    !memory_u64(m, mod->module + l->orc, &entries_va))
		return -ENOENT;
	if (!n)
		return 0;
	if (n > LINUX_MODULE_MAX_ORCS)
		return -E2BIG;
	ips = fetch(m, all.ips_va, n * 4ul, &ret);
	if (ret)
		return ret;
	entries = fetch(m, entries_va, n * (size_t)ORC_ENTRY_BYTES, &ret);
	if (ret)
		return ret;
	all.n = n;
	all.ips = ips;
	all.entries = entries;
	if (mod->text.end)
		ret = build_orc(&mod->text, &all, &mod->orc, e);
	if (mod->init_text.end)
		ret2 = build_orc(&mod->init_text, &all, &mod->init_orc, e);
	return ret ? ret : ret2;
}

int linux_module_load(const struct linux_module_layout *l, const struct memory *m,
		      struct linux_module *mod, struct err *e)
{
	struct err orc_err = { 0 };
	int ret, ret2;

	symtab_destroy(mod->symbols);
	orc_destroy(mod->orc);
	orc_destroy(mod->init_orc);
	mod->symbols = NULL;
	mod->orc = mod->init_orc = NULL;
	ret = load_symbols(l, m, mod, &mod->symbols);
	ret2 = load_orc(l, m, mod, &orc_err);
	if (ret)
		return err_set(e, -ret, "module %s: no symbols: %s", mod->name, strerror(-ret));
	if (ret2)
		return err_set(e, -ret2, "module %s: no unwind table: %s", mod->name,
			       orc_err.code ? orc_err.text : strerror(-ret2));
	return 0;
}
