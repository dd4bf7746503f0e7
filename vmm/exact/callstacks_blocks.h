/* SPDX-License-Identifier: GPL-2.0-or-later */
/* callstacks_blocks: the set of blocks that were executed. Internal to callstacks; same thread. */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_BLOCKS_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_BLOCKS_H

#include "vmm/exact/callstacks_state.h"

/* Returns the index of b's instruction that begins at pc, or b->insns if none does. */
unsigned int callstacks_insn_at(const struct callstacks_block *b, uint64_t pc);
/* Frees all interned blocks and their table. c itself is not freed. */
void callstacks_free_blocks(struct callstacks *c);

#endif
