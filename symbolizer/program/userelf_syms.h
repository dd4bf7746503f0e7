/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_syms: what the readers of a user file's names share; inside of
 * userelf_*.c, not for others.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_SYMS_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_SYMS_H

#include "symbolizer/program/userelf.h"

#include <elf.h>

/* A table of symbols and their names, as far as they are in memory. */
struct userelf_table {
	struct filepiece sym, str;
	uint32_t count;
};

struct userelf_load {
	const struct userelf *u;
	struct symtab *t; /* where names go */
	struct userelf_names n;
	struct filepiece shdrs, shstr; /* empty when there are no sections */
	uint32_t shnum;
	struct userelf_table dyn; /* .dynsym; empty when there is none */
	bool no_memory, full;	  /* of symtab_add */
	bool whole;		  /* there is a table that has the static functions, too */
	/* Says where functions end. Opened (asked_cfi) for the first one without a size; NULL: there is none. */
	struct userelf_cfi *cfi;
	bool asked_cfi;
};

/* Keep the first reason. */
void userelf_why(struct userelf_load *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* i < shnum; false when that header is not in memory. */
bool userelf_section(const struct userelf_load *l, uint32_t i, Elf64_Shdr *s);
/* "" when it has none, or it is not in memory. */
const char *userelf_section_name(const struct userelf_load *l, const Elf64_Shdr *s);

/* False when the table is full or there is no memory. */
bool userelf_add(struct userelf_load *l, uint64_t va, uint64_t size, char type, const char *name);

/* i < count; false when it is not in memory. */
bool userelf_table_sym(const struct userelf_table *t, uint32_t i, Elf64_Sym *s);

#endif
