/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gopclntab: reads a Go program's own table of functions, which a stripped program has as well.
 *
 * Go's compiler writes no .eh_frame. Its runtime walks stacks with .gopclntab, which each program
 * contains: it describes, for each instruction, how far the stack pointer is from its value at the
 * function's entry. This module converts that to a row of call frame information.
 *
 *	header	magic 0xfffffff0 (Go 1.18) or 0xfffffff1 (1.20), 0, 0, unit of code (1),
 *		size of a pointer (8); then 8 bytes each: functions, files, start of the code,
 *		offsets of names, units, files, pctab, functions
 *	functab	(u32 offset of code, u32 offset of struct _func), sorted, then where the code ends
 *	_func	u32 code, s32 name, s32 args, u32 deferreturn, u32 pcsp, pcfile, pcln, npcdata,
 *		cuOffset; since 1.20 s32 startLine; u8 funcID, u8 flag
 *	pcsp	in pctab: (difference of value, zigzag; of code) as LEB128, from -1 on; 0 ends
 *
 * A function with the flag TOPFRAME (1) has no caller, or is called by the kernel to handle a
 * signal. One with SPWRITE (2) switches to another stack (systemstack, mcall, calls of C): after
 * that its caller is a goroutine's, which is not on this stack. The rows of both have no return
 * address, but the CFA as if they had one, which the caller may check. Registers other than rsp are
 * undefined: Go's functions preserve none.
 *
 * Sources: src/runtime/symtab.go, src/runtime/runtime2.go, src/internal/abi/symtab.go and
 * src/debug/gosym/pclntab.go of Go 1.18 to 1.24. Older tables count as none.
 *
 * Bytes are read when an address is looked up. The source is copied; what it refers to is borrowed.
 * Not thread-safe: one thread per table.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_GOPCLNTAB_H
#define KVMPROF_SYMBOLIZER_PROGRAM_GOPCLNTAB_H

#include "symbolizer/cfi/cfi_table.h"
#include "symbolizer/program/filepiece.h"

#define GOPCLNTAB_MAX_FUNCS (1u << 22)
#define GOPCLNTAB_MAX_STEPS 65536u /* steps of one function's pcsp */
#define GOPCLNTAB_MAX_NAME 512u	   /* bytes; longer names are truncated */
#define GOPCLNTAB_MAX_FRAME (1u << 30)

struct gopclntab {
	struct file_source src;
	uint64_t off, len; /* place of the section in the file */
	uint64_t text;	   /* address to which code offsets are relative */
	uint64_t names, pctab, funcs;
	uint32_t nfuncs;
	uint32_t flag_at; /* offset of the flags in struct _func */
};

/*
 * Opens the section of len bytes at file offset off. text: address of the program's .text, for
 * programs whose table does not contain it. Returns CFI_FOUND with *t set; CFI_NONE if it has
 * another format; CFI_HOLE if bytes are missing; or CFI_BAD.
 */
enum cfi_found gopclntab_open(struct gopclntab *t, const struct file_source *src, uint64_t off,
			      uint64_t len, uint64_t text);

/*
 * Computes the rules for the instruction at va, an address of the file. Returns like
 * cfi_table_row().
 */
enum cfi_found gopclntab_row(const struct gopclntab *t, uint64_t va, struct cfi_row *row);

/* One function: begin and end of its code, and its name with a NUL. */
struct gopclntab_func {
	uint64_t start, end;
	char name[GOPCLNTAB_MAX_NAME];
};
/*
 * Reads function number i, less than t->nfuncs. Returns CFI_FOUND, CFI_HOLE if some of it is
 * missing, or CFI_BAD.
 */
enum cfi_found gopclntab_func_at(const struct gopclntab *t, uint32_t i, struct gopclntab_func *out);

#endif
