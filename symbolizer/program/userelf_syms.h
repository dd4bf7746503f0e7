/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_syms: shared by the readers of a user file's names. Only for userelf_*.c. Called by the
 * thread that loads the names.
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

/* The state while names are being loaded. */
struct userelf_load {
	const struct userelf *u;
	struct symtab *t; /* receives the names */
	struct userelf_names n;
	struct filepiece shdrs, shstr; /* empty if there are no sections */
	uint32_t shnum;
	struct userelf_table dyn; /* .dynsym; empty if there is none */
	bool no_memory, full;	  /* results of symtab_add() */
	bool whole;		  /* a table with static functions exists */
	/*
	 * Finds the ends of functions. Opened (asked_cfi) for the first function without a size;
	 * NULL: not available.
	 */
	struct userelf_cfi *cfi;
	bool asked_cfi;
};

/* Records the reason why a part is missing, unless one is recorded already. */
void userelf_note_reason(struct userelf_load *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Reads section header i, less than shnum. Returns false if it is not in memory. */
bool userelf_section(const struct userelf_load *l, uint32_t i, Elf64_Shdr *s);
/* Returns the section's name, or "" if it has none or it is not in memory. */
const char *userelf_section_name(const struct userelf_load *l, const Elf64_Shdr *s);

/* Adds a symbol. Returns false if the table is full or out of memory. */
bool userelf_add(struct userelf_load *l, uint64_t va, uint64_t size, char type, const char *name);

/* Reads symbol i, less than count. Returns false if it is not in memory. */
bool userelf_table_sym(const struct userelf_table *t, uint32_t i, Elf64_Sym *s);

#endif
