/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: exact counts inside QEMU; feeds the shadow stacks (vmm/exact/callstacks.h).
 *
 * QEMU calls the plugin on one thread at a time (thread=single), and all functions run there. With
 * several vCPUs, the running one is identified by Linux's per-CPU base (GS), read at each block.
 * vCPUs that have no base yet while the first one has one, because they are being brought up,
 * share one additional position.
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_CALLS_H
#define KVMPROF_VMM_EXACT_PLUGIN_CALLS_H

#include "vmm/exact/plugin/qemu_api.h"

/* The registers that calls needs, in the order of its handles. */
enum calls_register {
	CALLS_SP,
	CALLS_PC,
	CALLS_CR0,
	CALLS_CR3,
	CALLS_CS,
	CALLS_GS,
	CALLS_KERNEL_GS,
	CALLS_REGISTERS
};

/*
 * Starts counting. fd: descriptor to which calls_end() writes the counts, open until then. bytes:
 * a GByteArray for its own use. Returns 0 or -errno.
 */
int calls_begin(int fd, unsigned int vcpus, struct glib_array *bytes);
/* Stores the handles of the registers, once they are known. */
void calls_set_registers(const struct qemu_handle handle[CALLS_REGISTERS]);
/*
 * Returns the interned block of instructions [i, i + n) of a block that QEMU has translated, or
 * NULL if its executions cannot be counted. It is valid until calls_end().
 */
struct callstacks_block *calls_block(struct qemu_plugin_tb *tb, size_t i, size_t n);
/*
 * Counts one execution that begins now. NULL: the block could not be interned; the execution is
 * recorded as lost.
 */
void calls_run(struct callstacks_block *block);
/* Sets all counts to 0. Does nothing without calls_begin(). */
void calls_reset(void);
/* Attributes later counts to this part of the run. Does nothing without calls_begin(). */
void calls_begin_part(uint32_t part);
/*
 * Writes the counts to fd and frees everything. Later calls of it do nothing. Errors show up as a
 * damaged or missing file.
 */
void calls_end(void);

#endif
