/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables that boot_load() writes to guest RAM, read as a guest reads them. */
#include "tests/unit/boot_fixture.h"
#include "tests/unit/skip.h"

#include "base/cleanup.h"
#include "vmm/boot/load.h"
#include "vmm/boot/acpi.h"
#include "vmm/boot/bootparams.h"
#include "vmm/boot/mptable.h"
#include "vmm/gmem_alloc.h"
#include "vmm/layout.h"
#include "base/mmu.h"
#include "base/sample.h"
#include "vmm/image/protocol.h"
#include "base/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RAM (64 * GPA_MIB)
#define CMDLINE "console=ttyS0 panic=-1"

static struct gmem mem;
static struct boot_image img;
static struct buf kernel;
static struct boot_config cfg;
static struct boot_entry entry;
static struct err err;

static int setup(void **state)
{
	(void)state;
	memset(&err, 0, sizeof(err));
	buf_init(&kernel);
	fixture_elf(&kernel);
	cfg = (struct boot_config){ .cmdline = CMDLINE, .vcpus = 3 };
	return gmem_alloc(&mem, &(struct gmem_config){ .size = RAM }, &err) ||
	       image_parse(&img, "FILE", kernel.data, kernel.len, &err);
}

static int teardown(void **state)
{
	(void)state;
	image_deinit(&img);
	buf_deinit(&kernel);
	gmem_alloc_free(&mem);
	return 0;
}

static uint64_t get(uint64_t gpa, unsigned int size)
{
	uint64_t v = 0;

	assert_int_equal(gmem_read(&mem, gpa, &v, size), 0);
	return v;
}

static uint64_t zp(uint32_t off, unsigned int size)
{
	return get(GPA_BOOT_PARAMS + off, size);
}

static void load_ok(void)
{
	if (boot_load(&mem, &img, &cfg, &entry, &err))
		fail_msg("%s", err.text);
}

static void load_fails(int code, const char *text)
{
	struct boot_entry out = { .rip = 42 };
	int r = boot_load(&mem, &img, &cfg, &out, &err);

	if (r != -code || !strstr(err.text, text))
		fail_msg("returned %d \"%s\", expected %d with \"%s\"", r, err.text, -code, text);
	assert_int_equal(out.rip, 42);
	memset(&err, 0, sizeof(err));
}

static void check_sum(uint64_t gpa, size_t len)
{
	const uint8_t *p = gmem_ptr(&mem, gpa, len);
	uint8_t sum = 0;

	assert_non_null(p);
	for (size_t i = 0; i < len; i++)
		sum += p[i];
	assert_int_equal(sum, 0);
}

static void kernel_is_where_it_wants_to_be(void **state)
{
	const uint8_t *bss;

	(void)state;
	load_ok();
	assert_int_equal(entry.rip, FIX_TEXT_GPA + 0x40);
	assert_memory_equal(gmem_ptr(&mem, FIX_TEXT_GPA, FIX_TEXT_LEN), kernel.data + FIX_TEXT_OFF,
			    FIX_TEXT_LEN);
	assert_memory_equal(gmem_ptr(&mem, FIX_DATA_GPA, FIX_DATA_LEN), kernel.data + FIX_DATA_OFF,
			    FIX_DATA_LEN);
	bss = gmem_ptr(&mem, FIX_DATA_GPA + FIX_DATA_LEN, FIX_DATA_MEM - FIX_DATA_LEN);
	for (size_t i = 0; i < FIX_DATA_MEM - FIX_DATA_LEN; i++)
		assert_int_equal(bss[i], 0);
}

