/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_cfi: the call frame information of a program's or library's file.
 *
 * By .eh_frame_hdr, which its program header tells and which lies in a segment. Without
 * one by the section .eh_frame, or by .debug_frame, which debug files have: these are
 * read from begin to end when it is opened, and must not be compressed. For an address of
 * which these do not tell: a Go program's own table, then .sframe, by its program header or
 * section. Sources of the formats: symbolizer/cfi/cfi_table.h, symbolizer/cfi/sframe.h,
 * gopclntab.h and userelf.h.
 *
 * The file's source is borrowed, and its ctx may show more of the file later on. One
 * thread at a time.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_CFI_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_CFI_H

#include "symbolizer/cfi/cfi_table.h"
#include "symbolizer/program/userelf.h"

struct userelf_cfi;

/*
 * CFI_FOUND: *out is the caller's, and u's strings and segments are not needed any more.
 * CFI_NONE: the file has none. CFI_HOLE: it cannot be told yet. CFI_BAD: damaged, of an
 * unknown form, or no memory.
 */
enum cfi_found userelf_cfi_open(struct userelf_cfi **out, const struct userelf *u);
void userelf_cfi_destroy(struct userelf_cfi *c);

/* As userelf_va_of(), of the file that was opened. */
bool userelf_cfi_va(const struct userelf_cfi *c, uint64_t file_off, uint64_t *va);
/* Stores where the FDE ends that describes this address of the file's own in *end; as cfi_table_end(). */
enum cfi_found userelf_cfi_end(const struct userelf_cfi *c, uint64_t va, uint64_t *end);
/* The rules for the instruction at this address of the file's own; as cfi_table_row(). */
enum cfi_found userelf_cfi_row(const struct userelf_cfi *c, uint64_t va, struct cfi_row *row);

#endif
