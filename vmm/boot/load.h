/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load: a validated image plus configuration, written into guest RAM.
 *
 * Places (layout.h): GDT, identity page tables, boot_params ("zero page") with
 * e820 map or what other kernels are told, command line, MP table, ACPI tables,
 * kernel segments or decompressor, initrd, modules. The RAM must be fresh from
 * gmem_alloc(): what is to be zero is not written.
 */
#ifndef KVMPROF_VMM_BOOT_LOAD_H
#define KVMPROF_VMM_BOOT_LOAD_H

#include "base/gmem.h"
#include "vmm/image/way.h"

struct boot_image;

#define BOOT_RNG_SEED 32

/* A file for the kernel besides its initrd: multiboot 1 and 2, and PVH. */
#define BOOT_MAX_MODULES 16
struct boot_module {
	const uint8_t *data;
	size_t len;
	const char *name; /* multiboot 1: the first word of its text */
	const char *args; /* never NULL */
};

struct boot_config {
	enum boot_way way;     /* as way_of_image() gave it */
	uint64_t entry;	       /* BOOT_WAY_VMLINUX: there instead; 0: where the ELF says */
	const char *name;      /* of the kernel; multiboot 1: the first word of the command line */
	const char *cmdline;   /* never NULL */
	const uint8_t *initrd; /* NULL for none; module 0 of multiboot and PVH */
	size_t initrd_len;
	const struct boot_module *module;
	unsigned int nmodules;	  /* up to BOOT_MAX_MODULES; multiboot and PVH only */
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

enum boot_mode {
	BOOT_MODE_LONG = 0, /* 64-bit, low 4 GiB identity-mapped */
	BOOT_MODE_FLAT32,   /* 32-bit protected mode, segments 0 to 4 GiB, paging off */
};

/* Where vCPU 0 starts; interrupts off. */
struct boot_entry {
	enum boot_mode mode;
	uint64_t rip; /* guest-physical = virtual */
	uint64_t rsi; /* boot_params */
	uint64_t rax, rbx;
	uint64_t cr3;	    /* LONG */
	uint64_t low, high; /* guest-physical memory of what runs first */
	uint64_t gdt_base;
	uint16_t gdt_limit;
};

/*
 * Fails with -EFBIG when the command line is longer than the kernel accepts,
 * -ENOMEM when kernel or initrd do not fit into guest RAM (the message says how
 * much memory would do), -EINVAL for vcpus out of range or a segment below 1 MiB,
 * or modules for a kernel that is passed none, and as way_bzimage_place() (parse.h)
 * does for the ways through a bzImage's own code.
 */
int boot_load(const struct gmem *m, const struct boot_image *img, const struct boot_config *cfg,
	      struct boot_entry *out, struct err *e);

#endif