/* The vCPU's first state: segments from the GDT, the low 4 GiB mapped one to one. */
static void entry_state(void **state)
{
	struct mmu_root root = { .cr0 = UINT64_C(1) << 31, .cr4 = 1 << 5, .efer = 1 << 10 };
	static const uint64_t probe[] = { 0, 0x1234567, GPA_PCI_HOLE, GPA_LAPIC + 0x20,
					  GPA_HIGH_RAM - 1 };
	struct mmu_page page;

	(void)state;
	load_ok();
	assert_int_equal(entry.rsi, GPA_BOOT_PARAMS);
	assert_int_equal(entry.gdt_limit + 1, GDT_ENTRIES * 8);
	assert_int_equal(get(entry.gdt_base, 8), 0);
	assert_int_equal(get(entry.gdt_base + GDT_CODE, 8), UINT64_C(0x00af9b000000ffff));
	assert_int_equal(get(entry.gdt_base + GDT_DATA, 8), UINT64_C(0x00cf93000000ffff));

	root.cr3 = entry.cr3;
	for (size_t i = 0; i < ARRAY_SIZE(probe); i++) {
		assert_int_equal(mmu_walk(&mem, &root, probe[i], &page), 0);
		assert_int_equal(page.gpa, probe[i]);
		assert_int_equal(page.size, 2 * GPA_MIB);
		assert_true(page.write && page.exec && !page.user);
	}
	assert_int_equal(mmu_walk(&mem, &root, GPA_HIGH_RAM, &page), -EFAULT);
}

static void zero_page_of_a_vmlinux(void **state)
{
	(void)state;
	load_ok();
	assert_int_equal(zp(0x1ef, 1), 0); /* sentinel */
	assert_int_equal(zp(0x1fe, 2), 0xaa55);
	assert_int_equal(zp(0x202, 4), 0x53726448);
	assert_int_equal(zp(0x206, 2), 0x020f);
	assert_int_equal(zp(0x210, 1), 0xff);
	assert_int_equal(zp(0x211, 1), 0x01);
	assert_int_equal(zp(0x218, 8), 0); /* no initrd */
	assert_int_equal(zp(0x228, 4), GPA_CMDLINE);
	assert_int_equal(zp(0x0c0, 8), 0);
	assert_int_equal(zp(0x0c8, 4), 0);
	assert_int_equal(zp(0x238, 4), 2047);
	assert_int_equal(zp(0x070, 8), GPA_ACPI);
	assert_string_equal(gmem_ptr(&mem, GPA_CMDLINE, sizeof(CMDLINE)), CMDLINE);
}

static void zero_page_of_a_bzimage(void **state)
{
	struct boot_image bz;
	struct buf file;

	(void)state;
	buf_init(&file);
	fixture_bzimage(&file, kernel.data, kernel.len); /* not compressed */
	file.data[SETUP_LOADFLAGS] = 0xa3; /* heap and KASLR flags are not for us to pass on */
	assert_int_equal(image_parse(&bz, "FILE", file.data, file.len, &err), 0);
	assert_string_equal(bz.compression, "none");
	assert_null(bz.unpacked);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	assert_int_equal(zp(0x211, 1), 0x21);
	assert_int_equal(zp(0x210, 1), 0xff);
	assert_int_equal(zp(0x206, 2), 0x020f);
	assert_int_equal(zp(0x22c, 4), 0x7fffffff);
	assert_int_equal(zp(0x24c, 4), kernel.len);
	assert_int_equal(zp(0x260, 4), 0x300000);
	assert_int_equal(zp(0x26c, 4), 0); /* behind the header */
	image_deinit(&bz);
	buf_deinit(&file);
}

static void check_e820(const uint8_t *page, unsigned int i, uint64_t gpa, uint64_t end,
		       uint32_t type)
{
	uint64_t v[2];
	uint32_t t;

	memcpy(v, page + 0x2d0 + i * 20, 16);
	memcpy(&t, page + 0x2d0 + i * 20 + 16, 4);
	assert_int_equal(v[0], gpa);
	assert_int_equal(v[0] + v[1], end);
	assert_int_equal(t, type);
}

