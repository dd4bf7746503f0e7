/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest whose kernel is replaced by another one: the proof of each sample, and kernels that are read from memory. */
#include "tests/unit/guest_machine_fixture.h"

#define NEXT_CR3 UINT64_C(0x6000)   /* page tables of the next kernel */
#define NEXT_PA UINT64_C(0x2000000) /* where it lies */
#define MS UINT64_C(1000000)

/* A sample of the known kernel, its proof, and a later one. */
static struct sample of_known_kernel(void)
{
	struct sample s;

	create(true);
	s = boot(SLIDE, PA_SLIDE, 0);
	assert_true(is_ready(&s));
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	s.time_ns += 100 * MS;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	s.time_ns += 100 * MS;
	return s;
}

/* By its own tables another kernel runs at the place that is known, or at another one. */
static void another_kernel(void **state)
{
	static const char other[] = "another kernel's first bytes";
	struct sample s = of_known_kernel();

	(void)state;
	assert_int_equal(gmem_write(&machine.mem, NEXT_PA, other, sizeof(other)), 0);
	map_page(NEXT_CR3, FIX_TEXT + SLIDE, NEXT_PA);
	s.regs.cr3 = NEXT_CR3;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
	/* The old one's memory is still there, and so are its tables. */
	s.regs.cr3 = KERNEL_CR3;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	/* In the same memory, at the same address. */
	s.time_ns += 100 * MS;
	assert_int_equal(gmem_write(&machine.mem, KERNEL_PA + PA_SLIDE, other, sizeof(other)), 0);
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
}

static void another_place(void **state)
{
	struct sample s = of_known_kernel();

	(void)state;
	/* A kernel of the same build runs at another place. */
	map_page(NEXT_CR3, FIX_TEXT + SLIDE + (64 << 20), KERNEL_PA + PA_SLIDE);
	s.regs.cr3 = NEXT_CR3;
	s.regs.rip += 64 << 20;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
}

/* A sample that proves nothing is of neither kernel. */
static void in_doubt(void **state)
{
	const struct sample known = of_known_kernel();
	struct sample s = known;

	(void)state;
	s.regs.cr3 = 0x7000; /* an empty table: of a program that has exited */
	assert_int_equal(guest_epoch(guest, &s), EPOCH_DOUBT);
	s = known;
	s.regs.cr0 = 1; /* firmware, or a processor that begins */
	s.regs.rip = 0xfff0;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_DOUBT);
	/* A decompressor, by tables that map its own code. */
	map_page(NEXT_CR3, 0, 0);
	s = known;
	s.regs.cr3 = NEXT_CR3;
	s.regs.rip = 0x100100;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_DOUBT);
	/* A program's table has no kernel: its kernel's lies beside it. */
	s = known;
	s.regs.cs = 0x33;
	s.regs.rip = 0x401000;
	s.regs.cr3 = KERNEL_CR3 | 0x1000;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	s.time_ns += 100 * MS;
	s.regs.cr3 = 0x8000;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_DOUBT);
	/* Without registers it is a guest of the guest. */
	memset(&s.regs, 0, sizeof(s.regs));
	s.device = SAMPLE_NESTED;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
}

/* A proof holds for a moment in which no kernel can be replaced. */
static void proof(void **state)
{
	struct sample s = of_known_kernel(), late;

	(void)state;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	late = s;
	late.regs.cr3 = 0x7000;
	late.time_ns = s.time_ns + EPOCH_PROOF_NS - 1;
	assert_int_equal(guest_epoch(guest, &late), EPOCH_SAME);
	late.time_ns++;
	assert_int_equal(guest_epoch(guest, &late), EPOCH_DOUBT);
}

/* Reads a kernel without kallsyms as often as it is tried. */
static void read_in_vain(struct sample *s)
{
	for (int i = 0; i < 3; i++) {
		assert_false(is_ready(s));
		/* Samples that follow at once are no reason to try again. */
		for (int k = 0; k < 8; k++)
			assert_false(is_ready(s));
		gf_expect(&sink, "");
		s->time_ns += 300 * MS;
	}
	assert_true(is_ready(s));
	assert_false(guest_was_retried(guest));
}

/* Attaches to a guest. Returns a sample of its kernel, of which the memory has no names any more. */
static struct sample attach(void)
{
	const struct guest_options opt = { .runs = true,
					   .files = { .system_debug = "", .cache = "" } };
	struct err e = { 0 };

	target_close(&target);
	target_open_running(&target, "guest");
	target_bind(&target, &machine.mem);
	if (guest_create(&guest, &target, &host, &sink.sink, &opt, &e) < 0)
		fail_msg("%s", e.text);
	return boot(SLIDE, PA_SLIDE, 0);
}

/* The guest reboots while its kernel is read for the first time: the next kernel is read instead. */
static void first_read_fails(void **state)
{
	struct sample s = attach();
	struct kf_places places;
	struct buf next;

	(void)state;
	assert_false(is_ready(&s));
	assert_false(guest_was_retried(guest));
	buf_init(&next);
	kf_build(&kf_shapes[3], &next, &places);
	assert_int_equal(gmem_write(&machine.mem, NEXT_PA, next.data, next.len), 0);
	map_page(NEXT_CR3, KF_TEXT, NEXT_PA);
	buf_deinit(&next);
	s.regs.cr3 = NEXT_CR3;
	s.regs.rip = KF_TEXT + 0x100;
	s.time_ns += 100 * MS;
	assert_false(is_ready(&s));
	gf_expect(&sink, "");
	s.time_ns += 200 * MS;
	assert_true(is_ready(&s));
	assert_true(guest_was_retried(guest));
	assert_string_equal(guest_release(guest), "6.1.0-kf");
	assert_non_null(name_at(KF_TEXT + 0x100));
	assert_int_equal(target.symbol_note.code, 0);
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	/* The one after it is noticed. */
	map_page(KERNEL_CR3, KF_TEXT, KERNEL_PA);
	s.regs.cr3 = KERNEL_CR3;
	s.time_ns += 100 * MS;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
}

