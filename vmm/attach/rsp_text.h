/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp_text: what QEMU's monitor prints, read tolerantly: it is meant for people, and changes.
 *
 *   IDT=     fffffe0000000000 00000fff
 *   AS "memory", root: system
 *     0000000000000000-000000000009ffff (prio 0, ram): pc.ram KVM
 *
 * Source: QEMU, target/i386/cpu-dump.c and softmmu/memory.c.
 */
#ifndef KVMPROF_VMM_ATTACH_RSP_TEXT_H
#define KVMPROF_VMM_ATTACH_RSP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "info registers": where the descriptor tables are. False: it does not say. */
bool rsp_text_tables(const char *text, size_t len, uint64_t *idt, uint64_t *gdt);
struct rsp_range {
	uint64_t start, len; /* whole pages */
};
/*
 * "info mtree -f": RAM as the processors see it, in order, neighbours joined; n of them, 0:
 * it does not say. What does not fit into max is left out.
 */
unsigned int rsp_text_ram(const char *text, size_t len, struct rsp_range *out, unsigned int max);

#endif
