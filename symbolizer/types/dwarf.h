/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types_dwarf: struct types out of the debug information of a vmlinux (DWARF 2 to 5),
 * for a kernel that has no BTF but whose debug file was given.
 *
 * Read by libdw from bytes in memory. The caller has made sure that the file belongs
 * to the kernel (symfile_verify()): it is the user's own, no guest has written it, and
 * so this is not a parser for hostile bytes. Nothing is read before the first question, and
 * then only as many compilation units as the answer takes: those of init/main.c, the
 * first, know most of what is asked for. An answer of -ENOENT takes all of them,
 * once: some seconds for a distribution's kernel.
 *
 * One thread at a time, answers included: they fill an index. Borrowed bytes.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_DWARF_H
#define KVMPROF_SYMBOLIZER_TYPES_DWARF_H

#include "base/err.h"
#include "symbolizer/types/types.h"

#include <stddef.h>
#include <stdint.h>

struct types_dwarf;

/*
 * elf: the whole file; it must stay until types_dwarf_destroy(). name is for messages.
 * -EINVAL: no ELF64 file for x86-64; -ENOENT: one without debug information; -ENOTSUP:
 * debug information that is partly in another file; -ENOMEM.
 */
int types_dwarf_open(struct types_dwarf **out, const uint8_t *elf, size_t len, const char *name,
		     struct err *e);
void types_dwarf_destroy(struct types_dwarf *d);

/*
 * Answers (symbolizer/types/types.h); valid as long as d is. Of several structures with one
 * name, the first one that has the member answers. [n] counts the innermost elements of
 * an array of arrays, as it does in BTF.
 */
struct types types_dwarf_types(struct types_dwarf *d);

#endif