static void e820_covers_ram(void **state)
{
	struct boot_params_info info = { .ram_size = RAM };
	uint8_t page[BOOT_PARAMS_SIZE];

	(void)state;
	boot_params_build(page, &img, &info);
	assert_int_equal(page[0x1e8], 3);
	check_e820(page, 0, 0, 0x9fc00, E820_RAM);
	check_e820(page, 1, 0x9fc00, 0x100000, E820_RESERVED);
	check_e820(page, 2, 0x100000, RAM, E820_RAM);

	info.ram_size = GPA_PCI_HOLE;
	boot_params_build(page, &img, &info);
	assert_int_equal(page[0x1e8], 3);
	check_e820(page, 2, 0x100000, 0xc0000000, E820_RAM);

	info.ram_size = GPA_PCI_HOLE + GPA_MIB;
	boot_params_build(page, &img, &info);
	assert_int_equal(page[0x1e8], 4);
	check_e820(page, 2, 0x100000, 0xc0000000, E820_RAM);
	check_e820(page, 3, UINT64_C(0x100000000), UINT64_C(0x100100000), E820_RAM);

	info.ram_size = GPA_MIB;
	boot_params_build(page, &img, &info);
	assert_int_equal(page[0x1e8], 2);
}

static void initrd_is_at_the_top(void **state)
{
	static uint8_t initrd[10000];

	(void)state;
	memset(initrd, 0x5a, sizeof(initrd));
	cfg.initrd = initrd;
	cfg.initrd_len = sizeof(initrd);
	load_ok();
	assert_int_equal(zp(0x218, 4), RAM - 3 * GPA_PAGE);
	assert_int_equal(zp(0x21c, 4), sizeof(initrd));
	assert_memory_equal(gmem_ptr(&mem, zp(0x218, 4), sizeof(initrd)), initrd, sizeof(initrd));

	/* the largest that fits is behind bss, and one page more is too much */
	cfg.initrd_len = RAM - (FIX_DATA_GPA + FIX_DATA_MEM);
	cfg.initrd = calloc(1, cfg.initrd_len + GPA_PAGE);
	load_ok();
	assert_int_equal(zp(0x218, 4), FIX_DATA_GPA + FIX_DATA_MEM);
	cfg.initrd_len++;
	load_fails(ENOMEM, "give at least 65 MiB");
	cfg.initrd_len = SIZE_MAX;
	load_fails(ENOMEM, "use a smaller initrd");
	free((void *)cfg.initrd);
}

static void initrd_keeps_off_init_size(void **state)
{
	uint32_t init = 0x2e00000; /* 16 MiB + 46 MiB of 64 */
	uint32_t last = 0x3f00fff;

	(void)state;
	img.setup_header_len = 0x7b;
	memcpy(img.setup_header + SETUP_INIT_SIZE - SETUP_HEADER, &init, 4);
	memcpy(img.setup_header + SETUP_INITRD_ADDR_MAX - SETUP_HEADER, &last, 4);
	cfg.initrd_len = 0x101000;
	cfg.initrd = calloc(1, cfg.initrd_len + 1);
	load_ok();
	assert_int_equal(zp(0x218, 4), 0x3e00000);
	cfg.initrd_len++;
	load_fails(ENOMEM, "does not fit between the kernel (ends at 62 MiB)");
	free((void *)cfg.initrd);
}

static void refuses_what_does_not_fit(void **state)
{
	char *longline = malloc(4096);
	uint32_t init = 0x4000000;

	(void)state;
	memset(longline, 'x', 4096);
	longline[2047] = '\0';
	cfg.cmdline = longline;
	load_ok();
	longline[2047] = 'x';
	longline[2048] = '\0';
	load_fails(EFBIG, "has 2048 bytes, this kernel accepts 2047");
	img.cmdline_max = UINT32_MAX; /* hostile: our own limit counts */
	load_ok();
	free(longline);
	longline = malloc(GPA_CMDLINE_SIZE + 1);
	memset(longline, 'x', GPA_CMDLINE_SIZE);
	longline[GPA_CMDLINE_SIZE] = '\0';
	cfg.cmdline = longline;
	load_fails(EFBIG, "accepts 65535");
	cfg.cmdline = "";
	free(longline);

	cfg.vcpus = 0;
	load_fails(EINVAL, "0 vCPUs requested (expected 1 to 64)");
	cfg.vcpus = VM_MAX_VCPUS + 1;
	load_fails(EINVAL, "65 vCPUs");
	cfg.vcpus = 1;

	img.setup_header_len = 0x7b;
	memcpy(img.setup_header + SETUP_INIT_SIZE - SETUP_HEADER, &init, 4);
	load_fails(ENOMEM, "give at least 80 MiB");
	img.setup_header_len = 0;

	img.low = img.seg[0].gpa = GPA_KERNEL_MIN - 1;
	load_fails(EINVAL, "segment at guest address 0xfffff");
}

