/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orc: reads the kernel's own unwind tables (CONFIG_UNWINDER_ORC), for x86-64.
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
 * Stable kernels contain some of these changes under older version numbers, so the form is
 * determined by content (orc_format.c): the layout in which the entries are valid, and the
 * registers by the code that they describe (after push %rbp the caller's rbp is relative to
 * PREV_SP, after mov %rsp,%rbp the frame is at BP + 16 ...). All are normalised to 6.4's types and
 * to enum orc_reg. SP_INDIRECT meant *(rsp + offset) and, since "x86/unwind/orc: Change
 * REG_SP_INDIRECT" (5.12), means *rsp + offset; only entries of type REGS used the first and only
 * those of type CALL use the second, so the type decides.
 *
 * One thread builds a table; afterwards it is constant and may be used by several threads. It does
 * not refer to the image.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_ORC_H
#define KVMPROF_SYMBOLIZER_UNWIND_ORC_H

#include "symbolizer/core/kimage.h"

#include <stdint.h>

#define ORC_MAX_ENTRIES (16u << 20)
#define ORC_MAX_SPAN (512ull << 20) /* bytes of code that one table may cover */

/*
 * Meanings of the register numbers in arch/x86/include/asm/orc_types.h; the values here are those
 * of 4.14.
 */
enum orc_reg {
	ORC_UNDEFINED_REG = 0, /* sp_reg: unknown; bp_reg: rbp is unchanged */
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
	ORC_NO_REG = 15, /* a number without a known register */
};
#define ORC_NUMBERS 16u

enum orc_type {
	ORC_UNDEFINED = 0, /* no information */
	ORC_END_OF_STACK,  /* outermost code: it has no caller */
	ORC_CALL,	   /* the return address is below the CFA */
	ORC_REGS,	   /* a struct pt_regs is at the CFA */
	ORC_REGS_PARTIAL,  /* an interrupt return frame is at the CFA */
};

struct orc_entry {
	int16_t sp_offset, bp_offset;
	uint8_t sp_reg : 4, bp_reg : 4; /* enum orc_reg */
	uint8_t type : 3;		/* enum orc_type */
	uint8_t signal : 1; /* the caller was interrupted: its rip is where it resumes */
};

enum orc_layout {
	ORC_LAYOUT_NONE = 0,
	ORC_LAYOUT_4_14,
	ORC_LAYOUT_4_18,
	ORC_LAYOUT_6_3,
	ORC_LAYOUT_6_4,
};

/* The form of a table's entries. */
struct orc_format {
	enum orc_layout layout;
	uint8_t reg[ORC_NUMBERS]; /* enum orc_reg, indexed by the number in the table */
};

/* The two tables to read; everything is borrowed during the call. */
struct orc_tables {
	const uint8_t *ips, *entries;
	uint64_t ips_va; /* runtime or link address of ips[0] */
	size_t n;
	uint64_t text_start, text_end;	 /* range of the code that they may describe */
	const struct kimage *code;	 /* the code at these addresses; NULL: not available */
	const struct orc_format *format; /* NULL: determine it by content */
};

struct orc;

/*
 * Builds a table. Returns 0; -EINVAL if the entries are invalid in every form or most of their
 * addresses are outside the text; -E2BIG beyond a limit; or -ENOMEM; with *e set. Entries for
 * addresses outside the text are left out. The caller frees *out with orc_destroy(), which accepts
 * NULL.
 */
int orc_build(struct orc **out, const struct orc_tables *t, struct err *e);

/*
 * Builds a table from the image's sections or, without section headers, from tables found by their
 * content. Returns as orc_build(), and -ENOENT if the image has none.
 */
int orc_open(struct orc **out, const struct kimage *k, struct err *e);
void orc_destroy(struct orc *o);

/*
 * Moves the table to a kernel that runs `slide` bytes above its link address (KASLR): afterwards
 * all addresses passed in and out are runtime addresses. Call it once, before other threads use
 * the table. Returns 0, or -EINVAL with *e set if addresses would wrap or the table was moved
 * already.
 */
