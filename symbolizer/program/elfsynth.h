/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elfsynth: writes a small ELF64 file with the names of a larger one.
 *
 * It is for perf's build-id cache if the guest's own file is not available as a whole. The file
 * has the build id, the original's PT_LOADs, from which perf computes file offsets
 * (tools/perf/util/symbol-elf.c, elf_read_program_header), a .text section of type SHT_NOBITS for
 * each executable one, and .symtab with .strtab. Such files are what `objcopy --only-keep-debug`
 * makes, without the DWARF.
 *
 * PT_LOADs keep their sizes although their bytes are not in this file: read it with userelf, not
 * with kimage. The PT_NOTE program header is valid. Pure function; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_ELFSYNTH_H
#define KVMPROF_SYMBOLIZER_PROGRAM_ELFSYNTH_H

#include "base/buf.h"
#include "base/err.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/program/userelf.h"

/*
 * Appends the file to out, which must be empty; the caller owns it. u: type, entry and segments of
 * the original; only these are used, nothing is read. build_id: 1 to 20 bytes. symbols: frozen,
 * with the file's addresses; code symbols in executable segments are written, except empty ones.
 * Returns 0; -EINVAL if there is no build id, no executable segment, or no symbol that could be
 * written; -E2BIG for 4 GiB of names; or -ENOMEM; with *e set.
 */
int elfsynth_write(struct buf *out, const struct userelf *u, const uint8_t *build_id,
		   unsigned int build_id_len, const struct symtab *symbols, struct err *e);

#endif
