/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gopclntab: what a Go program says of its own functions, also when it was stripped.
 *
 * Go's compiler writes no .eh_frame. Its own runtime walks stacks by .gopclntab, which is
 * in each program: for each instruction how far the stack pointer is from its value at the
 * function's entry. From that comes a row of call frame information.
 *
 *	header	magic 0xfffffff0 (Go 1.18) or 0xfffffff1 (1.20), 0, 0, unit of code (1),
 *		size of a pointer (8); then 8 bytes each: functions, files, start of the code,
 *		offsets of names, units, files, pctab, functions
 *	functab	(u32 offset of code, u32 offset of struct _func), sorted, then where the code ends
 *	_func	u32 code, s32 name, s32 args, u32 deferreturn, u32 pcsp, pcfile, pcln, npcdata,
 *		cuOffset; since 1.20 s32 startLine; u8 funcID, u8 flag
 *	pcsp	in pctab: (difference of value, zigzag; of code) as LEB128, from -1 on; 0 ends
 *
 * A function with the flag TOPFRAME (1) has no caller, or is what the kernel calls to handle a
 * signal. One with SPWRITE (2) goes over to another stack (systemstack, mcall, calls of C): from
 * there on its caller is a goroutine's, which is not on this stack. The rows of both have no return
 * address, but the CFA as if they had one, which a reader may check. Other registers than rsp are
 * nobody's: Go's functions keep none.
 *
 * Sources: src/runtime/symtab.go, src/runtime/runtime2.go, src/internal/abi/symtab.go and
 * src/debug/gosym/pclntab.go of Go 1.18 to 1.24. Older tables count as none.
 *
 * Bytes are asked for when an address is looked up. The source is borrowed. One thread.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_GOPCLNTAB_H
#define KVMPROF_SYMBOLIZER_PROGRAM_GOPCLNTAB_H

#include "symbolizer/cfi/cfi_table.h"
#include "symbolizer/program/filepiece.h"

#define GOPCLNTAB_MAX_FUNCS (1u << 22)
#define GOPCLNTAB_MAX_STEPS 65536u /* of one function's pcsp */
#define GOPCLNTAB_MAX_NAME 512u	   /* longer ones are cut */
#define GOPCLNTAB_MAX_FRAME (1u << 30)

struct gopclntab {
	struct file_source src;
	uint64_t off, len; /* of the section in the file */
	uint64_t text;	   /* address that code offsets count from */
	uint64_t names, pctab, funcs;
	uint32_t nfuncs;
	uint32_t flag_at; /* in struct _func */
};

/*
 * The section of len bytes at file offset off; text: address of the program's .text, for
 * programs whose table does not tell it. CFI_NONE: of another form.
 */
enum cfi_found gopclntab_open(struct gopclntab *t, const struct file_source *src, uint64_t off,
			      uint64_t len, uint64_t text);

/* The rules for the instruction at va, an address of the file's own. As cfi_table_row(). */
enum cfi_found gopclntab_row(const struct gopclntab *t, uint64_t va, struct cfi_row *row);

/*
 * Function number i < nfuncs: where it begins and ends, and its name, closed by NUL.
 * CFI_HOLE: some of it is missing.
 */
struct gopclntab_func {
	uint64_t start, end;
	char name[GOPCLNTAB_MAX_NAME];
};
enum cfi_found gopclntab_func_at(const struct gopclntab *t, uint32_t i, struct gopclntab_func *out);

#endif
