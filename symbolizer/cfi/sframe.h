/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sframe: the section .sframe of a file, and the lookup of an address in it.
 *
 *	header    u16 magic 0xdee2, u8 version, u8 flags (1: the functions are sorted; 2: all keep
 *	          frame pointers; 4: a function's begin is relative to its own field, not to
 *	          the section), u8 ABI (3: x86-64), s8 fixed place of rbp below the CFA (0:
 *	          none), s8 that of the return address (-8), u8 length of more header, then
 *	          u32 functions, rows, bytes of rows, offset of functions and of rows after
 *	          the header
 *	function  version 1: s32 begin, u32 size, offset of its rows, number of rows, u8 form
 *	          (bits 0 to 3: its rows' begins have 1, 2 or 4 bytes; 4: the code is
 *	          repetitive); version 2: also u8 size of the repeated code, 2 bytes of
 *	          padding; version 3: s64 begin, u32 size, offset of: u16 number of rows, u8
 *	          form (bit 7: signal frame), u8 type (1: flexible), u8 size of the repeated
 *	          code, its rows
 *	row       begin, relative to the function's, u8 form (bit 0: the CFA is relative to
 *	          rsp, else rbp; 1 to 4: number of words; 5 and 6: they have 1, 2 or 4
 *	          bytes), words
 *	words     the CFA's offset, then, if rbp is saved, its place from the CFA. Without any,
 *	          the return address is undefined (since version 2). Flexible: for each of
 *	          the CFA, the return address and rbp a control word (bit 0: relative to a
 *	          register, else to the CFA; 1: saved there; from 3 on: the register), with
 *	          an offset unless it is 0
 *
 * Source: "The SFrame Format" of GNU binutils 2.40 (version 1), 2.41 and 2.45 (2, and its errata),
 * 2.46 (3). Fields that x86-64 does not use must be 0. In version 1 the repeated code has 16
 * bytes, the size of a PLT entry, because binutils' linker writes such functions only for PLTs.
 *
 * The format describes only the CFA, rbp and the return address. Other preserved registers may or
 * may not have been saved, so the row marks them as undefined.
 *
 * Bytes are read when an address is looked up, except that a table that is not sorted is indexed
 * when it is opened. The table copies its cfi_source; what that refers to is borrowed. One thread
 * at a time per table.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_SFRAME_H
#define KVMPROF_SYMBOLIZER_CFI_SFRAME_H

#include "symbolizer/cfi/cfi_table.h"

#define SFRAME_MAX_SECTION (256u << 20) /* bytes */
#define SFRAME_MAX_FUNCS (1u << 22)
#define SFRAME_MAX_INDEXED (1u << 19) /* functions of a table that is not sorted */
#define SFRAME_MAX_ROWS 65536u	      /* most rows of one function */

struct sframe_span; /* element of the index */

struct sframe {
	struct cfi_source src;
	uint64_t va, funcs, rows; /* addresses of the section, its functions and its rows */
	uint32_t nfuncs, rows_len;
	uint8_t version, flags;
	int8_t rbp;		   /* fixed place below the CFA; 0: none */
	struct sframe_span *index; /* owned; sorted; NULL: the table itself is sorted */
	uint32_t n;
};

/*
 * Opens the section of len bytes at va. Returns CFI_FOUND with *t set; CFI_HOLE if bytes are
 * missing; or CFI_BAD. The caller frees *t with sframe_deinit().
 */
enum cfi_found sframe_open(struct sframe *t, const struct cfi_source *src, uint64_t va,
			   uint64_t len);
/* Frees the index. */
void sframe_deinit(struct sframe *t);

/*
 * Computes the rules for the instruction at va, as cfi_table_row() does. If functions overlap, the
 * one that begins last applies.
 */
enum cfi_found sframe_row(const struct sframe *t, uint64_t va, struct cfi_row *row);
/* Returns whether va is in repetitive code, that is, in a PLT. */
bool sframe_is_repeated(const struct sframe *t, uint64_t va);

#endif
