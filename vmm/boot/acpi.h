/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acpi: the ACPI tables. */
#ifndef KVMPROF_VMM_BOOT_ACPI_H
#define KVMPROF_VMM_BOOT_ACPI_H

#include "base/buf.h"
#include "vmm/boot/tables.h"

#define BOOT_RSDP_SIZE 36u

/*
 * Builds RSDP, XSDT, FADT, FACS, MADT, DSDT, and with PCI the MCFG, from its arguments and layout.h alone. They are
 * to be put at GPA_ACPI (the RSDP is at its beginning).
 */
void boot_acpi_build(struct buf *b, const struct boot_platform *p);

#endif
