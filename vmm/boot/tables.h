/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tables: what the guest reads before it has drivers.
 *
 * Each function builds one table from its arguments and layout.h and nothing
 * else, so tests can look at the bytes; boot_load() puts them into RAM.
 */
#ifndef KVMPROF_VMM_BOOT_TABLES_H
#define KVMPROF_VMM_BOOT_TABLES_H

#include "vmm/image/image.h"

#include "base/buf.h"

#define BOOT_PARAMS_SIZE 4096u

/* e820 types */
#define E820_RAM 1u
#define E820_RESERVED 2u

/* The guest's memory as firmware tells it. */
struct boot_range {
	uint64_t gpa, len;
	uint32_t type; /* E820_* */
};
#define BOOT_MAX_RANGES 4u
/* bootparams.c: sorted; returns how many. */
unsigned int boot_memory_map(uint64_t ram_size, struct boot_range out[BOOT_MAX_RANGES]);

/* What makes the bytes sum up to 0, for a field that is 0 so far. */
static inline uint8_t table_checksum(const uint8_t *p, size_t len)
{
	uint8_t sum = 0;

	while (len--)
		sum += *p++;
	return (uint8_t)-sum;
}

/* What the zero page says besides the setup header. */
struct boot_params_info {
	uint64_t ram_size; /* bytes of guest RAM, as given to gmem_alloc() */
	uint64_t initrd_gpa;
	uint64_t initrd_len;	 /* 0 for none */
	uint64_t setup_data_gpa; /* 0 for none */
	uint32_t
		code32_start; /* where the protected-mode part of a bzImage is; 0: as in the file */
};

/*
 * bootparams.c: the zero page (Documentation/arch/x86/zero-page.rst), with the
 * setup header of a bzImage or made-up defaults, and the e820 map.
 */
void boot_params_build(uint8_t page[BOOT_PARAMS_SIZE], const struct boot_image *img,
		       const struct boot_params_info *info);

/*
 * A field of the setup header by its offset in the file; 0 where the header is
 * shorter or absent.
 */
uint64_t boot_setup_field(const struct boot_image *img, uint32_t off, unsigned int size);

/* What the tables say of the machine. */
struct boot_platform {
	unsigned int vcpus;
	bool pci;		  /* there is a PCI bus: as in dev/pci.h */
	unsigned int virtio_mmio; /* devices, at GPA_VIRTIO_MMIO: as in dev/virtio_mmio.h */
};

/*
 * mptable.c: Intel MultiProcessor Specification 1.4, to be put at GPA_MPTABLE.
 * Local APIC ids are vCPU indices; the IOAPIC's id is vcpus.
 */
void boot_mptable_build(struct buf *b, const struct boot_platform *p);

/*
 * acpi.c: RSDP, XSDT, FADT, FACS, MADT, DSDT, and with PCI the MCFG, to be put at GPA_ACPI
 * (the RSDP is at its beginning).
 */
void boot_acpi_build(struct buf *b, const struct boot_platform *p);

/* dsdt.c: the DSDT's definition block, behind its header. */
void boot_dsdt_build(struct buf *b, const struct boot_platform *p);

#endif
