/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orc: the kernel's own unwind tables (CONFIG_UNWINDER_ORC), for x86-64.
 *
 *	.orc_unwind_ip	s32[n]: address of a piece of code, relative to the s32 itself
 *	.orc_unwind	n of { s16 sp_offset, s16 bp_offset, u16 flags }: how to find
 *			the caller from any instruction between that address and the next
 *
 * flags, from bit 0: sp_reg:4, bp_reg:4, then by layout
 *
 *	4.14	type:2			REGS and REGS_IRET imply "interrupted here";
 *					sp_reg 0: nothing known, or the end
 *	4.18	type:2 end:1		"x86/unwind/orc: Detect the end of the stack":
 *					sp_reg 0 with end is the end, without it nothing known
 *	6.3	type:2 signal:1 end:1	"x86/unwind/orc: Add 'signal' field to ORC metadata"
 *	6.4	type:3 signal:1		"x86,objtool: Split UNWIND_HINT_EMPTY in two":
 *					types for nothing known (0) and the end (1), CALL is 2
 *
 * The numbers of registers are those of 4.14 up to 7.0 and others since 7.1.
 *
 * Stable kernels carry some of these changes under older numbers, so the form is
 * found by its content (orc_format.c): the layout under which the entries make sense,
 * and the registers by the code that they speak of (behind push %rbp the caller's rbp
 * is counted from PREV_SP, behind mov %rsp,%rbp the frame is at BP + 16 ...). All are
 * normalised to 6.4's types and to enum orc_reg. SP_INDIRECT meant *(rsp + offset) and, since "x86/unwind/orc:
 * Change REG_SP_INDIRECT" (5.12), means *rsp + offset; only entries of type REGS
 * used the first and only those of type CALL use the second, so type tells.
 *
 * Built by one thread, then const and lock-free. Nothing points into the image
 * afterwards.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_ORC_H
#define KVMPROF_SYMBOLIZER_UNWIND_ORC_H

#include "symbolizer/core/kimage.h"

#include <stdint.h>

#define ORC_MAX_ENTRIES (16u << 20)
#define ORC_MAX_SPAN (512ull << 20) /* bytes of code that one table covers */

/* What the numbers of arch/x86/include/asm/orc_types.h stand for; ours are those of 4.14. */
enum orc_reg {
	ORC_UNDEFINED_REG = 0, /* sp_reg: not known; bp_reg: rbp is unchanged */
	ORC_PREV_SP = 1,
	ORC_DX = 2,
	ORC_DI = 3,
	ORC_BP = 4,
	ORC_SP = 5,
	ORC_R10 = 6,
	ORC_R13 = 7,
	ORC_BP_INDIRECT = 8,
	ORC_SP_INDIRECT = 9,
	ORC_AX = 10,
	ORC_NO_REG = 15, /* a number that stands for no register that we know */
};
#define ORC_NUMBERS 16u

enum orc_type {
	ORC_UNDEFINED = 0, /* nothing is known here */
	ORC_END_OF_STACK,  /* nothing called this */
	ORC_CALL,	   /* the return address is below the CFA */
	ORC_REGS,	   /* a struct pt_regs is at the CFA */
	ORC_REGS_PARTIAL,  /* an interrupt return frame is at the CFA */
};

struct orc_entry {
	int16_t sp_offset, bp_offset;
	uint8_t sp_reg : 4, bp_reg : 4; /* enum orc_reg */
	uint8_t type : 3;		/* enum orc_type */
	uint8_t signal : 1; /* the caller was interrupted: its rip is where it goes on */
};

enum orc_layout {
	ORC_LAYOUT_NONE = 0,
	ORC_LAYOUT_4_14,
	ORC_LAYOUT_4_18,
	ORC_LAYOUT_6_3,
	ORC_LAYOUT_6_4,
};

/* In which form the entries of a table are. */
struct orc_format {
	enum orc_layout layout;
	uint8_t reg[ORC_NUMBERS]; /* enum orc_reg, by the number in the table */
};

