/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types_dwarf: provides struct types from the debug information of a vmlinux (DWARF 2 to 5), for a
 * kernel without BTF whose debug file was given.
 *
 * libdw reads it from bytes in memory. The caller has checked that the file belongs to the kernel
 * (symfile_verify()): it is the user's own, no guest has written it, so this is not a parser for
 * hostile bytes. Nothing is read before the first query, and then only as many compilation units
 * as necessary: the first ones, those of init/main.c, contain most of the types. A result of
 * -ENOENT requires all of them, once: some seconds for a distribution's kernel.
 *
 * Not thread-safe: one thread at a time, queries included, because they fill an index.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_DWARF_H
#define KVMPROF_SYMBOLIZER_TYPES_DWARF_H

#include "base/err.h"
#include "symbolizer/types/types.h"

#include <stddef.h>
#include <stdint.h>

struct types_dwarf;

/*
 * Opens a file of len bytes, which is borrowed until types_dwarf_destroy(). name is for messages.
 * Returns 0; -EINVAL if it is not an ELF64 file for x86-64; -ENOENT if it has no debug
 * information; -ENOTSUP if that is partly in another file; or -ENOMEM; with *e set. The caller
 * frees *out with types_dwarf_destroy(), which accepts NULL.
 */
int types_dwarf_open(struct types_dwarf **out, const uint8_t *elf, size_t len, const char *name,
		     struct err *e);
void types_dwarf_destroy(struct types_dwarf *d);

/*
 * Returns the interface of symbolizer/types/types.h for d, which must outlive it. Among several
 * structures with one name, the first one that has the member is used. [n] counts the innermost
 * elements of an array of arrays, as in BTF.
 */
struct types types_dwarf_types(struct types_dwarf *d);

#endif
