/* SPDX-License-Identifier: GPL-2.0-or-later */
/* callstacks_stacks: the shadow stacks. */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_STACKS_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_STACKS_H

#include "vmm/exact/callstacks_state.h"

/* NULL: it has no frame. */
struct frame *callstacks_top(const struct shadow *s);
/* From now on it is the stack that runs. */
void callstacks_enter(struct callstacks *c, uint32_t stack);
/* Frames below a stack pointer are gone. */
void callstacks_drop_below(struct shadow *s, uint64_t sp);
/* The stack that an address belongs to, or a new one; none of a vCPU's first ones. */
uint32_t callstacks_find(struct callstacks *c, uint64_t space, uint64_t sp);
/* Before another stack is entered; an empty one begins from here: an interrupt stack, say. */
void callstacks_switch(struct callstacks *c, struct shadow *s);
/* The stack pointer was loaded: the same stack, shorter, or another one. */
void callstacks_move(struct callstacks *c, uint64_t sp);
void callstacks_push(struct callstacks *c, const struct frame *f);
void callstacks_pop(struct shadow *s);
void callstacks_free_stacks(struct callstacks *c);

#endif
