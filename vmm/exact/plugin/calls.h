/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: exact counts inside of QEMU: feeds the shadow stacks (vmm/exact/callstacks.h).
 *
 * One thread, as QEMU calls us (thread=single), and one vCPU: which one runs can't be known at each
 * block.
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_CALLS_H
#define KVMPROF_VMM_EXACT_PLUGIN_CALLS_H

#include "vmm/exact/plugin/qemu_api.h"

/* Registers that it needs, in the order of its handles. */
enum calls_register { CALLS_SP, CALLS_CR0, CALLS_CR3, CALLS_CS, CALLS_REGISTERS };

/* fd: where countfile_write() goes at the end. 0, or -errno. */
int calls_begin(int fd, struct glib_array *bytes);
/* Once the handles are known. */
void calls_set_registers(struct qemu_plugin_register *const handle[CALLS_REGISTERS]);
/* A block that QEMU has made; NULL: its runs can't be counted. */
struct callstacks_block *calls_block(struct qemu_plugin_tb *tb);
/* It begins to run; block may be NULL. */
void calls_run(struct callstacks_block *block);
void calls_end(void);

#endif
