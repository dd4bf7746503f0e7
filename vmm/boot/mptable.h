/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mptable: the tables of the Intel MultiProcessor Specification 1.4. */
#ifndef KVMPROF_VMM_BOOT_MPTABLE_H
#define KVMPROF_VMM_BOOT_MPTABLE_H

#include "base/buf.h"
#include "vmm/boot/tables.h"

/*
 * Builds the table that is to be put at GPA_MPTABLE, from its arguments and layout.h alone.
 * Local APIC ids are vCPU indices; the IOAPIC's id is vcpus.
 */
void boot_mptable_build(struct buf *b, const struct boot_platform *p);

#endif
