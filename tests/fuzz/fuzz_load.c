/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever parses is loaded into a small guest, all ways, with an initrd and without. */
#include "tests/fuzz/fuzz.h"

#include "vmm/boot/load.h"
#include "vmm/image/parse.h"
#include "vmm/gmem_alloc.h"
#include "vmm/layout.h"
#include "base/sample.h"
#include "vmm/image/protocol.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

#define FUZZ_MAX_KERNEL (4u << 20)
#define FUZZ_RAM (64u << 20)

static void require(int ok)
{
	if (!ok)
		abort();
}

static uint64_t word(const struct gmem *m, uint64_t gpa, size_t n)
{
	uint64_t v = 0;

	require(gmem_read(m, gpa, &v, n) == 0);
	return v;
}

/* Checks multiboot2's tags, which end where the first word says. */
static void check_info2(const struct gmem *m, const struct boot_config *cfg, uint64_t info,
			uint64_t end)
{
	uint64_t last = info + word(m, info, 4), at = info + 8, n = 0;

	for (; word(m, at, 4); at += (word(m, at + 4, 4) + 7) / 8 * 8) {
		uint64_t gpa = word(m, at + 8, 4);

		require(at + word(m, at + 4, 4) < last && word(m, at + 4, 4) > 8);
		if (word(m, at, 4) != 3)
			continue;
		require(gpa % GPA_PAGE == 0 && gpa >= end);
		require(word(m, at + 12, 4) - gpa == cfg->initrd_len);
		require(!memcmp(gmem_ptr(m, gpa, cfg->initrd_len), cfg->initrd, cfg->initrd_len));
		end = gpa + cfg->initrd_len;
		n++;
	}
	require(at + 8 == last && n == cfg->nmodules + (cfg->initrd ? 1u : 0u));
}

/* The modules behind the kernel, one after the other, with their bytes. */
static void check_info(const struct gmem *m, const struct boot_config *cfg, uint64_t info,
		       uint64_t end)
{
	bool pvh = cfg->way == BOOT_PROTOCOL_PVH;
	uint64_t n, at;

	if (cfg->way == BOOT_PROTOCOL_MULTIBOOT2) {
		check_info2(m, cfg, info, end);
		return;
	}
	n = word(m, info + (pvh ? 12 : 20), 4);
	at = pvh ? word(m, info + 16, 8) : word(m, info + 24, 4);

	require(n == cfg->nmodules + (cfg->initrd ? 1u : 0u));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t gpa = word(m, at, pvh ? 8 : 4);
		uint64_t len = pvh ? word(m, at + 8, 8) : word(m, at + 4, 4) - gpa;

		require(gpa % GPA_PAGE == 0 && gpa >= end && len == cfg->initrd_len);
		require(!memcmp(gmem_ptr(m, gpa, len), cfg->initrd, len));
		end = gpa + len;
		at += pvh ? 32 : 16;
	}
}

static void load(const struct boot_image *img, const struct boot_config *cfg)
{
	struct boot_entry out = { .rip = 42 };
	struct err e = { 0 };
	struct gmem m;
	uint64_t end = img->high;
	uint32_t at = 0, len = 0;

	require(gmem_alloc(&m, &(struct gmem_config){ .size = FUZZ_RAM }, &e) == 0);
	if (boot_load(&m, img, cfg, &out, &e)) {
		require(out.rip == 42 && e.code && !strchr(e.text, '\n'));
		gmem_alloc_free(&m);
		return;
	}
	require(gmem_ptr(&m, out.rip, 1) && out.rip >= GPA_KERNEL_MIN);
	require((out.mode == BOOT_MODE_LONG) ==
		(cfg->way == BOOT_PROTOCOL_VMLINUX || cfg->way == BOOT_PROTOCOL_BZIMAGE));
	if (img->kind != BOOT_ELF32 &&
	    (cfg->way == BOOT_PROTOCOL_BZIMAGE || cfg->way == BOOT_PROTOCOL_LINUX32)) {
		uint64_t gpa = out.rip - (cfg->way == BOOT_PROTOCOL_BZIMAGE ? 0x200 : 0);

		end = gpa + img->pm_len;
		require(!memcmp(gmem_ptr(&m, gpa, img->pm_len), img->pm, img->pm_len));
	}
	if (out.rbx) {
		check_info(&m, cfg, out.rbx, end);
	} else {
		require(gmem_read(&m, out.rsi + SETUP_RAMDISK_IMAGE, &at, 4) == 0);
		require(gmem_read(&m, out.rsi + SETUP_RAMDISK_SIZE, &len, 4) == 0);
		if (cfg->initrd) {
			require(len == cfg->initrd_len && at % GPA_PAGE == 0 && at >= end);
			require(!memcmp(gmem_ptr(&m, at, len), cfg->initrd, len));
		}
	}
	for (unsigned int i = 0; cfg->way != BOOT_PROTOCOL_BZIMAGE &&
				 cfg->way != BOOT_PROTOCOL_LINUX32 && i < img->nseg;
	     i++) {
		const struct boot_segment *s = &img->seg[i];

		require(!s->file_len || !memcmp(gmem_ptr(&m, s->gpa, s->file_len),
						img->elf + s->file_off, s->file_len));
	}
	gmem_alloc_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct boot_module module = { .data = data, .len = size, .name = "module", .args = "x" };
	struct boot_config cfg = {
		.name = "input",
		.cmdline = "console=ttyS0",
		.module = &module,
		.vcpus = VM_MAX_VCPUS,
	};
	struct boot_image img;

	if (parse_image_max(&img, "input", data, size, FUZZ_MAX_KERNEL, NULL))
		return 0;
	/* A kernel that no loader can place or enter has no way. */
	if (protocol_of_image(&img, "input", BOOT_PROTOCOL_AUTO, &cfg.way, NULL)) {
		for (int way = BOOT_PROTOCOL_VMLINUX; way < BOOT_PROTOCOL_AUTO; way++)
			require(!protocol_image_has(&img, (enum boot_protocol)way));
		image_deinit(&img);
		return 0;
	}
	require(protocol_of_image(&img, "input", cfg.way, &cfg.way, NULL) == 0);
	for (int way = BOOT_PROTOCOL_VMLINUX; way < BOOT_PROTOCOL_AUTO; way++) {
		if (protocol_of_image(&img, "input", (enum boot_protocol)way, &cfg.way, NULL))
			continue;
		cfg.initrd = NULL;
		cfg.nmodules = 0;
		load(&img, &cfg);
		cfg.initrd = data;
		cfg.initrd_len = size;
		cfg.nmodules = way == BOOT_PROTOCOL_MULTIBOOT || way == BOOT_PROTOCOL_MULTIBOOT2 ||
			       way == BOOT_PROTOCOL_PVH;
		load(&img, &cfg);
	}
	image_deinit(&img);
	return 0;
}
