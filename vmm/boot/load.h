/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load: writes a validated image and its configuration to guest RAM.
 *
 * It writes (layout.h): GDT, identity page tables, boot_params ("zero page") with the e820 map or
 * the boot information of other kernels, command line, MP table, ACPI tables, kernel segments or
 * decompressor, initrd, modules. The RAM must be fresh from gmem_alloc(), because zeros are not
 * written.
 */
#ifndef KVMPROF_VMM_BOOT_LOAD_H
#define KVMPROF_VMM_BOOT_LOAD_H

#include "base/gmem.h"
#include "vmm/image/protocol.h"

struct boot_image;

#define BOOT_RNG_SEED 32

/* The maximum number of files for the kernel besides its initrd (multiboot 1 and 2, and PVH). */
#define BOOT_MAX_MODULES 16
/* Such a file. All pointers are borrowed. */
struct boot_module {
	const uint8_t *data;
	size_t len;
	const char *name; /* multiboot 1: the first word of its text */
	const char *args; /* never NULL */
};

struct boot_config {
	enum boot_protocol way; /* result of protocol_of_image() */
	/* BOOT_PROTOCOL_VMLINUX: entry point instead of the ELF file's; 0: that one */
	uint64_t entry;
	const char *name;      /* name of the kernel; multiboot 1: first word of the command line */
	const char *cmdline;   /* never NULL */
	const uint8_t *initrd; /* NULL: none; module 0 of multiboot and PVH */
	size_t initrd_len;
	const struct boot_module *module;
	unsigned int nmodules;	  /* up to BOOT_MAX_MODULES; multiboot and PVH only */
	unsigned int vcpus;	  /* 1..VM_MAX_VCPUS */
	bool pci;		  /* the machine has a PCI bus */
	unsigned int virtio_mmio; /* number of virtio-mmio devices */
	/*
	 * Seed for the guest's random number generator, BOOT_RNG_SEED bytes; NULL: none. Without
	 * one a guest that has no RDRAND generates each early random number slowly.
	 */
	const uint8_t *rng_seed;
};

enum boot_mode {
	BOOT_MODE_LONG = 0, /* 64-bit, low 4 GiB identity-mapped */
	BOOT_MODE_FLAT32,   /* 32-bit protected mode, segments 0 to 4 GiB, paging off */
};

/* The state in which vCPU 0 starts, with interrupts off. */
struct boot_entry {
	enum boot_mode mode;
	uint64_t rip; /* guest-physical = virtual */
	uint64_t rsi; /* boot_params */
	uint64_t rax, rbx;
	uint64_t cr3;	    /* LONG */
	uint64_t low, high; /* guest-physical range of the code that runs first */
	uint64_t gdt_base;
	uint16_t gdt_limit;
};

/*
 * Loads the kernel. Returns 0, or -errno with *e recorded: -EFBIG if the command line is longer
 * than the kernel accepts; -ENOMEM if kernel or initrd do not fit into guest RAM (the message
 * states a sufficient size); -EINVAL for vcpus out of range, a segment below 1 MiB, or modules for
 * a kernel that gets none; -ENOTSUP for real-mode programs; and the errors of protocol_bzimage_place()
 * (parse.h) for ways through a bzImage's own code. Called by the thread that creates the machine.
 */
int boot_load(const struct gmem *m, const struct boot_image *img, const struct boot_config *cfg,
	      struct boot_entry *out, struct err *e);

#endif
