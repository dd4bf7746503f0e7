/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_cfi: reads the call frame information of a program's or library's file.
 *
 * It uses .eh_frame_hdr, which a program header names and which is in a segment. Without one, it
 * uses the section .eh_frame, or .debug_frame, which debug files have: these are read completely
 * when the file is opened, and must not be compressed. For addresses that these do not describe it
 * uses a Go program's own table, then .sframe, by its program header or section. Sources of the
 * formats: symbolizer/cfi/cfi_table.h, symbolizer/cfi/sframe.h, gopclntab.h and userelf.h.
 *
 * The file's source is borrowed, and may provide more of the file later on. One thread at a time
 * per object.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_CFI_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_CFI_H

#include "symbolizer/cfi/cfi_table.h"
#include "symbolizer/program/userelf.h"

struct userelf_cfi;

/*
 * Opens the tables. Copies *u, whose strings and segments are not needed afterwards. Returns
 * CFI_FOUND, and the caller frees *out with userelf_cfi_destroy(), which accepts NULL; CFI_NONE if
 * the file has none; CFI_HOLE if that is unknown yet because pages are missing; or CFI_BAD if they
 * are damaged, of an unknown form, or out of memory.
 */
enum cfi_found userelf_cfi_open(struct userelf_cfi **out, const struct userelf *u);
void userelf_cfi_destroy(struct userelf_cfi *c);

/* Converts a file offset like userelf_va_of(). */
bool userelf_cfi_va(const struct userelf_cfi *c, uint64_t file_off, uint64_t *va);
/*
 * Stores in *end where the FDE ends that describes address va of the file. Returns like
 * cfi_table_end().
 */
enum cfi_found userelf_cfi_end(const struct userelf_cfi *c, uint64_t va, uint64_t *end);
/*
 * Computes the rules for the instruction at address va of the file. Returns like cfi_table_row().
 */
enum cfi_found userelf_cfi_row(const struct userelf_cfi *c, uint64_t va, struct cfi_row *row);

#endif
