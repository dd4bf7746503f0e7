/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dsdt: builds the DSDT of ACPI, which describes the devices in AML. */
#ifndef KVMPROF_VMM_BOOT_DSDT_H
#define KVMPROF_VMM_BOOT_DSDT_H

#include "base/buf.h"
#include "vmm/boot/tables.h"

/* Appends the DSDT's definition block, which follows its header. The caller checks b->failed. */
void boot_dsdt_build(struct buf *b, const struct boot_platform *p);

#endif