/* -- through the decompressor --------------------------------------------------- */

#define PM_OFF (5 * 512u) /* as fixture_bzimage() lays it out */

static struct buf bz_file;
static struct boot_image bz;

/* A bzImage of that payload, set up to be entered in its decompressor. */
static void make_bzimage(void)
{
	buf_init(&bz_file);
	fixture_bzimage(&bz_file, kernel.data, kernel.len);
	assert_int_equal(image_parse(&bz, "FILE", bz_file.data, bz_file.len, &err), 0);
	cfg.way = BOOT_PROTOCOL_BZIMAGE;
}

static void drop_bzimage(void)
{
	image_deinit(&bz);
	buf_deinit(&bz_file);
}

static void set_field(uint32_t off, uint64_t v, unsigned int size)
{
	memcpy(bz.setup_header + off - SETUP_HEADER, &v, size);
}

static void enters_the_decompressor(void **state)
{
	uint64_t used = FIX_TEXT_GPA;

	(void)state;
	make_bzimage();
	assert_ptr_equal(bz.pm, bz_file.data + PM_OFF);
	assert_int_equal(bz.pm_len, (0x40 + FIX_LEN + 15) / 16 * 16);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	assert_int_equal(entry.rip, used + 0x200);
	assert_int_equal(entry.rsi, GPA_BOOT_PARAMS);
	assert_memory_equal(gmem_ptr(&mem, used, bz.pm_len), bz.pm, bz.pm_len);
	/* nothing of the payload is where the payload wants to be */
	assert_int_equal(get(FIX_DATA_GPA, 8), 0);
	assert_int_equal(zp(0x214, 4), used);
	assert_int_equal(zp(0x211, 1), 0x01);
	assert_int_equal(zp(0x260, 4), 0x300000);
	drop_bzimage();
}

static void decompressor_goes_to_an_aligned_place(void **state)
{
	(void)state;
	make_bzimage();
	set_field(SETUP_PREF_ADDRESS, FIX_TEXT_GPA + 1, 8);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	assert_int_equal(entry.rip, FIX_TEXT_GPA + 0x200000 + 0x200);
	set_field(SETUP_KERNEL_ALIGNMENT, 0x2000000, 4);
	set_field(SETUP_PREF_ADDRESS, 0x100000, 8);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	assert_int_equal(entry.rip, 0x2000000 + 0x200);
	/* one that can't be moved knows only one place */
	set_field(SETUP_RELOCATABLE, 0, 1);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	assert_int_equal(entry.rip, 0x100000 + 0x200);
	drop_bzimage();
}

static void initrd_keeps_off_the_decompressor(void **state)
{
	(void)state;
	make_bzimage();
	set_field(SETUP_INIT_SIZE, 0x2e00000, 4); /* from 16 to 62 of 64 MiB */
	cfg.initrd_len = 2 * GPA_MIB;
	cfg.initrd = calloc(1, cfg.initrd_len + 1);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	assert_int_equal(zp(0x218, 4), 62 * GPA_MIB);
	cfg.initrd_len++;
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), -ENOMEM);
	assert_non_null(strstr(err.text, "give at least 65 MiB"));
	free((void *)cfg.initrd);
	drop_bzimage();
}

