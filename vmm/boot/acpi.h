/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acpi: builds the ACPI tables. */
#ifndef KVMPROF_VMM_BOOT_ACPI_H
#define KVMPROF_VMM_BOOT_ACPI_H

#include "base/buf.h"
#include "vmm/boot/tables.h"

#define BOOT_RSDP_SIZE 36u

/*
 * Appends RSDP, XSDT, FADT, FACS, MADT, DSDT, and with PCI the MCFG, computed from the arguments
 * and layout.h only. The caller copies them to GPA_ACPI (the RSDP comes first) and checks
 * b->failed.
 */
void boot_acpi_build(struct buf *b, const struct boot_platform *p);

#endif
