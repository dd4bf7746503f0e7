/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the dynamic symbols of a file without section headers, or whose section headers are not in
 * memory. PT_DYNAMIC refers to symbols and strings but does not contain the number of symbols,
 * which follows from the hash table.
 *
 *	DT_HASH		nbucket, nchain, ... nchain: symbols
 *	DT_GNU_HASH	nbuckets, symoffset, bloom_size, bloom_shift,
 *			bloom[bloom_size] of 8 bytes, buckets[nbuckets] of 4 bytes: the
 *			first symbol of each, chain[] of 4 bytes from symbol symoffset
 *			on: the lowest bit ends a chain
 */
#include "symbolizer/program/userelf_dynamic.h"

#include <errno.h>
#include <string.h>

#define MAX_DYNAMIC_BYTES (64u << 10)
#define MAX_DYNSYMS (4u << 20)
/* Limit for the symbols in one bucket of a hash table: linkers make tables with few. */
#define MAX_CHAIN 65536u

struct dynamic {
	uint64_t symtab, strtab, strsz, syment, hash, gnu_hash; /* addresses; 0: none */
};

static bool read_dynamic(const struct userelf_load *l, struct dynamic *d)
{
	struct filepiece p = { 0 };
	struct cursor c;
	bool ok;

	if (filepiece_read(&p, &l->u->src, l->u->dynamic_off, l->u->dynamic_len,
			   MAX_DYNAMIC_BYTES) < 0)
		return false;
	ok = p.nmissing == 0;
	for (c = filepiece_cursor(&p); ok && cursor_left(&c) >= sizeof(Elf64_Dyn);) {
		uint64_t tag = cursor_u64(&c), value = cursor_u64(&c);

		if (tag == DT_NULL)
			break;
		switch (tag) {
		case DT_SYMTAB:
			d->symtab = value;
			break;
		case DT_STRTAB:
			d->strtab = value;
			break;
		case DT_STRSZ:
			d->strsz = value;
			break;
		case DT_SYMENT:
			d->syment = value;
			break;
		case DT_HASH:
			d->hash = value;
			break;
		case DT_GNU_HASH:
			d->gnu_hash = value;
			break;
		}
	}
	filepiece_deinit(&p);
	return ok && d->symtab && d->strtab && d->strsz && d->syment == sizeof(Elf64_Sym);
}

/* Reads the bytes at an address from the file, at most to the end of the segment. */
static int read_va(const struct userelf_load *l, struct filepiece *p, uint64_t va, uint64_t len)
{
	uint64_t off;

	if (!userelf_off_of(l->u, va, &off))
		return -EINVAL;
	return filepiece_read(p, &l->u->src, off, len, USERELF_MAX_TABLE);
}

static uint32_t count_by_hash(const struct userelf_load *l, uint64_t va)
{
	struct filepiece p = { 0 };
	struct cursor c;
	uint32_t n = 0;

	if (read_va(l, &p, va, 8) < 0)
		return 0;
	if (p.nmissing == 0) {
		c = filepiece_cursor(&p);
		cursor_skip(&c, 4);
		n = cursor_u32(&c);
	}
	filepiece_deinit(&p);
	return n;
}

static uint32_t u32_at(const struct filepiece *p, uint64_t at, bool *ok)
{
	struct cursor c = filepiece_cursor(p);

	if (!filepiece_has(p, at, 4)) {
		*ok = false;
		return 0;
	}
	cursor_seek(&c, at);
	return cursor_u32(&c);
}

