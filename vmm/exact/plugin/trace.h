/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace: writes what is executed into a trace (vmm/exact/trace.h), inside of QEMU.
 *
 * One thread, as QEMU calls us (thread=single); any number of vCPUs, whose blocks stand in the order in which
 * they ran.
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_TRACE_H
#define KVMPROF_VMM_EXACT_PLUGIN_TRACE_H

#include "vmm/exact/plugin/qemu_api.h"
#include "vmm/exact/trace.h"

struct traced;

/* fd: a memory file of at least TRACE_DATA bytes. 0, or -errno. */
int plugin_trace_begin(int fd, const struct trace_plan *plan);
/* A block that QEMU has made; NULL: no memory. Accesses of its instructions are traced from then on. */
struct traced *plugin_trace_block(struct qemu_plugin_tb *tb);
/* It begins to run, after `before` instructions. True: it is recorded, and wants regs (trace_record()). */
bool plugin_trace_run(const struct traced *t, uint64_t before);
void plugin_trace_record(const struct traced *t, uint64_t before, const struct exact_regs *regs);

#endif
