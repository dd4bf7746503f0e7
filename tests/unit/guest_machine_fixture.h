/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest on a machine that is an array with hand-made page tables, and registers, without a VMM. Included once by each test that
 * uses it.
 */
#ifndef KVMPROF_TESTS_GUEST_MACHINE_FIXTURE_H
#define KVMPROF_TESTS_GUEST_MACHINE_FIXTURE_H

#include "profile/record/guest/guest.h"

#include "tests/unit/guest_fixture.h"
#include "tests/unit/kallsyms_fixture.h"
#include "tests/unit/kslide_fixture.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define SLIDE UINT64_C(0x1c400000)
#define PA_SLIDE UINT64_C(0x400000)
#define KERNEL_PA UINT64_C(0x1000000) /* as linked */
#define PG (UINT64_C(1) << 31)
#define PAE (UINT64_C(1) << 5)
#define LMA (UINT64_C(0x500))
#define KERNEL_CR3 UINT64_C(0x2000)
#define DECOMPRESSOR UINT64_C(0x3000000)
#define RAM ((size_t)64 << 20)

/* -- the machine ------------------------------------------------------------------- */

static struct {
	struct gmem mem;
	/* The calls that it had. */
	uint64_t slide;
	unsigned int slides, plans;
} machine;
static struct lm g;
static struct target target;
static struct gf_sink sink;
static struct guest *guest;
static uint8_t file[FIX_FILE];
static uint64_t tables, now;

static uint64_t get(uint64_t pa)
{
	uint64_t v;

	assert_int_equal(gmem_read(&machine.mem, pa, &v, 8), 0);
	return v;
}

/* A page of 2 MiB; pa is a multiple of it. */
static void map_page(uint64_t cr3, uint64_t va, uint64_t pa)
{
	uint64_t at = cr3, entry;

	for (int level = 4; level > 2; level--) {
		at += (va >> (12 + 9 * (level - 1)) & 511) * 8;
		if (!get(at)) {
			entry = tables | 7;
			tables += 4096;
			assert_int_equal(gmem_write(&machine.mem, at, &entry, 8), 0);
		}
		at = get(at) & ~UINT64_C(0xfff);
	}
	entry = pa | 0x87;
	assert_int_equal(gmem_write(&machine.mem, at + (va >> 21 & 511) * 8, &entry, 8), 0);
}

static void set_slide(void *ctx, uint64_t slide)
{
	(void)ctx;
	machine.slide = slide;
	machine.slides++;
}

static void set_task_plan(void *ctx, const struct capture_task_plan *plan)
{
	(void)ctx;
	(void)plan;
	machine.plans++;
}

static uint64_t moment; /* on the host's clock; 0: it is the time of the sample */

static uint64_t now_ns(void *ctx)
{
	(void)ctx;
	return moment;
}

static const struct guest_host host = {
	.now_ns = now_ns,
	.memory = &machine.mem,
	.vcpus = 2,
	.boot_low = DECOMPRESSOR,
	.boot_high = DECOMPRESSOR + 0x10000,
	.set_slide = set_slide,
	.set_task_plan = set_task_plan,
};

static int setup(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof(machine));
	memset(&g, 0, sizeof(g));
	memset(&target, 0, sizeof(target));
	gf_sink_init(&sink);
	tables = 0x10000;
	now = UINT64_C(1) << 40;
	moment = 0;
	machine.mem =
		(struct gmem){ .region = { { .size = RAM, .host = calloc(1, RAM) } }, .n = 1 };
	if (!machine.mem.region[0].host)
		return -1;
	map_page(KERNEL_CR3, LM_DIRECT, 0x800000);
	map_page(KERNEL_CR3, LM_VMEMMAP, 0xa00000);
	fix_elf(file);
	if (kimage_parse(&target.kernel, "fixture", file, FIX_FILE, NULL))
		return -1;
	target.elf = file;
	target.elf_len = FIX_FILE;
	target.is_linux = true;
	target.symbols = fix_symbols(true);
	target_bind(&target, &machine.mem);
	return target.symbols ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	guest_destroy(guest);
	guest = NULL;
	target_close(&target);
	gf_sink_deinit(&sink);
	free(machine.mem.region[0].host);
	return 0;
}

static void create_on(const struct guest_host *on, bool moves)
{
	const struct guest_options opt = { .moves = moves,
					   .files = { .system_debug = "", .cache = "" } };
	struct err e = { 0 };

	if (guest_create(&guest, &target, on, &sink.sink, &opt, &e) < 0)
		fail_msg("%s", e.text);
}

static void create(bool moves)
{
	create_on(&host, moves);
}

/* The kernel runs; lstar_off: how far from where LSTAR should point to. */
static struct sample boot(uint64_t slide, uint64_t pa_slide, uint64_t lstar_off)
{
	static uint8_t image[FIX_LEN];
	struct fix_guest f = { 0 };
	struct sample s = { .version = SAMPLE_VERSION,
			    .reason = SAMPLE_TIMER,
			    .mode = SAMPLE_KERNEL,
			    .time_ns = now };

	memcpy(image, file + FIX_OFF_TEXT, FIX_LEN);
	fix_boot(&f, image, slide);
	assert_int_equal(gmem_write(&machine.mem, KERNEL_PA + pa_slide, image, FIX_LEN), 0);
	map_page(KERNEL_CR3, FIX_TEXT + slide, KERNEL_PA + pa_slide);
	s.regs = (struct sample_regs){ .rip = FIX_TEXT + slide + 0x300,
				       .cr0 = PG,
				       .cr3 = KERNEL_CR3,
				       .cr4 = PAE,
				       .efer = LMA,
				       .cs = 0x10 };
	s.lstar = f.cpu.lstar + lstar_off;
	s.idt_base = f.cpu.idt_base;
	return s;
}

static bool is_ready(const struct sample *s)
{
	struct err e = { 0 };
	int ret;
	bool ready = guest_is_ready(guest, s, &ret, &e);

	if (ret < 0)
		fail_msg("%s", e.text);
	return ready;
}

static const char *name_at(uint64_t va)
{
	uint64_t off;
	const struct symbol *s = guest_kernel_symbol(guest, va, &off);

	return s ? s->name : NULL;
}

#endif
