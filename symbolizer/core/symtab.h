/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symtab: maps addresses to names.
 *
 * One thread builds a table (create, add..., freeze). A frozen table is read-only and may be used
 * by several threads without locks.
 *
 * Several symbols at one address are aliases. The lookup prefers a function symbol with a size.
 * Then, as Linux's scripts/kallsyms.c, it prefers a function to a mark of the linker script, a
 * strong symbol to a weak one, and fewer leading underscores. Finally it prefers a global symbol,
 * the shorter name, and the lexicographically smaller one, so the result never depends on the
 * order of the input.
 *
 * A code symbol without a size extends to the next address that has a symbol (absolute ones do not
 * count); if that is farther than SYMTAB_MAX_GAP, or there is none, only to the end of its 4 KiB
 * page. One inside a sized function stays empty: it is a label, and the lookup returns the
 * function. Where code symbols overlap, the one that starts last is returned.
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
/* Maximum distance in bytes of padding from the function that follows. */
#define SYMTAB_MAX_PREFIX 64u

struct symbol {
	uint64_t addr;	  /* guest virtual, as linked; in a table of symtab_slide(): at run time */
	uint64_t size;	  /* bytes; after freeze not 0 for code symbols that have room */
	const char *name; /* owned by the symtab */
	const char *file; /* source file, see symtab_set_file(); NULL: unknown */
	char type;	  /* letter as in nm: T t W w D d B b R r A ... */
	/*
	 * Offset of ".llvm.NUMBER" in the name; 0: it has none. clang's ThinLTO appends it to a
	 * local symbol that another file uses; the number changes with the file's content.
	 */
	uint16_t promoted;
	/*
	 * The next function at this address in the order of preference, or NULL. Set by
	 * symtab_freeze().
	 */
	const struct symbol *alias;
};

struct symtab;

/*
 * Creates an empty table. Returns NULL if out of memory. The caller frees it with
 * symtab_destroy(), which accepts NULL and frees all symbols.
 */
struct symtab *symtab_create(void);
void symtab_destroy(struct symtab *t);

/*
 * Adds a symbol and copies name; a name of more than SYMTAB_MAX_NAME bytes is truncated and ends
 * with "...". Returns 0; -EINVAL for an empty name or a frozen table, -E2BIG beyond a limit, or
 * -ENOMEM.
 */
int symtab_add(struct symtab *t, uint64_t addr, uint64_t size, char type, const char *name);
/*
 * Adds a symbol without a size that extends over at most `most` bytes (1 or more), or to the next
 * symbol. Returns as symtab_add().
 */
int symtab_add_bounded(struct symtab *t, uint64_t addr, uint64_t most, char type, const char *name);
/*
 * Sets the source file of all symbols that are added from now on; NULL or "": unknown. Copies the
 * text. A name that a linker generated for the result of link-time optimisation counts as unknown.
 * Returns 0; or -EINVAL for a name that is too long, -E2BIG beyond the limit for all names, or
 * -ENOMEM, and the file is then unknown.
 */
int symtab_set_file(struct symtab *t, const char *file);
/*
 * Sorts the symbols, removes exact duplicates, and fills in missing sizes. Returns 0, or -ENOMEM
 * with *e set; then the table can only be destroyed.
 */
int symtab_freeze(struct symtab *t, struct err *e);

/*
 * Creates a frozen table in which all symbols of [start, end], of any type, are moved by slide. t
 * must be frozen and is not changed. Other symbols keep their addresses (per-CPU symbols near 0
 * before Linux 6.15, vsyscall), except those that would then lie among the moved ones, which are
 * dropped. Returns 0; -EINVAL if addresses would wrap, or -ENOMEM, with *e set. The caller frees
 * *out with symtab_destroy().
 */
int symtab_slide(const struct symtab *t, uint64_t start, uint64_t end, uint64_t slide,
		 struct symtab **out, struct err *e);

/*
 * Returns the code symbol (type t, T, w, W) that covers addr, or NULL. *off receives addr -
 * symbol->addr; off may be NULL. The symbol belongs to t.
 */
const struct symbol *symtab_lookup(const struct symtab *t, uint64_t addr, uint64_t *off);
/*
 * Returns the last code symbol that starts at or before addr and less than SYMTAB_MAX_GAP before
 * it, even if addr is after its end, or NULL. For callers that know that sizes are too small. off
 * as in symtab_lookup().
 */
const struct symbol *symtab_before(const struct symtab *t, uint64_t addr, uint64_t *off);
/* Returns the last symbol of any type at or before addr, or NULL. */
const struct symbol *symtab_nearest(const struct symtab *t, uint64_t addr);
/*
 * Returns the symbol of any type with exactly this name, the one with the lowest address if there
 * are several. If there is none, returns the only one with this name and ".llvm.NUMBER". Otherwise
 * returns NULL.
 */
const struct symbol *symtab_find(const struct symtab *t, const char *name);
/*
 * Returns the first symbol of any type, by address, with this name or with this name and
 * ".llvm.NUMBER"; if `after` is not NULL, the first at a higher address than that. Returns NULL if
 * there is no further one.
 */
const struct symbol *symtab_find_next(const struct symtab *t, const char *name,
				      const struct symbol *after);
/*
 * Returns the function whose name a symbol s of t extends, if s names the bytes in front of it:
 * `__cfi_NAME` (kCFI's hash of its type, FineIBT's code) or `__pfx_NAME` (padding in which code
 * may be placed at run time). In an ELF file, `__cfi_NAME` may cover only the first 5 of 16 bytes.
 * Returns NULL if s is any other symbol, or if NAME does not follow.
 */
const struct symbol *symtab_behind_prefix(const struct symtab *t, const struct symbol *s);

/* Returns the number of symbols of all types. */
size_t symtab_count(const struct symtab *t);
/*
 * Returns the i-th symbol by address, of all types, aliases included, or NULL if i is out of
 * range.
 */
const struct symbol *symtab_at(const struct symtab *t, size_t i);

#endif
