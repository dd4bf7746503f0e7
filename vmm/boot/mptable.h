/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mptable: builds the tables of the Intel MultiProcessor Specification 1.4. */
#ifndef KVMPROF_VMM_BOOT_MPTABLE_H
#define KVMPROF_VMM_BOOT_MPTABLE_H

#include "base/buf.h"
#include "vmm/boot/tables.h"

/*
 * Appends the table for GPA_MPTABLE, computed from the arguments and layout.h only. Local APIC ids
 * are vCPU indices; the IOAPIC's id is vcpus. The caller checks b->failed.
 */
void boot_mptable_build(struct buf *b, const struct boot_platform *p);

#endif