static void refuses_a_bad_decompressor(void **state)
{
	static const struct {
		uint32_t off;
		unsigned int size;
		uint64_t value;
		int code;
		const char *text;
	} cases[] = {
		{ SETUP_VERSION, 2, 0x020b, ENOTSUP, "boot protocol 2.11 knows no 64-bit entry" },
		{ SETUP_XLOADFLAGS, 2, 0x3e, ENOTSUP, "xloadflags 0x3e without XLF_KERNEL_64" },
		{ SETUP_LOADFLAGS, 1, 0x80, ENOTSUP, "loadflags 0x80 without LOADED_HIGH" },
		{ SETUP_KERNEL_ALIGNMENT, 4, 0, EINVAL, "kernel_alignment 0x0 is not a power" },
		{ SETUP_KERNEL_ALIGNMENT, 4, 0x300000, EINVAL, "0x300000 is not a power of two" },
		{ SETUP_KERNEL_ALIGNMENT, 4, 1u << 31, ENOMEM, "give at least 2051 MiB" },
		{ SETUP_INIT_SIZE, 4, 0, EINVAL, "init_size 0x0 is less than" },
		{ SETUP_INIT_SIZE, 4, 0x503f, EINVAL, "init_size 0x503f is less than the 0x5040" },
		{ SETUP_INIT_SIZE, 4, 0x3000001, ENOMEM, "give at least 65 MiB" },
		{ SETUP_INIT_SIZE, 4, 0xbf000000, ENOMEM, "give at least 3072 MiB" },
		{ SETUP_INIT_SIZE, 4, 0xbf000001, EINVAL, "more than there can be below" },
		{ SETUP_INIT_SIZE, 4, UINT32_MAX, EINVAL, "more than there can be below" },
		{ SETUP_PREF_ADDRESS, 8, 0xfffff, EINVAL, "wants to be loaded at 0xfffff" },
		{ SETUP_PREF_ADDRESS, 8, GPA_PCI_HOLE, EINVAL, "wants to be loaded at 0xc0000000" },
		{ SETUP_PREF_ADDRESS, 8, UINT64_MAX, EINVAL, "at 0xffffffffffffffff" },
		{ SETUP_SYSSIZE, 4, 0x506, EINVAL, "has 20544 bytes, syssize says 20576" },
		{ SETUP_SYSSIZE, 4, UINT32_MAX, EINVAL, "is truncated" },
	};

	(void)state;
	make_bzimage();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct boot_image saved = bz, good = img;

		set_field(cases[i].off, cases[i].value, cases[i].size);
		img = bz;
		load_fails(cases[i].code, cases[i].text);
		img = good;
		bz = saved;
	}
	/* a paragraph that the file's end cuts is whole enough; a missing one is not */
	bz.pm_len -= 15;
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), 0);
	bz.pm_len--;
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), -EINVAL);
	bz.pm_len = 0x200;
	set_field(SETUP_SYSSIZE, 0x20, 4);
	assert_int_equal(boot_load(&mem, &bz, &cfg, &entry, &err), -EINVAL);
	drop_bzimage();
	memset(&err, 0, sizeof(err));
	/* and an ELF file has none at all */
	load_fails(EINVAL, "--boot=bzimage needs a bzImage");
}

static void mp_table(void **state)
{
	unsigned int counts[5] = { 0 }, entries, bsp = 0, irqs = 0;
	static const unsigned int sizes[5] = { 20, 8, 8, 8, 8 };
	uint64_t at = GPA_MPTABLE, table, len;

	(void)state;
	load_ok();
	assert_memory_equal(gmem_ptr(&mem, at, 4), "_MP_", 4);
	assert_int_equal(get(at + 8, 1), 1);
	assert_int_equal(get(at + 9, 1), 4);
	assert_int_equal(get(at + 11, 4), 0);
	check_sum(at, 16);
	table = get(at + 4, 4);
	assert_memory_equal(gmem_ptr(&mem, table, 4), "PCMP", 4);
	len = get(table + 4, 2);
	check_sum(table, len);
	assert_int_equal(get(table + 36, 4), GPA_LAPIC);
	entries = (unsigned int)get(table + 34, 2);

	at = table + 44;
	for (unsigned int i = 0; i < entries; i++) {
		unsigned int type = (unsigned int)get(at, 1);

		assert_true(type < 5);
		switch (type) {
		case 0:
			assert_int_equal(get(at + 1, 1), counts[0]);
			assert_int_equal(get(at + 3, 1) & 1, 1);
			bsp += get(at + 3, 1) >> 1 & 1;
			break;
		case 1:
			assert_memory_equal(gmem_ptr(&mem, at + 2, 6), "ISA   ", 6);
			break;
		case 2:
			assert_int_equal(get(at + 1, 1), 3); /* its id follows the processors' */
			assert_int_equal(get(at + 4, 4), GPA_IOAPIC);
			break;
		case 3:
			assert_int_equal(get(at + 6, 1), 3);
			assert_int_equal(get(at + 7, 1),
					 get(at + 5, 1) ? get(at + 5, 1) : GSI_TIMER);
			irqs |= 1u << get(at + 5, 1);
			break;
		case 4:
			assert_int_equal(get(at + 1, 1), counts[4] ? 1 : 3);
			assert_int_equal(get(at + 7, 1), counts[4]); /* LINT0 ExtINT, LINT1 NMI */
			break;
		}
		counts[type]++;
		at += sizes[type];
	}
	assert_int_equal(at - table, len);
	assert_int_equal(counts[0], 3);
	assert_int_equal(bsp, 1);
	assert_int_equal(counts[1], 1);
	assert_int_equal(counts[2], 1);
	assert_int_equal(counts[3], 16);
	assert_int_equal(irqs, 0xffff);
	assert_int_equal(counts[4], 2);
}