/* A read that fails takes seconds: samples that were taken meanwhile are no reason to try again. */
static void samples_that_waited_for_a_read(void **state)
{
	struct sample s = attach();

	(void)state;
	moment = s.time_ns + 3000 * MS;
	assert_false(is_ready(&s));
	for (int i = 0; i < 9; i++) {
		s.time_ns += 300 * MS;
		assert_false(is_ready(&s));
	}
	gf_expect(&sink, "");
	moment = 0;
	for (int i = 0; i < 2; i++) {
		s.time_ns += 600 * MS;
		assert_false(is_ready(&s));
	}
	s.time_ns += 600 * MS;
	assert_true(is_ready(&s));
	gf_expect(&sink, "kernel 0 0\n");
}

/* Attaches to a kernel that is read at once. Returns a sample of it. */
static struct sample attach_and_read(void)
{
	struct sample s = attach();
	struct kf_places places;
	struct buf kernel;

	buf_init(&kernel);
	kf_build(&kf_shapes[3], &kernel, &places);
	assert_int_equal(gmem_write(&machine.mem, NEXT_PA, kernel.data, kernel.len), 0);
	map_page(NEXT_CR3, KF_TEXT, NEXT_PA);
	buf_deinit(&kernel);
	assert_false(is_ready(&s)); /* from the tables of another kernel */
	s.time_ns += 300 * MS;
	s.regs.cr3 = NEXT_CR3;
	s.regs.rip = KF_TEXT + 0x100;
	assert_true(is_ready(&s));
	assert_string_equal(guest_release(guest), "6.1.0-kf");
	return s;
}

/* Reading a kernel takes seconds on a slow host: the guest may have rebooted before the next sample. */
static void reboot_while_it_is_read(void **state)
{
	struct sample s = attach_and_read(), old;

	(void)state;
	old = s;
	/* Tables that lead nowhere prove nothing. */
	s.regs.cr3 = 0xd000;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_DOUBT);
	/* Another kernel, elsewhere. */
	map_page(KERNEL_CR3, KF_TEXT + (64 << 20), KERNEL_PA);
	s.regs.cr3 = KERNEL_CR3;
	s.regs.rip = KF_TEXT + (64 << 20) + 0x100;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
	/* A sample from before the reboot, whose memory is still there. */
	assert_int_equal(guest_epoch(guest, &old), EPOCH_SAME);
}

static void reboot_to_the_same_place(void **state)
{
	struct sample s = attach_and_read();
	uint8_t page[4096];

	(void)state;
	memset(page, 0, sizeof(page));
	for (unsigned int i = 0; i < 256; i++)
		assert_int_equal(gmem_write(&machine.mem, NEXT_PA + i * sizeof(page), page,
					    sizeof(page)),
				 0);
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
}

/* A kernel without names is shown without them. */
static void read_never_succeeds(void **state)
{
	static const uint8_t other[FIX_LEN] = "another kernel";
	struct sample s = attach();

	(void)state;
	read_in_vain(&s);
	gf_expect(&sink, "kernel 0 0\n");
	assert_null(name_at(s.regs.rip));
	assert_int_not_equal(target.symbol_note.code, 0);
	/* The one after it is noticed, although nothing of this one is known. */
	for (int i = 0; i < 3; i++) {
		s.time_ns += 2000 * MS;
		assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	}
	assert_int_equal(gmem_write(&machine.mem, NEXT_PA, other, sizeof(other)), 0);
	map_page(NEXT_CR3, FIX_TEXT + SLIDE, NEXT_PA);
	s.regs.cr3 = NEXT_CR3;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_SAME);
	s.time_ns += 100 * MS;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
}

/* A later kernel is looked for where its code runs, by tables of its own, and has no name of the one before. */
static void later_guest(void **state)
{
	struct sample s = of_known_kernel();
	struct guest *first = guest, *next = NULL;
	struct target fresh = { 0 };
	struct err e = { 0 };
	int ret;

	(void)state;
	map_page(NEXT_CR3, FIX_TEXT, NEXT_PA);
	s.regs.cr3 = NEXT_CR3;
	s.regs.rip = FIX_TEXT + 0x300;
	assert_int_equal(guest_epoch(guest, &s), EPOCH_OTHER);
	gf_expect(&sink, "kernel ffffffff9d400000 ffffffff9d40a000 named\n"
			 "module decompressor 3000000+10000 2\n");
	assert_int_equal(guest_create_later(&next, first, &fresh, &e), 0);
	guest = next;
	/* Nothing is told of it before its code runs. */
	s.regs.rip = 0x100000;
	assert_false(guest_is_ready(guest, &s, &ret, &e));
	gf_expect(&sink, "");
	s.regs.rip = FIX_TEXT + 0x300;
	/* The fixture has no kallsyms in memory. */
	read_in_vain(&s);
	gf_expect(&sink, "kernel 0 0\n");
	assert_null(name_at(FIX_SYSCALL + SLIDE + 1));
	assert_null(name_at(FIX_SYSCALL + 1));
	guest_destroy(next);
	guest = first;
	target_close(&fresh);
}
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(another_kernel),
		T(another_place),
		T(in_doubt),
		T(proof),
		T(first_read_fails),
		T(samples_that_waited_for_a_read),
		T(reboot_while_it_is_read),
		T(reboot_to_the_same_place),
		T(read_never_succeeds),
		T(later_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
