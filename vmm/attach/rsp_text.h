/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp_text: parses output of QEMU's monitor, which is made for people and may change.
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

/*
 * Finds the bases of the descriptor tables in the output of "info registers". Returns false if one
 * is missing; the out-parameters may then have been written.
 */
bool rsp_text_tables(const char *text, size_t len, uint64_t *idt, uint64_t *gdt);
struct rsp_range {
	uint64_t start, len; /* whole pages */
};
/*
 * Finds the RAM that the processors see in the output of "info mtree -f": ranges of whole pages in
 * ascending order, of which adjacent ones are joined. Returns their number, 0 if there are none.
 * Ranges that do not fit into out[0, max) are left out.
 */
unsigned int rsp_text_ram(const char *text, size_t len, struct rsp_range *out, unsigned int max);

#endif
