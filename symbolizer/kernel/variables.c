/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/variables.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of words with one content that may be the variable. */
#define MAX_WORDS 64u
/* Minimum number of loads of a variable, and how many times those of the next one they must be. */
#define MIN_LOADS 8u
#define LEAD 4u
/* Maximum number of array uses that are examined. */
#define MAX_USES (1u << 20)
/* Bytes of the longest function that is examined. */
#define MAX_FUNCTION 65536u
#define MAX_HEADS 16u
/* A task_struct has some 2 to 10 KiB. */
#define MAX_TASK 16384u
/* __PAGE_OFFSET_BASE_L4 and __VMEMMAP_BASE_L4, arch/x86/include/asm/page_64_types.h. */
#define PAGE_OFFSET_BASE UINT64_C(0xffff888000000000)
#define VMEMMAP_BASE UINT64_C(0xffffea0000000000)

/* -- uses in code ------------------------------------------------------------------- */

/* A word that one instruction addresses. */
struct use {
	uint64_t va;
	bool percpu; /* relative to GS */
	bool array;  /* va is the address of an array; the index is in a register */
};

static uint64_t extended(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, 4);
	return (uint64_t)(int64_t)v;
}

/*
 * Decodes mov, add, sub or cmp of a 64-bit register with a word whose address is in the
 * instruction.
 */
static bool read_use(const uint8_t *p, uint64_t va, bool percpu, struct use *out)
{
	unsigned int rex = p[0], modrm = p[2], sib = p[3];

	if ((rex & 0xf9) != 0x48 || (p[1] != 0x8b && p[1] != 0x03 && p[1] != 0x2b && p[1] != 0x3b))
		return false;
	*out = (struct use){ .percpu = percpu };
	if ((modrm & 0xc7) == 0x05)
		out->va = va + 7 + extended(p + 3); /* relative to rip */
	else if ((modrm & 0xc7) != 0x04 || (sib & 7) != 5)
		return false;
	else
		out->va = extended(p + 4);
	/* This encoding has no index; the scale is then 0. */
	out->array = (modrm & 0xc7) == 0x04 && !(sib == 0x25 && !(rex & 2));
	return !out->array || sib >> 6 == 3;
}

/* -- words by their content ---------------------------------------------------------- */

struct variables_word {
	uint64_t va;
	unsigned int plain, percpu; /* loads */
};

struct variables_words {
	uint64_t content;
	struct variables_word word[MAX_WORDS];
	unsigned int n;
	bool many; /* more than MAX_WORDS */
};

enum { CURRENT_TASK, PAGE_OFFSET, VMEMMAP, CONTENTS };

struct variables_finder {
	const struct kimage *k;
	uint64_t init_task;
	unsigned int init_tasks;
	struct variables_words words[CONTENTS];
	uint64_t *array; /* addresses of arrays that code indexes */
	size_t n, cap;
	bool failed;
};

typedef void at_fn(struct variables_finder *f, uint64_t va, const uint8_t *p, size_t left);

/*
 * Calls fn for each aligned word. Data that is written only during the start may be among
 * read-only data.
 */
static void for_each_word(struct variables_finder *f, at_fn *fn)
{
	for (unsigned int i = 0; i < f->k->nseg; i++) {
		const struct kimage_segment *s = &f->k->seg[i];
		size_t avail = 0;
		const uint8_t *p = kimage_ptr(f->k, s->va, &avail);

		for (size_t at = -s->va & 7; p && at < avail && avail - at >= 8; at += 8)
			fn(f, s->va + at, p + at, avail - at);
	}
}

/* Offsets from real_parent, as in linux/task_find.c. */
enum { PARENT = 8, SIBLING = 32, LEADER = 48, FAMILY = 56 };

static void take_first_task(struct variables_finder *f, uint64_t va, const uint8_t *p, size_t left)
{
	uint64_t w[FAMILY / 8], sibling = va + SIBLING;

	if (left < FAMILY)
		return;
	memcpy(w, p, FAMILY);
	if (w[0] >> 63 && w[PARENT / 8] == w[0] && w[LEADER / 8] == w[0] &&
	    w[SIBLING / 8] == sibling && w[SIBLING / 8 + 1] == sibling && w[0] < va &&
	    va - w[0] < MAX_TASK) {
		f->init_task = w[0];
		f->init_tasks++;
	}
}

static void take_word(struct variables_finder *f, uint64_t va, const uint8_t *p, size_t left)
{
	(void)left;
	for (unsigned int i = 0; i < CONTENTS; i++) {
		struct variables_words *w = &f->words[i];

		if (!w->content || memcmp(p, &w->content, 8) != 0)
			continue;
		w->many |= w->n == MAX_WORDS;
		if (!w->many)
			w->word[w->n++] = (struct variables_word){ .va = va };
	}
}

