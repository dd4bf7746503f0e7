/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever parses is loaded into a small guest, both ways, with an initrd and without. */
#include "tests/fuzz/fuzz.h"

#include "vmm/boot/load.h"
#include "vmm/boot/parse.h"
#include "vmm/layout.h"

#include <stdlib.h>
#include <string.h>

#define FUZZ_MAX_KERNEL (4u << 20)
#define FUZZ_RAM (64u << 20)

static void require(int ok)
{
	if (!ok)
		abort();
}

static void load(const struct boot_image *img, const struct boot_config *cfg)
{
	struct boot_entry out = { .rip = 42 };
	struct err e = { 0 };
	struct gmem m;
	uint64_t end = img->high;
	uint32_t at = 0, len = 0;

	require(gmem_alloc(&m, FUZZ_RAM, &e) == 0);
	if (boot_load(&m, img, cfg, &out, &e)) {
		require(out.rip == 42 && e.code && !strchr(e.text, '\n'));
		gmem_free(&m);
		return;
	}
	require(gmem_ptr(&m, out.rip, 1) && out.rip >= GPA_KERNEL_MIN);
	if (cfg->way == BOOT_WAY_BZIMAGE) {
		uint64_t gpa = out.rip - 0x200;

		end = gpa + img->pm_len;
		require(img->pm_len > 0x200 &&
			!memcmp(gmem_ptr(&m, gpa, img->pm_len), img->pm, img->pm_len));
	}
	require(gmem_read(&m, out.rsi + SETUP_RAMDISK_IMAGE, &at, 4) == 0);
	require(gmem_read(&m, out.rsi + SETUP_RAMDISK_SIZE, &len, 4) == 0);
	if (cfg->initrd) {
		require(len == cfg->initrd_len && at % GPA_PAGE == 0 && at >= end);
		require(!memcmp(gmem_ptr(&m, at, len), cfg->initrd, len));
	}
	for (unsigned int i = 0; cfg->way == BOOT_WAY_VMLINUX && i < img->nseg; i++) {
		const struct boot_segment *s = &img->seg[i];

		require(!s->file_len || !memcmp(gmem_ptr(&m, s->gpa, s->file_len),
						img->elf + s->file_off, s->file_len));
	}
	gmem_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct boot_config cfg = { .cmdline = "console=ttyS0", .vcpus = VM_MAX_VCPUS };
	struct boot_image img;

	if (boot_image_parse_max(&img, "input", data, size, FUZZ_MAX_KERNEL, NULL))
		return 0;
	for (int way = BOOT_WAY_VMLINUX; way <= BOOT_WAY_BZIMAGE; way++) {
		cfg.way = (enum boot_way)way;
		cfg.initrd = NULL;
		load(&img, &cfg);
		cfg.initrd = data;
		cfg.initrd_len = size;
		load(&img, &cfg);
	}
	boot_image_deinit(&img);
	return 0;
}
