/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callstacks_stacks: the shadow stacks. Internal to callstacks; same thread. Stacks are named by
 * their index in c->stack.
 */
#ifndef KVMPROF_VMM_EXACT_CALLSTACKS_STACKS_H
#define KVMPROF_VMM_EXACT_CALLSTACKS_STACKS_H

#include "vmm/exact/callstacks_state.h"

/* Returns the innermost frame, which belongs to s, or NULL if s is empty. */
struct frame *callstacks_top(const struct shadow *s);
/* Makes `stack` the running vCPU's current stack and its innermost node the current node. */
void callstacks_enter(struct callstacks *c, uint32_t stack);
/* Removes the frames below stack pointer sp. */
void callstacks_drop_below(struct shadow *s, uint64_t sp);
/*
 * Returns the stack that contains address sp in address space `space` (0: the kernel's), or a new
 * one, which may evict the least recently used one. It never returns one of the first ncpus
 * stacks.
 */
uint32_t callstacks_find(struct callstacks *c, uint64_t space, uint64_t sp);
/*
 * Prepares s to become the current stack after a switch. If s is empty, its chain begins at the
 * current node, as on an interrupt stack.
 */
void callstacks_switch(struct callstacks *c, struct shadow *s);
/*
 * Selects the current stack after the stack pointer was loaded with sp: the same stack with fewer
 * frames, or another one.
 */
void callstacks_move(struct callstacks *c, uint64_t sp);
/*
 * Pushes a copy of *f on the current stack, after removing frames at or below f->sp. Beyond the
 * limit, or out of memory, it only increments stats.deep.
 */
void callstacks_push(struct callstacks *c, const struct frame *f);
/* Removes the innermost frame; s must not be empty. */
void callstacks_pop(struct shadow *s);
/* Frees all stacks. c itself is not freed. */
void callstacks_free_stacks(struct callstacks *c);

#endif
