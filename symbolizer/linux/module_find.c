/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the members of struct module without any description of it.
 *
 * Its beginning is the same in all kernels: state, list, name. The rest is found by the form that
 * it must have in all loaded modules:
 *
 *	kallsyms	points to {symtab, num_symtab, strtab, typetab}: the first symbol is
 *			zeros, and each has a letter as in nm
 *	text		{base, .. size}: pages that have all code that these symbols name, and
 *			not the struct module, which lies among the module's data
 *	init text	the like of text: behind it in a kernel whose one area has both
 *			(core_layout, then init_layout), else in the fifth of a row of areas
 *			(mem[]), of which the second has the struct module
 *	ORC		{num_orcs, orc_unwind_ip, orc_unwind}: addresses that rise, in the text
 *
 * A place is accepted only if all modules agree and no second place fits.
 */
#include "symbolizer/linux/module_find.h"

#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE LINUX_MODULE_NONE
/* Bytes of a struct module that are searched; kernels have 512 to 1,600. */
#define SPAN 4096u
#define MAX_MODULES 16u
#define LIST 8u
#define NAME 24u
/* MODULE_NAME_LEN */
#define NAME_SIZE 56u
#define PAGE 4096u
/* Offsets in struct mod_kallsyms. */
enum { SYMTAB = 0, NUM_SYMTAB = 8, STRTAB = 16, TYPETAB = 24, KALLSYMS_SIZE = 32 };
/* struct module_layout: {base, size, text_size, ro_size, ro_after_init_size}, then the tree's. */
enum { LAYOUT_TEXT_SIZE = 12, LAYOUT_TREE = 24, LAYOUT_SIZE = 24, TREE_SIZE = 56 };
/* enum mod_mem_type */
enum { MOD_TEXT = 0, MOD_DATA = 1, MOD_INIT_TEXT = 4 };
#define MAX_STRIDE 128u

struct seen_module {
	uint64_t va;
	size_t len;
	uint8_t bytes[SPAN];
	/* The lowest and the highest address of the code symbols. */
	uint64_t low, high;
};

struct module_find_finder {
	const struct memory *m;
	struct linux_module_layout l;
	struct seen_module *mod; /* the loaded modules */
	unsigned int n;
	size_t len; /* bytes that are available for all of them */
};

static int not_one(struct err *e, const char *what, unsigned int fits)
{
	return err_set(e, ENOENT,
		       "can't read the list of modules: %u places in a struct module may be its %s "
		       "(it has to be exactly one; no type information)",
		       fits, what);
}

/* -- the modules ----------------------------------------------------------------------- */