static void count_load(struct variables_words *w, const struct use *u)
{
	for (unsigned int i = 0; i < w->n; i++) {
		w->word[i].percpu += w->word[i].va == u->va && u->percpu;
		w->word[i].plain += w->word[i].va == u->va && !u->percpu;
	}
}

static void count_use(struct variables_finder *f, const struct use *u)
{
	for (unsigned int i = 0; !u->array && i < CONTENTS; i++)
		count_load(&f->words[i], u);
	if (!u->array || u->percpu || !(u->va >> 63) || f->n == MAX_USES || f->failed)
		return;
	f->failed = ARRAY_ROOM(f->array, f->n, f->cap) < 0;
	if (!f->failed)
		f->array[f->n++] = u->va;
}

static void count_uses(struct variables_finder *f)
{
	for (unsigned int i = 0; i < f->k->nseg; i++) {
		const struct kimage_segment *s = &f->k->seg[i];
		size_t avail = 0;
		const uint8_t *p = s->flags & PF_X ? kimage_ptr(f->k, s->va, &avail) : NULL;
		struct use u;

		for (size_t at = 0; p && at + 8 <= avail; at++)
			if (read_use(p + at, s->va + at, at && p[at - 1] == 0x65, &u))
				count_use(f, &u);
	}
}

/*
 * Returns whether most loads are relative to GS: the byte before an instruction may look like its
 * prefix.
 */
static bool is_percpu(const struct variables_word *w)
{
	return w->percpu > w->plain;
}

/* Returns the variable among these that code loads, or NULL if several may be it. */
static const struct variables_word *most_loaded(const struct variables_words *w)
{
	const struct variables_word *best = NULL;
	unsigned int most = 0, next = 0;

	for (unsigned int i = 0; i < w->n; i++) {
		unsigned int n = w->word[i].plain + w->word[i].percpu;

		next = n > most ? most : n > next ? n : next;
		best = n > most ? &w->word[i] : best;
		most = n > most ? n : most;
	}
	return w->many || most < MIN_LOADS || most / LEAD < next ? NULL : best;
}

static int by_va(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the array that most code uses; 0 if it is ambiguous. */
static uint64_t most_used_array(struct variables_finder *f)
{
	size_t most = 0, next = 0;
	uint64_t best = 0;

	if (f->n)
		qsort(f->array, f->n, sizeof(*f->array), by_va);
	for (size_t i = 0, run; i < f->n; i += run) {
		for (run = 1; i + run < f->n && f->array[i + run] == f->array[i]; run++)
			;
		next = run > most ? most : run > next ? run : next;
		best = run > most ? f->array[i] : best;
		most = run > most ? run : most;
	}
	return most < MIN_LOADS || most / LEAD < next ? 0 : best;
}

/* -- modules -------------------------------------------------------------------------- */

/*
 * Returns whether an empty list is at va; not at 0, where per-CPU variables may begin: zeros are
 * not a list.
 */
static bool is_empty_list(const struct kimage *k, uint64_t va)
{
	uint64_t link[2];

	return va >> 63 && va % 8 == 0 && kimage_read(k, va, link, sizeof(link)) == 0 &&
	       link[0] == va && link[1] == va;
}

struct heads {
	uint64_t va[MAX_HEADS];
	unsigned int functions[MAX_HEADS], last[MAX_HEADS], n;
};

/* Counts a list head for a function, whose number is from 1. */
static void take_head(struct heads *h, uint64_t va, unsigned int function)
{
	unsigned int i = 0;

	while (i < h->n && h->va[i] != va)
		i++;
	if (i == MAX_HEADS)
		return;
	if (i == h->n)
		h->va[h->n++] = va;
	h->functions[i] += h->last[i] != function;
	h->last[i] = function;
}

/* Counts the empty lists whose address is in a function's code. */
static void take_heads(struct heads *h, const struct kimage *k, const struct symbol *s,
		       unsigned int function)
{
	size_t avail = 0;
	const uint8_t *p = kimage_ptr(k, s->addr, &avail);

	if (avail > s->size)
		avail = s->size;
	for (size_t at = 0; p && at + 4 <= avail && at < MAX_FUNCTION; at++) {
		uint64_t v = extended(p + at);

		if (is_empty_list(k, v))
			take_head(h, v, function);
		if (is_empty_list(k, s->addr + at + 4 + v))
			take_head(h, s->addr + at + 4 + v, function);
	}
}

static uint64_t find_modules(const struct kimage *k, const struct symtab *symbols)
{
	static const char *const function[] = {
		"print_modules",
		"find_module_all",
		"module_kallsyms_on_each_symbol",
		"module_get_kallsym",
		"module_address_lookup",
		"lookup_module_symbol_name",
		"module_kallsyms_lookup_name",
	};
	struct heads h = { 0 };
	unsigned int best = 0, ties = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(function); i++) {
		const struct symbol *s = symtab_find(symbols, function[i]);

		if (s)
			take_heads(&h, k, s, i + 1);
	}
	for (unsigned int i = 1; i < h.n; i++) {
		ties = h.functions[i] > h.functions[best]    ? 0
		       : h.functions[i] == h.functions[best] ? ties + 1
							     : ties;
		best = h.functions[i] > h.functions[best] ? i : best;
	}
	return h.n && h.functions[best] >= 2 && !ties ? h.va[best] : 0;
}

