/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The zero page. Offsets are those of Documentation/arch/x86/zero-page.rst. All other bytes are 0,
 * which means "no screen" for screen_info and "this loader cleared what it did not know" for the
 * sentinel (0x1ef).
 */
#include "vmm/boot/bootparams.h"

#include "vmm/image/parse.h"
#include "vmm/layout.h"

#include <string.h>

#define BP_ACPI_RSDP_ADDR 0x070u /* since Linux 5.0; avoids the search for "RSD PTR " */
#define BP_EXT_RAMDISK_IMAGE 0x0c0u
#define BP_EXT_RAMDISK_SIZE 0x0c4u
#define BP_EXT_CMD_LINE_PTR 0x0c8u
#define BP_E820_ENTRIES 0x1e8u
#define BP_E820_TABLE 0x2d0u
#define E820_ENTRY_SIZE 20u

#define LOADER_UNDEFINED 0xffu /* type_of_loader without an assigned number */
#define VID_MODE_NORMAL 0xffffu
#define DEFAULT_PROTOCOL 0x020fu

static void bootparams_put(uint8_t *page, uint32_t off, uint64_t v, unsigned int size)
{
	memcpy(page + off, &v, size);
}

static unsigned int range_add(struct boot_range *map, unsigned int n, uint64_t gpa, uint64_t end,
			      uint32_t type)
{
	if (end <= gpa)
		return n;
	map[n] = (struct boot_range){ .gpa = gpa, .len = end - gpa, .type = type };
	return n + 1;
}

unsigned int boot_memory_map(uint64_t ram, struct boot_range out[BOOT_MAX_RANGES])
{
	uint64_t low = ram < GPA_PCI_HOLE ? ram : GPA_PCI_HOLE;
	unsigned int n = range_add(out, 0, 0, GPA_LOW_RAM_END, E820_RAM);

	/* EBDA, VGA hole, ACPI and MP tables: RAM here, reserved for the guest */
	n = range_add(out, n, GPA_LOW_RAM_END, GPA_KERNEL_MIN, E820_RESERVED);
	n = range_add(out, n, GPA_KERNEL_MIN, low, E820_RAM);
	return range_add(out, n, GPA_HIGH_RAM, GPA_HIGH_RAM + (ram - low), E820_RAM);
}

static void e820_build(uint8_t *page, uint64_t ram)
{
	struct boot_range map[BOOT_MAX_RANGES];
	unsigned int n = boot_memory_map(ram, map);

	for (unsigned int i = 0; i < n; i++) {
		uint8_t *entry = page + BP_E820_TABLE + i * E820_ENTRY_SIZE;

		memcpy(entry, &map[i].gpa, 8);
		memcpy(entry + 8, &map[i].len, 8);
		memcpy(entry + 16, &map[i].type, 4);
	}
	page[BP_E820_ENTRIES] = (uint8_t)n;
}

void boot_params_build(uint8_t page[BOOT_PARAMS_SIZE], const struct boot_image *img,
		       const struct boot_params_info *info)
{
	uint64_t flags;

	memset(page, 0, BOOT_PARAMS_SIZE);
	if (img->setup_header_len) {
		memcpy(page + SETUP_HEADER, img->setup_header, img->setup_header_len);
	} else {
		bootparams_put(page, SETUP_BOOT_FLAG, SETUP_BOOT_FLAG_VALUE, 2);
		bootparams_put(page, SETUP_MAGIC, SETUP_MAGIC_VALUE, 4);
		bootparams_put(page, SETUP_VERSION, DEFAULT_PROTOCOL, 2);
		bootparams_put(page, SETUP_INITRD_ADDR_MAX, GPA_INITRD_LAST, 4);
		bootparams_put(page, SETUP_CMDLINE_SIZE, img->cmdline_max, 4);
		bootparams_put(page, SETUP_KERNEL_ALIGNMENT, 2 * GPA_MIB, 4);
		bootparams_put(page, SETUP_PREF_ADDRESS, img->low, 8);
		bootparams_put(page, SETUP_INIT_SIZE, img->high - img->low, 4);
	}
	flags = page[SETUP_LOADFLAGS] | LOADFLAG_LOADED_HIGH;
	flags &= ~(uint64_t)(LOADFLAG_KASLR | LOADFLAG_CAN_USE_HEAP);
	bootparams_put(page, SETUP_LOADFLAGS, flags, 1);
	bootparams_put(page, SETUP_TYPE_OF_LOADER, LOADER_UNDEFINED, 1);
	bootparams_put(page, SETUP_VID_MODE, VID_MODE_NORMAL, 2);
	if (info->code32_start)
		bootparams_put(page, SETUP_CODE32_START, info->code32_start, 4);

	bootparams_put(page, SETUP_CMD_LINE_PTR, GPA_CMDLINE & UINT32_MAX, 4);
	bootparams_put(page, BP_EXT_CMD_LINE_PTR, GPA_CMDLINE >> 32, 4);
	if (info->initrd_len) {
		bootparams_put(page, SETUP_RAMDISK_IMAGE, info->initrd_gpa & UINT32_MAX, 4);
		bootparams_put(page, BP_EXT_RAMDISK_IMAGE, info->initrd_gpa >> 32, 4);
		bootparams_put(page, SETUP_RAMDISK_SIZE, info->initrd_len & UINT32_MAX, 4);
		bootparams_put(page, BP_EXT_RAMDISK_SIZE, info->initrd_len >> 32, 4);
	}
	/* A file's own list is dropped: its addresses are meaningful to its loader only. */
	bootparams_put(page, SETUP_SETUP_DATA, info->setup_data_gpa, 8);
	bootparams_put(page, BP_ACPI_RSDP_ADDR, GPA_ACPI, 8);
	e820_build(page, info->ram_size);
}