/* Where the two tables are; borrowed. */
struct orc_tables {
	const uint8_t *ips, *entries;
	uint64_t ips_va; /* run-time or linked address of ips[0] */
	size_t n;
	uint64_t text_start, text_end;	 /* code that they may speak of */
	const struct kimage *code;	 /* the code at these addresses; NULL: not at hand */
	const struct orc_format *format; /* NULL: to be found by content */
};

struct orc;

/*
 * -EINVAL when the entries make no sense in any form or most of their addresses are
 * not in the text, -E2BIG over a cap, -ENOMEM. Entries for addresses outside of the text
 * are left out: the table is good for the rest.
 */
int orc_build(struct orc **out, const struct orc_tables *t, struct err *e);

/*
 * From the image's sections or, where there are no section headers, from tables
 * found by their content. -ENOENT when it has none.
 */
int orc_open(struct orc **out, const struct kimage *k, struct err *e);
void orc_destroy(struct orc *o);

/*
 * The kernel runs `slide` away from where it was linked (KASLR): from now on all
 * addresses that go in and come out are run-time ones. Once, before other threads
 * see the table. -EINVAL when addresses would wrap, or on a table that was moved.
 */
int orc_slide(struct orc *o, uint64_t slide, struct err *e);

/* The entry for the instruction at va; NULL when va is outside of the table's text. */
const struct orc_entry *orc_lookup(const struct orc *o, uint64_t va);

/* What orc_slide() moved it by. */
uint64_t orc_slide_of(const struct orc *o);
size_t orc_count(const struct orc *o);
/* i-th entry by address. */
const struct orc_entry *orc_at(const struct orc *o, size_t i, uint64_t *va);
/* Where the last entry is. */
uint64_t orc_last(const struct orc *o);
enum orc_layout orc_layout(const struct orc *o);
const struct orc_format *orc_format_of(const struct orc *o);
/* "4.14", ...: the first kernel with this layout. */
const char *orc_layout_name(enum orc_layout l);

/*
 * Where the kernel keeps the top of its interrupt stack, told without symbols:
 * the code that switches to it is where entries turn to SP_INDIRECT. Returns the
 * variable's address, or with *percpu set its offset from the GS base; 0 when
 * there is no such code, or when more than a few of its places disagree. Of a table that was moved by
 * orc_slide() the answer is for the moved kernel; k is the image as linked.
 */
uint64_t orc_irq_stack_ptr(const struct orc *o, const struct kimage *k, bool *percpu);

/*
 * orc_memo: the return addresses of the kernel that were seen to follow a call, with the ORC entry of
 * that call.
 *
 * Without it each frame costs a look into the regions, the table's index, the table, the page
 * tables and the text: most of them lines of memory that nobody else has asked for. An answer is
 * kept where it was yes alone. Text that is patched later does not make it wrong: a stack that has
 * the address is one of a call that was made. Who changes which code or table is where clears it.
 *
 * One thread. 1 MiB, of which only what is used is ever touched.
 */

#define ORC_MEMO_SLOTS (1u << 16)

struct orc_memo_slot {
	uint64_t ret; /* 0: free */
	struct orc_entry entry;
};

struct orc_memo {
	struct orc_memo_slot slot[ORC_MEMO_SLOTS];
};

struct orc_memo *orc_memo_create(void); /* NULL: no memory */
void orc_memo_destroy(struct orc_memo *m);
void orc_memo_clear(struct orc_memo *m);

static inline struct orc_memo_slot *orc_memo_at(struct orc_memo *m, uint64_t ret)
{
	return &m->slot[ret * UINT64_C(0x9e3779b97f4a7c15) >> (64 - 16)];
}

/* NULL: not known. m may be NULL. Valid until the next orc_memo_keep(). */
static inline const struct orc_entry *orc_memo_find(struct orc_memo *m, uint64_t ret)
{
	const struct orc_memo_slot *s;

	if (!m || !ret)
		return NULL;
	s = orc_memo_at(m, ret);
	return s->ret == ret ? &s->entry : NULL;
}

static inline void orc_memo_keep(struct orc_memo *m, uint64_t ret, const struct orc_entry *entry)
{
	if (m)
		*orc_memo_at(m, ret) = (struct orc_memo_slot){ ret, *entry };
}

#endif
