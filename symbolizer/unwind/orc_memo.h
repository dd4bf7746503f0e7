/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orc_memo: return addresses of the kernel that were seen to follow a call, with the ORC entry of
 * that call.
 *
 * Without it each frame costs a look into the regions, the table's index, the table, the page
 * tables and the text: most of them lines of memory that nobody else has asked for. An answer is
 * kept where it was yes alone. Text that is patched later does not make it wrong: a stack that has
 * the address is one of a call that was made. Who changes which code or table is where clears it.
 *
 * One thread. 1 MiB, of which only what is used is ever touched.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_ORC_MEMO_H
#define KVMPROF_SYMBOLIZER_UNWIND_ORC_MEMO_H

#include "symbolizer/unwind/orc.h"

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
