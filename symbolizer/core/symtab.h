/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symtab: addresses to names.
 *
 * Built by one thread (create, add..., freeze), then read-only and lock-free.
 * Several symbols at one address are aliases. As in Linux's scripts/kallsyms.c lookup
 * prefers a function over a mark of the linker script and a strong symbol over a weak one,
 * then the name with fewer leading underscores; before all that a function symbol with a
 * size, and after it a global symbol, the shorter name, and the lexicographically smaller
 * one, so the answer never depends on the order of the input.
 * A code symbol without a size reaches to the next address that has a symbol
 * (absolute ones do not count); where that is further than SYMTAB_MAX_GAP, or
 * there is none, only to the end of its 4 KiB page. One inside a sized function
 * stays empty: it is a label, and lookup answers with the function. Where code
 * symbols overlap, the one that starts last covers.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_SYMTAB_H
#define KVMPROF_SYMBOLIZER_CORE_SYMTAB_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMTAB_MAX_SYMBOLS (8u << 20)
#define SYMTAB_MAX_NAME 4096u
#define SYMTAB_MAX_GAP (1u << 20)
#define SYMTAB_MAX_PREFIX 64u /* bytes in front of a function */

struct symbol {
	uint64_t addr;	  /* guest virtual, as linked, but in what symtab_slide() made */
	uint64_t size;	  /* bytes; after freeze never 0 for code symbols that have room */
	const char *name; /* owned by the symtab */
	const char *file; /* source file, see symtab_set_file(); NULL: not known */
	char type;	  /* as in nm: T t W w D d B b R r A ... */
	/*
	 * Where the name's ".llvm.NUMBER" begins; 0: it has none. With clang's ThinLTO a local
	 * symbol has one that another file came to use; the number changes with the file's code.
	 */
	uint16_t promoted;
	/* The next function at this address, in the order above; NULL: there is none. symtab_freeze() sets it. */
	const struct symbol *alias;
};

struct symtab;

struct symtab *symtab_create(void);
void symtab_destroy(struct symtab *t);

/*
 * Copies name; one of more than SYMTAB_MAX_NAME bytes is cut, and "..." ends it. -EINVAL for an
 * empty name or a frozen table, -E2BIG over a cap, -ENOMEM.
 */
int symtab_add(struct symtab *t, uint64_t addr, uint64_t size, char type, const char *name);
/* Adds a symbol without a size that ends after at most `most` bytes (1 or more), or where the next symbol begins. */
int symtab_add_bounded(struct symtab *t, uint64_t addr, uint64_t most, char type, const char *name);
/*
 * Sets the source file of all symbols that are added from now on; NULL or "": not known. Copies the text.
 * A name that a linker made up for the result of link-time optimization counts as not known. Returns 0, or, and then it is not known either,
 * -EINVAL for an over-long name, -E2BIG beyond the cap on all names, or -ENOMEM.
 */
int symtab_set_file(struct symtab *t, const char *file);
/* Sort, drop exact duplicates, fill in missing sizes. */
int symtab_freeze(struct symtab *t, struct err *e);

/*
 * A new, frozen table with every symbol of [start, end], whatever its type, moved by
 * slide; t is frozen and stays as it is. What lies elsewhere keeps its address: per-CPU
 * symbols near 0 (before Linux 6.15), vsyscall. What would then lie among the moved ones
 * is dropped: it is something else there. -EINVAL when addresses would wrap, -ENOMEM.
 * *out is the caller's.
 */
int symtab_slide(const struct symtab *t, uint64_t start, uint64_t end, uint64_t slide,
		 struct symtab **out, struct err *e);

/*
 * The code symbol (type t, T, w, W) that covers addr, or NULL. off may be NULL;
 * *off = addr - symbol->addr.
 */
const struct symbol *symtab_lookup(const struct symtab *t, uint64_t addr, uint64_t *off);
/*
 * The last code symbol that starts at or before addr, also when addr lies behind its end,
 * but not further than SYMTAB_MAX_GAP from its start; or NULL. For those who know that
 * sizes are too small.
 */
const struct symbol *symtab_before(const struct symtab *t, uint64_t addr, uint64_t *off);
/*
 * The symbol of any type with exactly this name, the lowest address of several; else the one with
 * this name and ".llvm.NUMBER"; or NULL.
 */
const struct symbol *symtab_find(const struct symtab *t, const char *name);
/*
 * Returns the first symbol of any type with this name, or with this name and ".llvm.NUMBER", by address; with
 * `after`, the first at a higher address than that one. NULL: there is no more.
 */
const struct symbol *symtab_find_next(const struct symtab *t, const char *name,
				      const struct symbol *after);
/*
 * s is of t. Of the bytes in front of a function that are called after it, the function: `__cfi_NAME`
 * (kCFI's hash of its type, FineIBT's code) and `__pfx_NAME` (padding, where code may be put at run
 * time). In an ELF file's symbols `__cfi_NAME` may be only the first 5 of 16 bytes. NULL: s is anything
 * else, or not NAME is what follows.
 */
const struct symbol *symtab_behind_prefix(const struct symtab *t, const struct symbol *s);

size_t symtab_count(const struct symtab *t);
/* i-th symbol by address, all types, aliases included. */
const struct symbol *symtab_at(const struct symtab *t, size_t i);

#endif
