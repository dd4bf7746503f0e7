/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sframe: the section .sframe of a file, and the row of an address in it.
 *
 *	header	u16 magic 0xdee2, u8 version, u8 flags (1: the functions are sorted, 2: all keep
 *		frame pointers, 4: where a function begins counts from the field that says so, not
 *		from the section), u8 ABI (3: x86-64), s8 fixed place of rbp below the CFA (0:
 *		none), s8 that of the return address (-8), u8 length of more header, then u32
 *		functions, rows, bytes of rows, offset of functions and of rows behind the header
 *	function  version 1: s32 begin, u32 size, offset of its rows, number of rows, u8 form
 *		(bits 0 to 3: its rows' begins are of 1, 2 or 4 bytes; 4: the code repeats itself);
 *		version 2: and u8 size of what is repeated, 2 bytes of nothing;
 *		version 3: s64 begin, u32 size, offset of: u16 number of rows, u8 form (bit 7: of a
 *		signal frame), u8 type (1: flexible), u8 size of what is repeated, its rows
 *	row	begin, counted from the function's, u8 form (bit 0: the CFA is by rsp, else by rbp;
 *		1 to 4: number of words; 5 and 6: they are of 1, 2 or 4 bytes), words
 *	words	the CFA's offset, then, if rbp is saved, its place from the CFA. Without any the
 *		return address is undefined (since version 2). Flexible: for the CFA, the return
 *		address and rbp each a word of control (bit 0: by a register, else by the CFA; 1:
 *		what is saved there; from 3 on: the register), with an offset unless it is 0
 *
 * Source: "The SFrame Format" of GNU binutils 2.40 (version 1), 2.41 and 2.45 (2, and its
 * errata), 2.46 (3). What x86-64 leaves unused must be 0 here. The size of what is repeated
 * is 16 in version 1, that of an entry of a PLT, as binutils' linker writes such functions
 * for PLTs alone.
 *
 * It tells of the CFA, of rbp and of the return address alone. Other registers that functions
 * keep may have been saved or not, so that the row calls them undefined.
 *
 * Bytes are asked for when an address is looked up, but for a table that is not sorted. The
 * source is borrowed. One thread at a time for one table.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_SFRAME_H
#define KVMPROF_SYMBOLIZER_CFI_SFRAME_H

#include "symbolizer/cfi/cfi_table.h"

#define SFRAME_MAX_SECTION (256u << 20)
#define SFRAME_MAX_FUNCS (1u << 22)
#define SFRAME_MAX_INDEXED (1u << 19) /* functions of a table that is not sorted */
#define SFRAME_MAX_ROWS 65536u	      /* of a function */

struct sframe_span; /* of the index */

struct sframe {
	struct cfi_source src;
	uint64_t va, funcs, rows; /* addresses of the section and its parts */
	uint32_t nfuncs, rows_len;
	uint8_t version, flags;
	int8_t rbp;		   /* fixed place below the CFA; 0: none */
	struct sframe_span *index; /* owned; sorted; NULL: the table itself is */
	uint32_t n;
};

/* The section of len bytes at va. t is set for CFI_FOUND alone. */
enum cfi_found sframe_open(struct sframe *t, const struct cfi_source *src, uint64_t va,
			   uint64_t len);
void sframe_deinit(struct sframe *t);

/*
 * The rules for the instruction at va, as cfi_table_row(). Where functions overlap it is the
 * one that begins last.
 */
enum cfi_found sframe_row(const struct sframe *t, uint64_t va, struct cfi_row *row);
/* Is va in code that is said to repeat itself, that is a PLT? */
bool sframe_is_repeated(const struct sframe *t, uint64_t va);

#endif
