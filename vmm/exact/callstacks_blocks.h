/* SPDX-License-Identifier: GPL-2.0-or-later */
/* callstacks_blocks: the set of blocks that ran. */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_BLOCKS_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_BLOCKS_H

#include "vmm/exact/callstacks_state.h"

/* Which instruction of a block begins there; b->insns: none. */
unsigned int callstacks_insn_at(const struct callstacks_block *b, uint64_t pc);
void callstacks_free_blocks(struct callstacks *c);

#endif
