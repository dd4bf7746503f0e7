/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace: writes what is executed into a trace (vmm/exact/trace.h), inside QEMU.
 *
 * QEMU calls the plugin on one thread at a time (thread=single), and all functions run there. With
 * several vCPUs, blocks are recorded in the order in which they ran.
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_TRACE_H
#define KVMPROF_VMM_EXACT_PLUGIN_TRACE_H

#include "vmm/exact/plugin/qemu_api.h"
#include "vmm/exact/trace.h"

struct traced;

/*
 * Starts tracing into fd, a memory file of at least TRACE_DATA bytes, which it maps; the caller
 * may close fd. Returns 0 or -errno.
 */
int plugin_trace_begin(int fd, const struct trace_plan *plan);
/*
 * Returns a description of a block that QEMU has translated, for the functions below, or NULL if
 * out of memory. It is never freed, since QEMU may execute the block at any time. Registers the
 * tracing of the block's memory accesses.
 */
struct traced *plugin_trace_block(struct qemu_plugin_tb *tb);
/*
 * Traces one execution, which begins after `before` instructions. Returns true if the block is to
 * be recorded: the caller then calls plugin_trace_record() with the registers.
 */
bool plugin_trace_run(const struct traced *t, uint64_t before);
/* Appends the block's record; without room it increments the head's `full`. */
void plugin_trace_record(const struct traced *t, uint64_t before, const struct exact_regs *regs);

#endif