int orc_slide(struct orc *o, uint64_t slide, struct err *e);

/*
 * Returns the entry for the instruction at va, which belongs to o, or NULL if va is outside the
 * table's text.
 */
const struct orc_entry *orc_lookup(const struct orc *o, uint64_t va);

/* Returns the slide that orc_slide() has set; 0 before. */
uint64_t orc_slide_of(const struct orc *o);
/* Returns the number of entries. */
size_t orc_count(const struct orc *o);
/*
 * Returns the i-th entry by address and stores its address in *va; i must be less than
 * orc_count().
 */
const struct orc_entry *orc_at(const struct orc *o, size_t i, uint64_t *va);
/* Returns the address of the last entry. */
uint64_t orc_last(const struct orc *o);
/* Returns the layout in which the entries were stored. */
enum orc_layout orc_layout(const struct orc *o);
/* Returns the form in which the entries were stored; it belongs to o. */
const struct orc_format *orc_format_of(const struct orc *o);
/* Returns the first kernel with this layout, such as "4.14"; static text. */
const char *orc_layout_name(enum orc_layout l);

/*
 * Finds the variable in which the kernel stores the top of its interrupt stack, without symbols:
 * entries change to SP_INDIRECT at the code that switches to that stack. Returns the variable's
 * address, or with *percpu set its offset from the GS base; 0 if there is no such code, or if most
 * of its places do not agree. If orc_slide() has moved the table, the result is for the moved
 * kernel; k is the image as linked.
 */
uint64_t orc_irq_stack_ptr(const struct orc *o, const struct kimage *k, bool *percpu);

/*
 * orc_memo: caches kernel return addresses that were found to follow a call, with the ORC entry of
 * that call.
 *
 * Without the cache, each frame costs accesses to the regions, the table's index, the table, the
 * page tables and the text, most of them cache misses. Only positive results are stored. Text that
 * is patched later does not invalidate them: a stack that contains the address has it from a call
 * that was made. Whoever changes the place of code or tables must call orc_memo_clear().
 *
 * Not thread-safe: one thread per cache. It has 1 MiB, of which only the used pages are touched.
 */

#define ORC_MEMO_SLOTS (1u << 16)

struct orc_memo_slot {
	uint64_t ret; /* 0: free slot */
	struct orc_entry entry;
};

struct orc_memo {
	struct orc_memo_slot slot[ORC_MEMO_SLOTS];
};

/*
 * Creates an empty cache, or returns NULL if out of memory. The caller frees it with
 * orc_memo_destroy(), which accepts NULL.
 */
struct orc_memo *orc_memo_create(void);
void orc_memo_destroy(struct orc_memo *m);
/* Removes all entries. */
void orc_memo_clear(struct orc_memo *m);

/* Returns the slot that ret may be in. */
static inline struct orc_memo_slot *orc_memo_at(struct orc_memo *m, uint64_t ret)
{
	return &m->slot[ret * UINT64_C(0x9e3779b97f4a7c15) >> (64 - 16)];
}

/*
 * Returns the entry of return address ret, or NULL if it is not cached. m may be NULL. The entry
 * is valid until the next orc_memo_keep().
 */
static inline const struct orc_entry *orc_memo_find(struct orc_memo *m, uint64_t ret)
{
	const struct orc_memo_slot *s;

	if (!m || !ret)
		return NULL;
	s = orc_memo_at(m, ret);
	return s->ret == ret ? &s->entry : NULL;
}

/* Stores the entry of ret, replacing another one in its slot. m may be NULL. */
static inline void orc_memo_keep(struct orc_memo *m, uint64_t ret, const struct orc_entry *entry)
{
	if (m)
		*orc_memo_at(m, ret) = (struct orc_memo_slot){ ret, *entry };
}

#endif