/* Returns whether it is a module's name: strncpy() has padded it, so zeros follow its NUL. */
static bool is_module_name(const struct seen_module *x)
{
	const char *name = (const char *)x->bytes + NAME;
	size_t n = strnlen(name, NAME_SIZE);

	for (size_t i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return n && n < NAME_SIZE && !name[NAME_SIZE - 1];
}

/*
 * Reads a module. Returns 1 if it is loaded, 0 if it is being loaded or unloaded, or -ENOENT if it
 * is not a module.
 */
static int take_module(struct module_find_finder *f, uint64_t va)
{
	struct seen_module *x = &f->mod[f->n];

	*x = (struct seen_module){ .va = va };
	x->len = f->m->read(f->m->ctx, MEMORY_KERNEL, va, x->bytes, SPAN) & ~(size_t)7;
	if (x->len < NAME + NAME_SIZE || memory_half(x->bytes, 0) > LINUX_MODULE_UNFORMED)
		return -ENOENT;
	if (memory_half(x->bytes, 0) != LINUX_MODULE_LIVE)
		return 0;
	if (!is_module_name(x))
		return -ENOENT;
	f->len = x->len < f->len ? x->len : f->len;
	f->n++;
	return 1;
}

static int take_modules(struct module_find_finder *f, struct err *e)
{
	uint64_t at = f->l.modules, next, prev;

	for (unsigned int i = 0; i < LINUX_MODULE_MAX && f->n < MAX_MODULES; i++) {
		if (!memory_u64(f->m, at, &next) || !(next >> 63) || next % 8 || next < LIST ||
		    !memory_u64(f->m, next + 8, &prev) || prev != at)
			return err_set(e, ENOENT, "the list of modules is not in order");
		if (next == f->l.modules)
			break;
		if (take_module(f, next - LIST) < 0)
			return err_set(
				e, ENOENT,
				"what the list of modules has is none (no type information)");
		at = next;
	}
	return f->n ? 0 : err_set(e, ENOENT, "no module is loaded yet");
}

/* -- symbols ------------------------------------------------------------------------------ */

static bool is_letter(uint8_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '?';
}

/*
 * Checks the letters of all symbols, and determines the range of code symbols. Without a typetab
 * the letters are in st_info.
 */
static bool take_symbols(const struct memory *m, struct seen_module *x, const uint64_t table[4],
			 uint32_t n, bool typetab)
{
	cleanup_free uint8_t *syms = malloc(n * sizeof(Elf64_Sym));
	cleanup_free uint8_t *types = malloc(n);

	if (!syms || !types ||
	    !memory_read(m, MEMORY_KERNEL, table[0], syms, n * sizeof(Elf64_Sym)) ||
	    (typetab && !memory_read(m, MEMORY_KERNEL, table[3], types, n)))
		return false;
	x->low = UINT64_MAX;
	x->high = 0;
	for (uint32_t i = 0; i < n; i++) {
		static const Elf64_Sym zero;
		Elf64_Sym s;
		uint8_t letter;

		memcpy(&s, syms + i * sizeof(s), sizeof(s));
		if (i == 0 && (memcmp(&s.st_value, &zero.st_value, 16) != 0 || s.st_name))
			return false;
		letter = typetab ? types[i] : s.st_info;
		if (i && !is_letter(letter))
			return false;
		if (!i || (letter | 0x20) != 't' || !(s.st_value >> 63))
			continue;
		x->low = s.st_value < x->low ? s.st_value : x->low;
		x->high = s.st_value > x->high ? s.st_value : x->high;
	}
	return x->high;
}

static bool kallsyms_fit(struct module_find_finder *f, uint32_t off, bool typetab)
{
	for (unsigned int i = 0; i < f->n; i++) {
		struct seen_module *x = &f->mod[i];
		uint64_t at = memory_word(x->bytes, off), table[KALLSYMS_SIZE / 8];
		uint32_t n;

		if (!(at >> 63) || at % 8 ||
		    !memory_read(f->m, MEMORY_KERNEL, at, table, typetab ? 32 : 24))
			return false;
		n = (uint32_t)table[NUM_SYMTAB / 8];
		if (!(table[SYMTAB / 8] >> 63) || table[SYMTAB / 8] % 8 || n < 2 ||
		    n > LINUX_MODULE_MAX_SYMBOLS || !(table[STRTAB / 8] >> 63) ||
		    (typetab && !(table[TYPETAB / 8] >> 63)) ||
		    !take_symbols(f->m, x, table, n, typetab))
			return false;
	}
	return true;
}

static int find_kallsyms(struct module_find_finder *f, struct err *e)
{
	for (int typetab = 1; typetab >= 0; typetab--) {
		unsigned int fits = 0;

		for (uint32_t off = NAME + NAME_SIZE; off + 8 <= f->len; off += 8) {
			if (!kallsyms_fit(f, off, typetab))
				continue;
			fits++;
			f->l.kallsyms = off;
		}
		if (fits > 1 || (!fits && !typetab))
			return not_one(e, "kallsyms", fits);
		if (!fits)
			continue;
		/*
		 * The bounds of the code are those of the place that was tried last, so set them
		 * again.
		 */
		(void)kallsyms_fit(f, f->l.kallsyms, typetab);
		f->l.symtab = SYMTAB;
		f->l.num_symtab = NUM_SYMTAB;
		f->l.strtab = STRTAB;
		f->l.typetab = typetab ? TYPETAB : NONE;
		break;
	}
	return 0;
}

/* -- areas -------------------------------------------------------------------------------- */

/* Reads the area whose base is at off, with its size size_off bytes after that. */
static bool area_at(const struct seen_module *x, size_t off, uint32_t size_off, uint64_t *base,
		    uint64_t *len)
{
	*base = memory_word(x->bytes, off);
	*len = memory_half(x->bytes, off + size_off);
	return *base >> 63 && *base % PAGE == 0 && *len && *len <= LINUX_MODULE_MAX_TEXT &&
	       *base <= UINT64_MAX - *len;
}

static bool has_itself(const struct module_find_finder *f, size_t off, uint32_t size_off)
{
	uint64_t base, len;

	for (unsigned int i = 0; i < f->n; i++)
		if (!area_at(&f->mod[i], off, size_off, &base, &len) || f->mod[i].va < base ||
		    f->mod[i].va - base >= len)
			return false;
	return true;
}

static bool is_text(const struct module_find_finder *f, size_t off, uint32_t size_off)
{
	uint64_t base, len;

	for (unsigned int i = 0; i < f->n; i++) {
		const struct seen_module *x = &f->mod[i];

		if (!area_at(x, off, size_off, &base, &len) || x->low < base ||
		    x->high - base >= len || (x->va >= base && x->va - base < len))
			return false;
	}
	return true;
}

/* Returns whether the init text is gone, as in a loaded module. */
static bool is_gone(const struct module_find_finder *f, size_t off, uint32_t size_off)
{
	for (unsigned int i = 0; i < f->n; i++)
		if (off + size_off + 4 > f->len || memory_word(f->mod[i].bytes, off) ||
		    memory_half(f->mod[i].bytes, off + size_off))
			return false;
	return true;
}

/* Returns the distance from text to the init text; 0: not found. */
static size_t find_init(const struct module_find_finder *f, size_t text, uint32_t size_off)
{
	size_t stride = 0;

	/*
	 * One area for everything, with four sizes. Its tree's node begins with a pointer to the
	 * module.
	 */
	if (has_itself(f, text, 8)) {
		if (size_off != LAYOUT_TEXT_SIZE)
			return 0;
		stride = LAYOUT_SIZE;
		if (text + LAYOUT_TREE + 8 <= f->len &&
		    memory_word(f->mod[0].bytes, text + LAYOUT_TREE) == f->mod[0].va)
			stride += TREE_SIZE;
		return is_gone(f, text + stride, size_off) ? stride : 0;
	}
	for (size_t s = 16; s <= MAX_STRIDE && text + s + 24 <= f->len; s += 8) {
		if (!has_itself(f, text + s * MOD_DATA, size_off))
			continue;
		if (stride)
			return 0;
		stride = s;
	}
	return stride && is_gone(f, text + stride * MOD_INIT_TEXT, size_off)
		       ? stride * MOD_INIT_TEXT
		       : 0;
}

static int find_areas(struct module_find_finder *f, struct err *e)
{
	/* mem[].size; core_layout.text_size, or mem[].size with is_rox; with rw_copy. */
	static const uint32_t size_off[] = { 8, 12, 20 };
	unsigned int fits = 0;

	for (size_t off = NAME + NAME_SIZE; off + 24 <= f->len; off += 8)
		for (size_t i = 0; i < ARRAY_SIZE(size_off); i++) {
			size_t init;

			/* With rw_copy, the base follows as well. */
			if (!is_text(f, off, size_off[i]) ||
			    (fits && f->l.text_size == off + size_off[i]))
				continue;
			init = find_init(f, off, size_off[i]);
			if (!init)
				continue;
			fits++;
			f->l.text_base = (uint32_t)off;
			f->l.text_size = (uint32_t)off + size_off[i];
			f->l.init_base = (uint32_t)(off + init);
			f->l.init_size = (uint32_t)(off + init) + size_off[i];
		}
	return fits == 1 ? 0 : not_one(e, "text", fits);
}

/* -- ORC --------------------------------------------------------------------------------- */

/*
 * Returns whether the addresses rise and some are in the text: the others belong to init text that
 * is gone.
 */
static bool orc_fits(const struct module_find_finder *f, const struct seen_module *x, uint32_t off)
{
	uint32_t n = memory_half(x->bytes, off), in_text = 0;
	uint64_t ips = memory_word(x->bytes, off + 8), base = memory_word(x->bytes, f->l.text_base),
		 len = memory_half(x->bytes, f->l.text_size), last = 0;
	cleanup_free int32_t *rel = NULL;

	if (!n)
		return true;
	if (n > LINUX_MODULE_MAX_ORCS || !(ips >> 63) || ips % 4 ||
	    !(memory_word(x->bytes, off + 16) >> 63) || memory_word(x->bytes, off + 16) == ips)
		return false;
	rel = malloc(n * sizeof(*rel));
	if (!rel || !memory_read(f->m, MEMORY_KERNEL, ips, rel, n * sizeof(*rel)))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t va = ips + 4ull * i + (uint64_t)(int64_t)rel[i];

		if (va < last)
			return false;
		last = va;
		in_text += va >= base && va - base <= len;
	}
	return in_text;
}

