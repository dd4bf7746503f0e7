/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names the procedure linkage table: small entries, without symbols, through which calls leave the
 * file. Each ends with
 *
 *	[f3 0f 1e fa] [f2] ff 25 rel32		[endbr64;] [bnd] jmp *slot(%rip)
 *
 * (x86-64 ABI, "Procedure Linkage Table"; binutils' elf64-x86-64.c has the forms with endbr64 and
 * .plt.sec). The relocation of the slot names the target, with or without lazy binding, and in any
 * order of the linker's.
 */
#include "symbolizer/program/userelf_plt.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS (1u << 20)
#define RELA_SIZE 24u
/* Maximum number of sections of each kind; a file has two or three. */
#define MAX_PARTS 16u

struct slot {
	uint64_t va;
	uint64_t addend; /* IRELATIVE: address of the resolver */
	uint32_t sym;	 /* index in .dynsym; 0: IRELATIVE */
};

struct slots {
	struct slot *s;
	size_t n, cap;
};

static int slot_cmp(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return a->va < b->va ? -1 : a->va > b->va;
}

static bool keep_slot(struct slots *all, struct slot s)
{
	if (ARRAY_ROOM(all->s, all->n, all->cap))
		return false;
	all->s[all->n++] = s;
	return true;
}

static void read_slots(struct userelf_load *l, const Elf64_Shdr *s, struct slots *all)
{
	struct filepiece p = { 0 };
	struct cursor c;

	if (s->sh_entsize != RELA_SIZE ||
	    filepiece_read(&p, &l->u->src, s->sh_offset, s->sh_size, USERELF_MAX_TABLE) < 0)
		return;
	if (p.nmissing) {
		l->n.plt = USERELF_HOLES;
		userelf_note_reason(l, "relocations of the PLT are not in memory");
	}
	for (c = filepiece_cursor(&p); cursor_left(&c) >= RELA_SIZE && all->n < MAX_SLOTS;) {
		size_t at = c.pos;
		uint64_t va = cursor_u64(&c), info = cursor_u64(&c), addend = cursor_u64(&c);
		uint32_t type = (uint32_t)info, sym = (uint32_t)(info >> 32);

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
		    type != R_X86_64_IRELATIVE)
			continue;
		if ((type == R_X86_64_IRELATIVE) != (sym == 0) || !filepiece_has(&p, at, RELA_SIZE))
			continue;
		if (!keep_slot(all, (struct slot){ va, addend, sym })) {
			l->no_memory = true;
			break;
		}
	}
	filepiece_deinit(&p);
}

/* Returns the address of the slot through which the entry jumps, or 0. */
static uint64_t slot_of(const uint8_t *p, size_t len, uint64_t va)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;
	int32_t rel;

	if (len >= 4 && !memcmp(p, endbr64, 4))
		at = 4;
	if (at < len && p[at] == 0xf2)
		at++;
	if (len - at < 6 || p[at] != 0xff || p[at + 1] != 0x25)
		return 0;
	memcpy(&rel, p + at + 2, 4);
	return va + at + 6 + (uint64_t)(int64_t)rel;
}

static void name_entry(struct userelf_load *l, uint64_t va, uint64_t size, const struct slot *slot)
{
	char name[SYMTAB_MAX_NAME + 1];
	const char *of;
	Elf64_Sym sym;

	if (slot->sym) {
		of = userelf_table_sym(&l->dyn, slot->sym, &sym)
			     ? filepiece_str(&l->dyn.str, sym.st_name, SYMTAB_MAX_NAME - 4)
			     : NULL;
		if (!of || !*of) {
			l->n.lost++;
			return;
		}
		snprintf(name, sizeof(name), "%s@plt", of);
	} else {
		snprintf(name, sizeof(name), "*ABS*+0x%llx@plt", (unsigned long long)slot->addend);
	}
	l->n.from_plt += userelf_add(l, va, size, 't', name);
}

static void read_plt(struct userelf_load *l, const Elf64_Shdr *s, const struct slots *all)
{
	uint64_t step = s->sh_entsize >= 8 && s->sh_entsize <= 64 ? s->sh_entsize : 16;
	struct filepiece p = { 0 };

	if (filepiece_read(&p, &l->u->src, s->sh_offset, s->sh_size, USERELF_MAX_TABLE) < 0) {
		l->n.plt = USERELF_BAD;
		return;
	}
	if (!l->n.plt)
		l->n.plt = p.nmissing ? USERELF_HOLES : USERELF_READ;
	for (uint64_t at = 0; step <= p.len && at <= p.len - step && !l->full; at += step) {
		struct slot key = { .va = slot_of(p.data + at, step, s->sh_addr + at) };
		const struct slot *found;

		if (!filepiece_has(&p, at, step)) {
			l->n.lost++;
			continue;
		}
		found = key.va ? bsearch(&key, all->s, all->n, sizeof(key), slot_cmp) : NULL;
		if (found)
			name_entry(l, s->sh_addr + at, step, found);
	}
	filepiece_deinit(&p);
}

void userelf_load_plt(struct userelf_load *l)
{
	struct slots all = { 0 };
	unsigned int relas = 0, plts = 0;
	Elf64_Shdr s;

	for (uint32_t i = 1; i < l->shnum && relas < MAX_PARTS; i++)
		if (userelf_section(l, i, &s) && s.sh_type == SHT_RELA &&
		    (s.sh_flags & SHF_ALLOC)) {
			read_slots(l, &s, &all);
			relas++;
		}
	if (all.n)
		qsort(all.s, all.n, sizeof(*all.s), slot_cmp);
	for (uint32_t i = 1; i < l->shnum && all.n && !l->no_memory && plts < MAX_PARTS; i++) {
		const char *name;

		if (!userelf_section(l, i, &s) || s.sh_type != SHT_PROGBITS ||
		    !(s.sh_flags & SHF_EXECINSTR))
			continue;
		name = userelf_section_name(l, &s);
		if (!strcmp(name, ".plt") || !strcmp(name, ".plt.sec") ||
		    !strcmp(name, ".plt.got") || !strcmp(name, ".iplt")) {
			read_plt(l, &s, &all);
			plts++;
		}
	}
	free(all.s);
}