/* -- all --------------------------------------------------------------------------- */

struct found {
	const char *name;
	uint64_t va;
};

#define MAX_FOUND 6u

struct variables_result {
	struct found found[MAX_FOUND];
	unsigned int n;
};

static void variables_take(struct variables_result *r, const char *name, uint64_t va)
{
	r->found[r->n++] = (struct found){ name, va };
}

static void take_tasks(struct variables_result *r, struct variables_finder *f)
{
	const struct variables_word *current = most_loaded(&f->words[CURRENT_TASK]);
	uint64_t offsets;

	if (f->init_tasks == 1)
		variables_take(r, "init_task", f->init_task);
	if (!current)
		return;
	if (is_percpu(current)) {
		offsets = most_used_array(f);
		/* Without it, the other variable could not be known to be per CPU. */
		if (!offsets)
			return;
		variables_take(r, "__per_cpu_offset", offsets);
	}
	variables_take(r, "current_task", current->va);
}

/* Fills t with the symbols and the found variables. */
static int variables_fill(struct symtab *t, const struct symtab *symbols,
			  const struct variables_result *r, struct err *e)
{
	int ret;

	for (size_t i = 0; i < symtab_count(symbols); i++) {
		const struct symbol *s = symtab_at(symbols, i);

		ret = symtab_set_file(t, s->file);
		if (ret)
			return ret;
		ret = symtab_add(t, s->addr, s->size, s->type, s->name);
		if (ret)
			return ret;
	}
	ret = symtab_set_file(t, NULL);
	if (ret)
		return ret;
	for (unsigned int i = 0; i < r->n; i++) {
		if (symtab_find(symbols, r->found[i].name))
			continue;
		ret = symtab_add(t, r->found[i].va, 0, 'D', r->found[i].name);
		if (ret)
			return ret;
	}
	return symtab_freeze(t, e);
}

/* Replaces *symbols by a new table with the found variables. */
static int variables_join(struct symtab **symbols, const struct variables_result *r, struct err *e)
{
	struct symtab *t = symtab_create();
	int ret = t ? variables_fill(t, *symbols, r, e) : -ENOMEM;

	if (ret) {
		symtab_destroy(t);
		return err_set(e, -ret, "no memory for the kernel's variables");
	}
	symtab_destroy(*symbols);
	*symbols = t;
	return 0;
}

int variables_add(const struct kimage *k, struct symtab **symbols, struct err *e)
{
	struct variables_finder f = { .k = k };
	struct variables_result r = { .n = 0 };
	const struct variables_word *pages, *vmemmap;
	uint64_t modules = find_modules(k, *symbols);

	for_each_word(&f, take_first_task);
	f.words[CURRENT_TASK].content = f.init_tasks == 1 ? f.init_task : 0;
	f.words[PAGE_OFFSET].content = PAGE_OFFSET_BASE;
	f.words[VMEMMAP].content = VMEMMAP_BASE;
	for_each_word(&f, take_word);
	count_uses(&f);
	take_tasks(&r, &f);
	free(f.array);
	if (f.failed)
		return err_set(e, ENOMEM, "no memory to look for the kernel's variables");
	pages = most_loaded(&f.words[PAGE_OFFSET]);
	vmemmap = most_loaded(&f.words[VMEMMAP]);
	/* Either both are moved or none. */
	if (pages && vmemmap && !is_percpu(pages) && !is_percpu(vmemmap)) {
		variables_take(&r, "page_offset_base", pages->va);
		variables_take(&r, "vmemmap_base", vmemmap->va);
	}
	if (modules)
		variables_take(&r, "modules", modules);
	return r.n ? variables_join(symbols, &r, e) : 0;
}
