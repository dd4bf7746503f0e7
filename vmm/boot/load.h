/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load: a validated image plus configuration, written into guest RAM.
 *
 * Places (layout.h): GDT, identity page tables, boot_params ("zero page") with
 * e820 map, command line, MP table, ACPI tables, kernel segments or decompressor,
 * initrd. The RAM must be fresh from gmem_alloc(): what is to be zero is not written.
 */
#ifndef KVMPROF_VMM_BOOT_LOAD_H
#define KVMPROF_VMM_BOOT_LOAD_H

#include "vmm/boot/image.h"
#include "vmm/gmem.h"

#define BOOT_RNG_SEED 32

struct boot_config {
	enum boot_way way;     /* BOOT_WAY_BZIMAGE with a bzImage only */
	const char *cmdline;   /* never NULL */
	const uint8_t *initrd; /* NULL for none */
	size_t initrd_len;
	unsigned int vcpus;	  /* 1..VM_MAX_VCPUS */
	bool pci;		  /* the machine has a PCI bus */
	unsigned int virtio_mmio; /* and so many virtio-mmio devices */
	/*
	 * Seed for the guest's random number generator, BOOT_RNG_SEED bytes, or NULL.
	 * Without one a guest that has no RDRAND draws each early random number the
	 * slow way.
	 */
	const uint8_t *rng_seed;
};

/* Where vCPU 0 starts: 64-bit long mode, identity-mapped, interrupts off. */
struct boot_entry {
	uint64_t rip; /* guest-physical = virtual */
	uint64_t rsi; /* boot_params */
	uint64_t cr3;
	uint64_t low, high; /* guest-physical memory of what runs first */
	uint64_t gdt_base;
	uint16_t gdt_limit;
};

/*
 * Fails with -EFBIG when the command line is longer than the kernel accepts,
 * -ENOMEM when kernel or initrd do not fit into guest RAM (the message says how
 * much memory would do), -EINVAL for vcpus out of range or a segment below 1 MiB,
 * and as boot_bzimage_place() (parse.h) does for the way through the decompressor.
 */
int boot_load(const struct gmem *m, const struct boot_image *img, const struct boot_config *cfg,
	      struct boot_entry *out, struct err *e);

#endif