static uint64_t check_table(uint64_t at, const char *signature)
{
	assert_memory_equal(gmem_ptr(&mem, at, 4), signature, 4);
	assert_in_range(at, GPA_ACPI, GPA_ACPI + GPA_ACPI_SIZE - 1);
	assert_true(get(at + 4, 4) >= 36);
	check_sum(at, get(at + 4, 4));
	return get(at + 4, 4);
}

static void acpi_tables(void **state)
{
	static const uint8_t s5[] = {
		0x08, '_', 'S', '5', '_', 0x12, 8, 4, 0x0a, 5, 0x0a, 5, 0, 0
	};
	uint64_t xsdt, fadt, madt, dsdt, facs, len;
	unsigned int cpus = 0, ioapics = 0;

	(void)state;
	load_ok();
	assert_memory_equal(gmem_ptr(&mem, GPA_ACPI, 8), "RSD PTR ", 8);
	check_sum(GPA_ACPI, 20);
	check_sum(GPA_ACPI, 36);
	assert_int_equal(get(GPA_ACPI + 15, 1), 2);
	xsdt = get(GPA_ACPI + 24, 8);
	assert_int_equal(check_table(xsdt, "XSDT"), 36 + 2 * 8);
	fadt = get(xsdt + 36, 8);
	madt = get(xsdt + 44, 8);

	assert_int_equal(check_table(fadt, "FACP"), 276);
	assert_int_equal(get(fadt + 46, 2), IRQ_SCI);
	assert_int_equal(get(fadt + 48, 4), 0); /* no SMI: always in ACPI mode */
	assert_int_equal(get(fadt + 56, 4), 0x600);
	assert_int_equal(get(fadt + 64, 4), 0x604);
	assert_int_equal(get(fadt + 76, 4), 0);
	assert_int_equal(get(fadt + 88, 1), 4);
	assert_int_equal(get(fadt + 89, 1), 2);
	assert_int_equal(get(fadt + 112, 4) >> 20 & 1, 0); /* not hardware-reduced */
	assert_int_equal(get(fadt + 112, 4) >> 10 & 1, 1);
	assert_int_equal(get(fadt + 116, 1), 1); /* reset register: I/O port ... */
	assert_int_equal(get(fadt + 120, 8), 0x64);
	assert_int_equal(get(fadt + 128, 1), 0xfe);
	assert_int_equal(get(fadt + 152, 8), 0x600);
	assert_int_equal(get(fadt + 176, 8), 0x604);
	dsdt = get(fadt + 140, 8);
	facs = get(fadt + 36, 4);
	assert_int_equal(get(fadt + 40, 4), dsdt);
	assert_int_equal(get(fadt + 132, 8), 0); /* only one of the two addresses */

	assert_int_equal(check_table(dsdt, "DSDT"), 36 + sizeof(s5));
	assert_memory_equal(gmem_ptr(&mem, dsdt + 36, sizeof(s5)), s5, sizeof(s5));
	assert_int_equal(facs % 64, 0);
	assert_memory_equal(gmem_ptr(&mem, facs, 4), "FACS", 4);
	assert_int_equal(get(facs + 4, 4), 64);

	len = check_table(madt, "APIC");
	assert_int_equal(get(madt + 36, 4), GPA_LAPIC);
	for (uint64_t at = madt + 44; at < madt + len; at += get(at + 1, 1)) {
		assert_true(get(at + 1, 1) >= 6 && at + get(at + 1, 1) <= madt + len);
		if (get(at, 1) == 0)
			assert_int_equal(get(at + 3, 1), cpus++);
		if (get(at, 1) == 1) {
			assert_int_equal(get(at + 2, 1), 3);
			assert_int_equal(get(at + 4, 4), GPA_IOAPIC);
			ioapics++;
		}
	}
	assert_int_equal(cpus, 3);
	assert_int_equal(ioapics, 1);
}