/* Finds the ORC tables; a kernel without them has none. */
static void find_orc(struct module_find_finder *f)
{
	unsigned int fits = 0;

	for (uint32_t off = NAME + NAME_SIZE; off + 24 <= f->len; off += 8) {
		bool any = false, all = true;

		for (unsigned int i = 0; all && i < f->n; i++) {
			any |= memory_half(f->mod[i].bytes, off) != 0;
			all = orc_fits(f, &f->mod[i], off);
		}
		if (!any || !all)
			continue;
		fits++;
		f->l.num_orcs = off;
		f->l.orc_ip = off + 8;
		f->l.orc = off + 16;
	}
	if (fits != 1)
		f->l.num_orcs = f->l.orc_ip = f->l.orc = NONE;
}

static int find_members(struct module_find_finder *f, struct err *e)
{
	int ret = take_modules(f, e);

	if (ret)
		return ret;
	ret = find_kallsyms(f, e);
	if (ret)
		return ret;
	return find_areas(f, e);
}

int linux_module_find(struct linux_module_layout *l, const struct memory *m, struct err *e)
{
	struct module_find_finder f = { .m = m, .l = *l, .len = SPAN };
	int ret;

	if (!l->modules)
		return -ENOENT; /* linux_module_layout() has reported the reason */
	f.mod = calloc(MAX_MODULES + 1, sizeof(*f.mod));
	if (!f.mod)
		return err_set(e, ENOMEM, "no memory to look for modules");
	ret = find_members(&f, e);
	if (!ret) {
		find_orc(&f);
		f.l.build_id = f.l.notes_attrs = f.l.notes = f.l.attrs = NONE;
		f.l.attr_size = f.l.attr_data = NONE;
		f.l.state = 0;
		f.l.list = LIST;
		f.l.name = NAME;
		f.l.name_size = NAME_SIZE;
		*l = f.l;
	}
	free(f.mod);
	return ret;
}
