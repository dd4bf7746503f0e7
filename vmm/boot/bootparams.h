/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bootparams: builds the zero page of Linux, and the memory map in it. */
#ifndef KVMPROF_VMM_BOOT_BOOTPARAMS_H
#define KVMPROF_VMM_BOOT_BOOTPARAMS_H

#include <stdint.h>

struct boot_image;

#define BOOT_PARAMS_SIZE 4096u

/* e820 types */
#define E820_RAM 1u
#define E820_RESERVED 2u

/* A range of guest memory as firmware reports it. */
struct boot_range {
	uint64_t gpa, len;
	uint32_t type; /* E820_* */
};
#define BOOT_MAX_RANGES 4u
/* Stores the sorted ranges of a machine with this RAM, in bytes, and returns their number. */
unsigned int boot_memory_map(uint64_t ram_size, struct boot_range out[BOOT_MAX_RANGES]);

/* The contents of the zero page besides the setup header. */
struct boot_params_info {
	uint64_t ram_size; /* bytes of guest RAM, as passed to gmem_alloc() */
	uint64_t initrd_gpa;
	uint64_t initrd_len;	 /* 0: none */
	uint64_t setup_data_gpa; /* 0: none */
	uint32_t code32_start;	 /* address of a bzImage's protected-mode part; 0: as in the file */
};

/*
 * Builds the zero page (Documentation/arch/x86/zero-page.rst) from the arguments and layout.h only,
 * with the setup header of a bzImage or default values, and the e820 map.
 */
void boot_params_build(uint8_t page[BOOT_PARAMS_SIZE], const struct boot_image *img,
		       const struct boot_params_info *info);

#endif
