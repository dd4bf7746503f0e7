/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: exact counts inside of QEMU: feeds the shadow stacks (vmm/exact/callstacks.h).
 *
 * One thread, as QEMU calls us (thread=single). Which of several vCPUs runs is told by Linux's per-CPU
 * base, read at each block; one that has none yet, while the first has one, is all those that are being
 * brought up.
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_CALLS_H
#define KVMPROF_VMM_EXACT_PLUGIN_CALLS_H

#include "vmm/exact/plugin/qemu_api.h"

/* Registers that it needs, in the order of its handles. */
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

/* fd: where countfile_write() goes at the end. 0, or -errno. */
int calls_begin(int fd, unsigned int vcpus, struct glib_array *bytes);
/* Once the handles are known. */
void calls_set_registers(const struct qemu_handle handle[CALLS_REGISTERS]);
/* n instructions, from the i-th on, of a block that QEMU has made; NULL: its runs can't be counted. */
struct callstacks_block *calls_block(struct qemu_plugin_tb *tb, size_t i, size_t n);
/* It begins to run; block may be NULL. */
void calls_run(struct callstacks_block *block);
/* All counts are 0 again. */
void calls_begin_anew(void);
/* They are of this part of the run from now on. */
void calls_begin_part(uint32_t part);
void calls_end(void);

#endif
