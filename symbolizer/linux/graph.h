/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_graph: where the function graph tracer and kretprobes store the return addresses that they
 * have replaced. Pure functions; any thread.
 *
 * Each task that is traced has a stack of struct ftrace_ret_stack {ret, .., retp}: the address to
 * which a function returns, and where on the task's kernel stack it was.
 *
 *	up to 6.10	ret_stack: an array of them; curr_ret_stack: index of the topmost, -1 for none
 *	since 6.11	("function_graph: Convert ret_stack to a series of longs") words, of which
 *			some are something else; curr_ret_stack: how many are in use
 *
 * retp exists since "ftrace: Add return address pointer to ftrace_ret_stack" (4.9).
 *
 * Return probes are on a list of the task, the newest first: struct kretprobe_instance {llist,
 * ret_addr, fp} since "kprobes: Remove kretprobe hash" (5.11), struct rethook_node {llist,
 * ret_addr, frame} with CONFIG_RETHOOK (x86: 6.0). fp and frame are such a stack address, too.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_GRAPH_H
#define KVMPROF_SYMBOLIZER_LINUX_GRAPH_H

#include "symbolizer/core/memory.h"
#include "symbolizer/types/types.h"

#include <stdbool.h>
#include <stdint.h>

struct linux_graph_layout {
	uint32_t stack, index; /* in struct task_struct: pointer, s32 */
	uint32_t unit;	       /* bytes that index counts in */
	bool top;	       /* index is that of the topmost entry instead of their number */
	uint32_t entry;	       /* bytes of one entry with its additional data */
	uint32_t ret, retp;    /* in struct ftrace_ret_stack, multiples of 8 */
};

/*
 * Finds the offsets. Returns false if the kernel has no such tracer, or its types do not describe
 * it.
 */
bool linux_graph_layout(struct linux_graph_layout *out, const struct types *types);

struct linux_rethook_layout {
	uint32_t list;	    /* in struct task_struct: pointer to the first node's link */
	uint32_t link;	    /* in a node: pointer to the next node's link */
	uint32_t ret, retp; /* in a node, multiples of 8 */
	uint32_t len;	    /* bytes of a node that contain all these */
};

/* Does the same for return probes. */
bool linux_rethook_layout(struct linux_rethook_layout *out, const struct types *types);

/*
 * Copies the entries (the topmost ones) and nodes of the task at this address, which must not be
 * running, as far as they fit into room bytes at dst, in the form of a sample. Returns the number
 * of bytes. g or r may be NULL.
 */
uint32_t linux_graph_read(const struct linux_graph_layout *g, const struct linux_rethook_layout *r,
			  const struct memory *m, uint64_t task, uint8_t *dst, uint32_t room);

#endif