/* The reference implementation parses the tables; and finds no devices without devices. */
static void iasl_reads_them(void **state)
{
	static const struct {
		struct boot_platform platform;
		const char *has, *lacks;
	} machine[] = {
		{ { .vcpus = 1 }, "_S5", "_SB" },
		{ { .vcpus = 2, .pci = true }, "PNP0A08", "LNRO0005" },
		{ { .vcpus = 2, .virtio_mmio = VIRTIO_MMIO_MAX }, "LNRO0005", "PNP0A08" },
		{ { .vcpus = 8, .pci = true, .virtio_mmio = 1 }, "ResourceProducer", "VIR1" },
	};
	static const char *const name[] = { "DSDT", "APIC", "FACP", "MCFG" };
	char dir[] = "/tmp/kvmprof-iasl-XXXXXX", command[200], text[40000];

	(void)state;
	if (system("command -v iasl >/dev/null") != 0) {
		SKIP("iasl is not installed");
	}
	assert_non_null(mkdtemp(dir));
	for (unsigned int i = 0; i < ARRAY_SIZE(machine); i++) {
		struct buf b;
		FILE *f;
		size_t n;

		buf_init(&b);
		boot_acpi_build(&b, &machine[i].platform);
		for (unsigned int k = 0; k < ARRAY_SIZE(name); k++) {
			const uint8_t *at = memmem(b.data, b.len, name[k], 4);
			uint32_t len;

			assert_int_equal(at != NULL, k < 3 || machine[i].platform.pci);
			if (!at)
				continue;
			memcpy(&len, at + 4, sizeof(len));
			snprintf(command, sizeof(command), "%s/%s.dat", dir, name[k]);
			f = fopen(command, "w");
			assert_non_null(f);
			assert_int_equal(fwrite(at, 1, len, f), len);
			fclose(f);
			snprintf(command, sizeof(command),
				 "cd %s && iasl -d %s.dat >log 2>&1 && ! grep -iE 'error|invalid' "
				 "log",
				 dir, name[k]);
			assert_int_equal(system(command), 0);
		}
		buf_deinit(&b);
		/* And the source that it shows compiles. */
		snprintf(command, sizeof(command), "cd %s && iasl -p again DSDT.dsl >log 2>&1",
			 dir);
		assert_int_equal(system(command), 0);
		snprintf(command, sizeof(command), "%s/DSDT.dsl", dir);
		f = fopen(command, "r");
		assert_non_null(f);
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = 0;
		assert_non_null(strstr(text, machine[i].has));
		assert_null(strstr(text, machine[i].lacks));
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void tables_fit_for_every_vcpu_count(void **state)
{
	(void)state;
	for (unsigned int n = 1; n <= VM_MAX_VCPUS; n++) {
		struct buf b;

		buf_init(&b);
		boot_mptable_build(&b, &(struct boot_platform){ .vcpus = n });
		assert_true(!b.failed && b.len <= GPA_MPTABLE_SIZE);
		b.len = 0;
		boot_acpi_build(&b, &(struct boot_platform){ .vcpus = n });
		assert_true(!b.failed && b.len <= GPA_ACPI_SIZE);
		buf_deinit(&b);
	}
}

/* The information block of multiboot2, tag by tag as a kernel reads it. */
static void multiboot2_information(void **state)
{
	const struct boot_module module = {
		.data = (const uint8_t *)"0123456789", .len = 10, .name = "file", .args = "a=b c"
	};
	uint64_t at, end;
	unsigned int seen = 0, modules = 0;

	(void)state;
	img.mb2_entry = FIX_TEXT_GPA + 0x40;
	cfg.way = BOOT_PROTOCOL_MULTIBOOT2;
	cfg.name = "vmkernel";
	cfg.initrd = (const uint8_t *)"initrd";
	cfg.initrd_len = 6;
	cfg.module = &module;
	cfg.nmodules = 1;
	load_ok();
	assert_int_equal(entry.mode, BOOT_MODE_FLAT32);
	assert_int_equal(entry.rax, 0x36d76289);
	assert_int_equal(entry.rip, FIX_TEXT_GPA + 0x40);
	assert_int_equal(entry.rbx % 8, 0);
	end = entry.rbx + get(entry.rbx, 4);
	assert_int_equal(get(entry.rbx + 4, 4), 0);
	for (at = entry.rbx + 8; at < end && get(at, 4); at += (get(at + 4, 4) + 7) / 8 * 8) {
		uint32_t size = (uint32_t)get(at + 4, 4), type = (uint32_t)get(at, 4);
		const char *text = gmem_ptr(&mem, at + 8, size - 8);

		assert_true(size >= 8 && size <= end - at && type < 32);
		seen |= 1u << type;
		if (type == 1) {
			assert_string_equal(text, CMDLINE);
			assert_int_equal(size, 8 + sizeof(CMDLINE));
		} else if (type == 2) {
			assert_string_equal(text, "kvmprof");
		} else if (type == 3) {
			uint64_t from = get(at + 8, 4), to = get(at + 12, 4);

			assert_int_equal(from % GPA_PAGE, 0);
			assert_string_equal(text + 8, modules ? "a=b c" : "");
			assert_memory_equal(gmem_ptr(&mem, from, to - from),
					    modules ? "0123456789" : "initrd", modules ? 10 : 6);
			assert_int_equal(to - from, modules ? 10 : 6);
			modules++;
		} else if (type == 4) {
			assert_int_equal(get(at + 8, 4), GPA_LOW_RAM_END >> 10);
			assert_int_equal(get(at + 12, 4), (RAM - GPA_KERNEL_MIN) >> 10);
		} else if (type == 6) {
			assert_int_equal(get(at + 8, 4), 24);
			assert_int_equal((size - 16) % 24, 0);
			assert_int_equal(get(at + 16, 8), 0);
			assert_int_equal(get(at + 32, 4), 1);
		} else if (type == 15) {
			assert_int_equal(size, 8 + BOOT_RSDP_SIZE);
			assert_memory_equal(text, "RSD PTR ", 8);
			check_sum(at + 8, BOOT_RSDP_SIZE);
			assert_int_equal(get(get(at + 8 + 24, 8), 4), 0x54445358); /* XSDT */
		} else if (type == 21) {
			assert_int_equal(get(at + 8, 4), FIX_TEXT_GPA);
		}
	}
	/* The end is a tag of its own, and the last one. */
	assert_int_equal(get(at + 4, 4), 8);
	assert_int_equal(at + 8, end);
	assert_int_equal(modules, 2);
	assert_int_equal(seen,
			 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 6 | 1u << 15 | 1u << 21);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(kernel_is_where_it_wants_to_be),
		T(entry_state),
		T(zero_page_of_a_vmlinux),
		T(zero_page_of_a_bzimage),
		T(e820_covers_ram),
		T(initrd_is_at_the_top),
		T(initrd_keeps_off_init_size),
		T(refuses_what_does_not_fit),
		T(enters_the_decompressor),
		T(decompressor_goes_to_an_aligned_place),
		T(initrd_keeps_off_the_decompressor),
		T(refuses_a_bad_decompressor),
		T(mp_table),
		T(acpi_tables),
		T(iasl_reads_them),
		T(tables_fit_for_every_vcpu_count),
		T(multiboot2_information),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