/* Counts the symbols: the last one is at the end of the chain of the bucket that begins highest. */
static uint32_t count_by_gnu_hash(const struct userelf_load *l, uint64_t va)
{
	struct filepiece head = { 0 }, buckets = { 0 }, chain = { 0 };
	uint32_t nbuckets, symoffset, bloom, last = 0, end;
	bool ok = true;

	if (read_va(l, &head, va, 16) < 0)
		return 0;
	nbuckets = u32_at(&head, 0, &ok);
	symoffset = u32_at(&head, 4, &ok);
	bloom = u32_at(&head, 8, &ok);
	filepiece_deinit(&head);
	if (!ok || nbuckets > MAX_DYNSYMS || bloom > MAX_DYNSYMS ||
	    read_va(l, &buckets, va + 16 + 8ull * bloom, 4ull * nbuckets) < 0)
		return 0;
	for (uint32_t i = 0; i < nbuckets && ok; i++) {
		uint32_t first = u32_at(&buckets, 4ull * i, &ok);

		if (first > last)
			last = first;
	}
	filepiece_deinit(&buckets);
	/* If all buckets are empty, all symbols are below symoffset, and are not defined here. */
	if (!ok || last < symoffset || last >= MAX_DYNSYMS)
		return 0;
	va += 16 + 8ull * bloom + 4ull * nbuckets;
	end = last + MAX_CHAIN;
	for (; ok && last < end; last++) {
		uint32_t h;

		if (read_va(l, &chain, va + 4ull * (last - symoffset), 4) < 0)
			return 0;
		h = u32_at(&chain, 0, &ok);
		filepiece_deinit(&chain);
		if (ok && (h & 1))
			return last + 1;
	}
	return 0;
}

void userelf_find_dynamic(struct userelf_load *l)
{
	struct userelf_table t = { 0 };
	struct dynamic d = { 0 };
	uint32_t n = 0;

	l->n.dynsym = USERELF_BAD;
	if (!read_dynamic(l, &d)) {
		userelf_note_reason(l, "PT_DYNAMIC is not in memory, or tells of no symbols");
		return;
	}
	if (d.hash)
		n = count_by_hash(l, d.hash);
	if (!n && d.gnu_hash)
		n = count_by_gnu_hash(l, d.gnu_hash);
	if (!n || n > MAX_DYNSYMS) {
		userelf_note_reason(
			l, "the hash table that counts the dynamic symbols is not in memory, "
			   "or damaged");
		return;
	}
	if (read_va(l, &t.sym, d.symtab, (uint64_t)n * sizeof(Elf64_Sym)) < 0 ||
	    read_va(l, &t.str, d.strtab, d.strsz) < 0) {
		filepiece_deinit(&t.sym);
		userelf_note_reason(
			l, "%u dynamic symbols at 0x%llx, names at 0x%llx: not in the file", n,
			(unsigned long long)d.symtab, (unsigned long long)d.strtab);
		return;
	}
	t.count = n;
	l->dyn = t;
	l->n.dynsym = t.sym.nmissing || t.str.nmissing ? USERELF_HOLES : USERELF_READ;
	if (l->n.dynsym == USERELF_HOLES)
		userelf_note_reason(l, "%u pages of the dynamic symbols are not in memory",
				    t.sym.nmissing + t.str.nmissing);
}

int userelf_object(const struct userelf *u, const char *name, uint64_t *va)
{
	struct userelf_load l = { .u = u };
	size_t room = strlen(name) + 1;
	int ret = -ENOENT;

	if (!u->dynamic_off)
		return -ENOENT;
	userelf_find_dynamic(&l);
	for (uint32_t i = 0; i < l.dyn.count && ret == -ENOENT; i++) {
		const char *is;
		Elf64_Sym s;

		if (!userelf_table_sym(&l.dyn, i, &s) || ELF64_ST_TYPE(s.st_info) != STT_OBJECT ||
		    s.st_shndx == SHN_UNDEF)
			continue;
		is = filepiece_str(&l.dyn.str, s.st_name, room);
		if (!is || strcmp(is, name) != 0)
			continue;
		*va = s.st_value;
		ret = 0;
	}
	if (ret && l.n.dynsym != USERELF_READ)
		ret = -ENODATA;
	filepiece_deinit(&l.dyn.sym);
	filepiece_deinit(&l.dyn.str);
	return ret;
}
