/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elfsynth: a small ELF64 file that carries the names of a larger one.
 *
 * For perf's build-id cache when the guest's own file is not at hand whole: the
 * build id, the original's PT_LOADs, from which perf computes file offsets
 * (tools/perf/util/symbol-elf.c, elf_read_program_header), a .text section of type
 * SHT_NOBITS for each executable one, and .symtab with .strtab. Such files are
 * what `objcopy --only-keep-debug` makes, without the DWARF.
 *
 * PT_LOADs keep their sizes although their bytes are not in this file: read it
 * with userelf, not with kimage. The program headers' PT_NOTE is right.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_ELFSYNTH_H
#define KVMPROF_SYMBOLIZER_PROGRAM_ELFSYNTH_H

#include "base/buf.h"
#include "base/err.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/program/userelf.h"

/*
 * Append to out, which must be empty. u: type, entry and segments of the original;
 * only these are used, nothing is read. build_id: 1 to 20 bytes. symbols: frozen,
 * the file's addresses; code symbols in executable segments are written, but for
 * those that cover nothing. -EINVAL: no build id, no executable segment, or no
 * symbol that could be written; -E2BIG: names of 4 GiB; -ENOMEM.
 */
int elfsynth_write(struct buf *out, const struct userelf *u, const uint8_t *build_id,
		   unsigned int build_id_len, const struct symtab *symbols, struct err *e);

#endif
