/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The results for a sample: where the kernel is, whose sample it is, and what its frames lie in.
 */
#include "tests/unit/guest_machine_fixture.h"

static struct profile_sample out;
static struct stack stack;

/* Makes the contents of lm's arrays the machine's memory. */
static void put_structures(void)
{
	assert_int_equal(gmem_write(&machine.mem, 0x800000, g.arena, sizeof(g.arena)), 0);
	assert_int_equal(gmem_write(&machine.mem, 0xa00000, g.pages, sizeof(g.pages)), 0);
}

static void process(const struct sample *s)
{
	struct err e = { 0 };

	memset(&stack, 0, sizeof(stack));
	assert_true(is_ready(s));
	if (guest_process(guest, s, &stack, &out, &e) < 0)
		fail_msg("%s", e.text);
	assert_ptr_equal(out.stack, &stack);
	assert_true(stack.n >= 1);
}

static size_t read_text(uint64_t va, uint8_t *dst, size_t len)
{
	return sink.kernel.read_text(sink.kernel.read_ctx, va, dst, len);
}

/* -- where the kernel is ------------------------------------------------------------ */

static void kernel_that_stays(void **state)
{
	uint8_t got[16];

	(void)state;
	create(false);
	gf_expect(&sink, "kernel ffffffff81000000 ffffffff8100a000 named\n");
	assert_string_equal(name_at(FIX_SYSCALL + 1), "entry_SYSCALL_64");
	boot(0, 0, 0);
	assert_int_equal(read_text(FIX_TEXT + 0x300, got, 16), 16);
	assert_memory_equal(got, file + FIX_OFF_TEXT + 0x300, 16);
	assert_int_equal(guest_end_search(guest, NULL), 0);
	gf_expect(&sink, "");
	assert_int_equal(machine.slides, 0);
}

static void kernel_that_moves(void **state)
{
	struct sample s, early;
	struct guest_stats stats;
	uint8_t got[16];

	(void)state;
	create(true);
	gf_expect(&sink, "");
	s = boot(SLIDE, PA_SLIDE, 0);
	/* The decompressor; then the kernel before anything of it is set up. */
	early = s;
	early.regs.rip = DECOMPRESSOR + 0x100;
	assert_false(is_ready(&early));
	early.regs.rip = s.regs.rip;
	early.regs.cr0 = 0;
	assert_false(is_ready(&early));
	early = s;
	early.regs.cr3 = 0x7000; /* an empty table */
	early.lstar = early.idt_base = 0;
	assert_false(is_ready(&early));
	gf_expect(&sink, "");
	assert_true(is_ready(&s));
	gf_expect(&sink, "kernel ffffffff9d400000 ffffffff9d40a000 named\n"
			 "module decompressor 3000000+10000 2\n");
	assert_int_equal(machine.slide, SLIDE);
	assert_int_equal(machine.slides, 1);
	assert_string_equal(name_at(FIX_SYSCALL + SLIDE + 1), "entry_SYSCALL_64");
	assert_null(name_at(FIX_SYSCALL));
	assert_int_equal(read_text(FIX_TEXT + SLIDE + 0x300, got, 16), 16);
	assert_memory_equal(got, file + FIX_OFF_TEXT + 0x300, 16);
	assert_int_equal(read_text(FIX_TEXT + 0x300, got, 16), 0);
	process(&s);
	assert_int_equal(stack.ip[0], s.regs.rip);
	guest_stats(guest, &stats);
	assert_int_equal(stats.slide.status, KSLIDE_SOLVED);
	assert_true(stats.moves);
	assert_false(stats.have_tasks || stats.have_maps || stats.have_modules);
	assert_string_not_equal(stats.no_tasks, "");
}

/* LSTAR and the rest do not agree: addresses stay what they are, and text is what runs. */
static void conflict(void **state)
{
	struct guest_stats stats;
	struct sample s;
	uint8_t got[16];

	(void)state;
	create(true);
	s = boot(SLIDE, PA_SLIDE, 2u << 20);
	assert_true(is_ready(&s));
	gf_expect(&sink, "kernel 0 0\nmodule decompressor 3000000+10000 2\n");
	assert_int_equal(machine.slides, 0);
	assert_null(name_at(FIX_SYSCALL + SLIDE));
	assert_null(name_at(FIX_SYSCALL));
	assert_int_equal(read_text(FIX_TEXT + SLIDE + 0x300, got, 16), 16);
	assert_memory_equal(got, file + FIX_OFF_TEXT + 0x300, 16);
	/* Nothing runs where the image was linked, whatever lies in that memory. */
	assert_int_equal(read_text(FIX_TEXT + 0x300, got, 16), 0);
	process(&s);
	assert_int_equal(stack.ip[0], s.regs.rip);
	gf_expect(&sink, "comm 1/1 guest\ncomm 1/2 vcpu1\n");
	guest_stats(guest, &stats);
	assert_int_equal(stats.slide.status, KSLIDE_CONFLICT);
}

/* QEMU's PC: what its firmware and a bzImage's code are by where they run, and when. */
static void firmware_and_decompressor(void **state)
{
	struct guest_host pc = host;
	struct sample s, early;

	(void)state;
	pc.firmware = true;
	pc.boot_low = 0x100000;
	pc.boot_high = 0x280000;
	create_on(&pc, true);
	s = boot(SLIDE, PA_SLIDE, 0);
	early = s;
	early.regs.cr0 = 0;
	early.regs.rip = 0x2fe1234;
	assert_false(is_ready(&early)); /* the firmware's copy of itself */
	early.regs.rip = 0x100010;
	assert_false(is_ready(&early)); /* the decompressor before it has page tables */
	early.regs.cr0 = PG;
	early.regs.rip = 0x1c31000;
	assert_false(is_ready(&early));
	early.regs.rip = 0x1c45000;
	assert_false(is_ready(&early));
	gf_expect(&sink, "");
	assert_true(is_ready(&s));
	gf_expect(&sink, "kernel ffffffff9d400000 ffffffff9d40a000 named\n"
			 "module firmware c0000+40000 13\n"
			 "module firmware fff00000+100000 13\n"
			 "module firmware 2fe0000+20000 13\n"
			 "module decompressor 10000+10000 13\n"
			 "module decompressor 100000+180000 13\n"
			 "module decompressor 1c20000+40000 13\n");
	assert_string_equal(name_at(0xe9fba), "firmware");
	assert_string_equal(name_at(0xfffffff0), "firmware_rom");
	assert_string_equal(name_at(0xffffffff), "firmware_rom");
	assert_string_equal(name_at(0x2fe0000), "firmware_copy");
	assert_string_equal(name_at(0x10200), "setup");
	assert_string_equal(name_at(0x100000), "decompressor_start");
	assert_string_equal(name_at(0x27ffff), "decompressor_start");
	assert_string_equal(name_at(0x1c32000), "decompressor");
	/* Memory that was not seen to be code, and the place where the kernel's own first instructions run. */
	assert_null(name_at(0x90000));
	assert_null(name_at(0x280000));
	assert_null(name_at(0x2000000));
	assert_string_equal(name_at(FIX_SYSCALL + SLIDE + 1), "entry_SYSCALL_64");
}

/* A kernel that does not move has firmware before it, too; where its copy is is not seen then. */
static void firmware_alone(void **state)
{
	struct guest_host pc = host;

	(void)state;
	pc.firmware = true;
	pc.boot_low = pc.boot_high = 0;
	create_on(&pc, false);
	gf_expect(&sink, "kernel ffffffff81000000 ffffffff8100a000 named\n"
			 "module firmware c0000+40000 8\n"
			 "module firmware fff00000+100000 8\n"
			 "module firmware 2fe0000+20000 8\n"
			 "module firmware 3fa0000+20000 8\n");
	assert_string_equal(name_at(0x2fe0000), "firmware_copy");
	assert_null(name_at(0x100000));
	assert_null(name_at(0x10200));
}

static void give_up(void **state)
{
	struct sample s;

	(void)state;
	create(true);
	assert_int_equal(guest_end_search(guest, NULL), 0);
	gf_expect(&sink, "kernel 0 0\nmodule decompressor 3000000+10000 2\n");
	assert_int_equal(guest_end_search(guest, NULL), 0);
	/* The sample that would have solved it comes too late. */
	s = boot(SLIDE, PA_SLIDE, 0);
	assert_true(is_ready(&s));
	gf_expect(&sink, "");
	process(&s);
	assert_null(name_at(FIX_SYSCALL + SLIDE));
}

static void sink_that_fails_at_once(void **state)
{
	const struct guest_options opt = { .files = { .system_debug = "", .cache = "" } };
	struct err e = { 0 };

	(void)state;
	sink.fail_at = 1;
	assert_int_equal(guest_create(&guest, &target, &host, &sink.sink, &opt, &e), -ENOSPC);
	assert_null(guest);
}

static void sink_that_fails(void **state)
{
	struct err e = { 0 };
	struct sample s;
	int ret;

	(void)state;
	create(true);
	s = boot(SLIDE, PA_SLIDE, 0);
	sink.fail_at = 1;
	assert_true(guest_is_ready(guest, &s, &ret, &e));
	assert_int_equal(ret, -ENOSPC);
	/* Samples still come until the machine has ended. */
	process(&s);
	assert_string_equal(name_at(FIX_SYSCALL + SLIDE), "entry_SYSCALL_64");
}

/* -- the guest's memory --------------------------------------------------------------- */

static void tables_that_stay(void **state)
{
	struct guest_memory m;
	struct memory r = guest_memory_reader(&m);
	struct sample s = boot(0, 0, 0), other = s;
	uint8_t b;

	(void)state;
	guest_memory_init(&m, &machine.mem);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, FIX_TEXT, &b, 1), 0);
	/* Each of these lacks the kernel's tables. */
	other.regs.cs = 0x33;
	guest_memory_begin_sample(&m, &other);
	other.regs.cs = 0x10;
	other.regs.rip = 0x400000;
	guest_memory_begin_sample(&m, &other);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, FIX_TEXT, &b, 1), 0);
	s.regs.cr3 |= 0x805; /* a PCID */
	guest_memory_begin_sample(&m, &s);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, FIX_TEXT, &b, 1), 1);
	/* The last one's serve, until the kernel's own are found. */
	other = s;
	other.regs.cr3 = 0x7000;
	guest_memory_begin_sample(&m, &other);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, FIX_TEXT, &b, 1), 0);
	assert_int_equal(r.read(r.ctx, KERNEL_CR3, FIX_TEXT, &b, 1), 1);
	map_page(KERNEL_CR3, 0xffffffff90000000, 0);
	guest_memory_set_tables(&m, 0xffffffff90000000 + 0x7000); /* not set up yet */
	guest_memory_begin_sample(&m, &s);
	assert_false(m.settled);
	assert_int_equal(m.root.cr3, KERNEL_CR3);
	guest_memory_set_tables(&m, 0xffffffff90000000 + KERNEL_CR3);
	guest_memory_begin_sample(&m, &s);
	assert_true(m.settled);
	assert_int_equal(m.root.cr3, KERNEL_CR3);
	guest_memory_begin_sample(&m, &other);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, FIX_TEXT, &b, 1), 1);
}

/* Cached translations do not outlive the request that they were made for. */
static void translations(void **state)
{
	const uint64_t va = 0xffffffff91000000, user = 0x40000000;
	struct sample s = boot(0, 0, 0);
	struct guest_memory m;
	struct memory r = guest_memory_reader(&m);
	uint8_t a = 'a', b = 'b', got;

	(void)state;
	guest_memory_init(&m, &machine.mem);
	assert_int_equal(gmem_write(&machine.mem, 0x400000, &a, 1), 0);
	assert_int_equal(gmem_write(&machine.mem, 0x600000, &b, 1), 0);
	map_page(KERNEL_CR3, va, 0x400000);
	map_page(KERNEL_CR3, user, 0x400000);
	s.time_ns = 1;
	guest_memory_begin_sample(&m, &s);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, va, &got, 1), 1);
	assert_int_equal(got, 'a');
	/* Bytes are never remembered. */
	assert_int_equal(gmem_write(&machine.mem, 0x400000, &b, 1), 0);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, va, &got, 1), 1);
	assert_int_equal(got, 'b');
	assert_int_equal(gmem_write(&machine.mem, 0x400000, &a, 1), 0);
	/* A sample from after the look asks anew; so does who looks at no sample. */
	map_page(KERNEL_CR3, va, 0x600000);
	s.time_ns = UINT64_MAX;
	guest_memory_begin_sample(&m, &s);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, va, &got, 1), 1);
	assert_int_equal(got, 'b');
	map_page(KERNEL_CR3, va, 0x400000);
	guest_memory_renew(&m);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, va, &got, 1), 1);
	assert_int_equal(got, 'a');
	/* A program's pages are another sample's business, also of one from the same time. */
	s.time_ns = 1;
	assert_int_equal(r.read(r.ctx, KERNEL_CR3, user, &got, 1), 1);
	assert_int_equal(got, 'a');
	map_page(KERNEL_CR3, user, 0x600000);
	guest_memory_begin_sample(&m, &s);
	assert_int_equal(r.read(r.ctx, KERNEL_CR3, user, &got, 1), 1);
	assert_int_equal(got, 'b');
	/* And what is in other tables, which may be read in another way, is elsewhere. */
	map_page(0x7000, va, 0x600000);
	s.regs.cr3 = 0x7000;
	guest_memory_begin_sample(&m, &s);
	assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, va, &got, 1), 1);
	assert_int_equal(got, 'b');
	/* Two pages that share a place, and one that is cut by the end of what is mapped. */
	s.regs.cr3 = KERNEL_CR3;
	guest_memory_begin_sample(&m, &s);
	map_page(KERNEL_CR3, va, 0x400000);
	map_page(KERNEL_CR3, va + (GUEST_MEMORY_TLB << 12), 0x600000);
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t at = i % 2 ? va + (GUEST_MEMORY_TLB << 12) : va;

		assert_int_equal(r.read(r.ctx, MEMORY_KERNEL, at, &got, 1), 1);
		assert_int_equal(got, i % 2 ? 'b' : 'a');
	}
}

/* -- whose samples --------------------------------------------------------------------- */

static void tasks_that_cannot_be_told_apart(void **state)
{
	struct sample s;

	(void)state;
	create(false);
	s = boot(0, 0, 0);
	sink.log.len = 0;
	process(&s);
	gf_expect(&sink, "comm 1/1 guest\ncomm 1/2 vcpu1\n");
	assert_int_equal(out.pid, 1);
	assert_int_equal(out.tid, 1);
	s.vcpu = 1;
	process(&s);
	assert_int_equal(out.tid, 2);
	assert_int_equal(out.cpu, 1);
	s.mode = SAMPLE_IDLE;
	process(&s);
	assert_int_equal(out.pid | out.tid, 0);
	gf_expect(&sink, "");
}

/* As if its types had told: a guest with a process and its library. */
static uint64_t know_tasks(void)
{
	struct target_linux *l = &target.linux_facts;
	uint64_t root = lm_dentry(&g, 0, "/"), mnt = lm_mount(&g, root, 0, 0), vma, lib;
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8);
	struct buf elf;

	l->have_current = l->have_task = l->have_mm = l->have_file = true;
	l->task = gf_task_layout();
	lm_layout(&l->mm, false);
	gf_file_layout(&l->file);
	gf_elf(&elf, 0xaa, "fn", 20);
	lib = gf_file(&g, mnt, lm_dentry(&g, root, "l.so"), 8, elf.data, elf.len, UINT32_MAX);
	buf_deinit(&elf);
	vma = lm_vma(&g, mm, LM_USER, LM_USER + 0x2000, 5, 1, lib);
	lm_list(&g, mm, &vma, 1);
	return gf_task(&g, 70, 70, "worker", mm, 6, 0);
}

static struct sample task_sample(const struct sample *running, uint64_t task)
{
	struct sample s = *running, t = gf_sample(&g, task, now);

	s.task = t.task;
	s.time_ns = now;
	return s;
}

/* A task in the kernel, then in its library's code at 0x40. */
static struct sample see_program(uint64_t task)
{
	struct sample kernel, s;

	put_structures();
	create(false);
	kernel = boot(0, 0, 0);
	sink.log.len = 0;
	s = task_sample(&kernel, task);
	process(&s);
	gf_expect(&sink, "fork 70/70 of 0/0\ncomm 70/70 worker exec\n");
	assert_int_equal(out.pid, 70);
	/* The program itself: its mappings are told before the sample. */
	s.mode = SAMPLE_USER;
	s.regs.cs = 0x33;
	s.regs.rip = LM_USER + 0x40;
	s.regs.cr3 = LM_CR3;
	now += 1000;
	s.time_ns = now;
	process(&s);
	return s;
}

static void process_with_a_library(void **state)
{
	struct sample s = see_program(know_tasks());
	struct guest_stats stats;

	(void)state;
	gf_expect(&sink, "map 70 7f0000000000+2000 @1000 /l.so elf\n");
	assert_int_equal(sink.last_ns, now);
	assert_int_equal(stack.ip[0], s.regs.rip);
	assert_int_equal(stack.n_kernel, 0);
	process(&s);
	gf_expect(&sink, "");
	guest_stats(guest, &stats);
	assert_true(stats.have_tasks && stats.have_maps);
	assert_int_equal(stats.tasks.seen, 1);
	assert_int_equal(stats.dsos.named, 1);
	assert_int_equal(stats.maps.unmapped, 0);
}

/* Mappings do not need the page cache. */
static void library_without_its_pages(void **state)
{
	uint64_t task = know_tasks();
	struct guest_stats stats;

	(void)state;
	target.linux_facts.have_file = false;
	see_program(task);
	gf_expect(&sink, "map 70 7f0000000000+2000 @1000 /l.so\n");
	guest_stats(guest, &stats);
	assert_true(stats.have_maps);
	assert_int_equal(stats.dsos.unnamed, 1);
}

/* In a system call, in the upper half of a stack of 32 KiB: a kernel with KASAN. */
static void large_kernel_stacks(void **state)
{
	const uint64_t base = UINT64_C(0xffffc90000200000);
	uint64_t task = know_tasks();
	struct sample kernel, s;

	(void)state;
	put_structures();
	target.linux_facts.sched.stack_size = 32768;
	create(false);
	kernel = boot(0, 0, 0);
	s = task_sample(&kernel, task);
	s.regs.cs = 0x33;
	s.regs.cr3 = LM_CR3;
	s.regs.gpr[GPR_RCX] = LM_USER + 0x40;
	s.task.stack = base;
	s.nslices = 1;
	s.slice[0] = (struct sample_slice){ .va = base + 0x5000 };
	process(&s);
	assert_int_equal(stack.n_kernel, 1);
	assert_int_equal(stack.n, 2);
	/* On the next task's stack in the middle of a switch. */
	s.slice[0].va = base + 0x9000;
	process(&s);
	assert_int_equal(stack.n, 1);
	/* As most kernels are. */
	target.linux_facts.sched.stack_size = 16384;
	s.slice[0].va = base + 0x3000;
	process(&s);
	assert_int_equal(stack.n, 2);
	s.slice[0].va = base + 0x5000;
	process(&s);
	assert_int_equal(stack.n, 1);
}

static void exits_are_looked_for(void **state)
{
	uint64_t task = know_tasks(), other = gf_task(&g, 80, 80, "other", 0, 9, 0);
	struct sample kernel, s;

	(void)state;
	put_structures();
	create(false);
	kernel = boot(0, 0, 0);
	s = task_sample(&kernel, task);
	process(&s);
	s = task_sample(&kernel, other);
	process(&s);
	sink.log.len = 0;
	lm_put32(&g, task, 0);
	put_structures();
	for (unsigned int i = 0; i < 35; i++) {
		now += 100000000;
		s.time_ns = now;
		process(&s);
		/* One that is late is no reason to look again. */
		s.time_ns = now - 5;
		process(&s);
		if (i < 10)
			gf_expect(&sink, "");
	}
	gf_expect(&sink, "exit 70/70\n");
	assert_int_equal(out.pid, 80);
}

/* Where the types are not known, its structure is sought when there is a task. */
static void before_tasks_are_known(void **state)
{
	struct guest_view view;
	struct err e = { 0 };
	struct sample s;

	(void)state;
	target.linux_facts.have_current = true;
	target.linux_facts.task = gf_task_layout();
	create(false);
	s = boot(0, 0, 0);
	sink.log.len = 0;
	s.task.state = SAMPLE_TASK_POINTER;
	s.task.addr = GF_INIT_TASK;
	process(&s);
	gf_expect(&sink, "comm 0/0 swapper\n");
	s.task.addr = LM_DIRECT + 0x100;
	process(&s);
	gf_expect(&sink, "comm -1/-1 (unknown)\n");
	assert_int_equal(out.pid, GUEST_TASK_UNKNOWN);
	/* They may be found later, or it is known that they never are. */
	assert_false(guest_view(guest, &view, &e));
	assert_non_null(strstr(e.text, "not found yet"));
	target.linux_facts.have_current = false;
	err_clear(&e);
	assert_false(guest_view(guest, &view, &e));
	assert_non_null(strstr(e.text, "cannot be told apart"));
	assert_null(strstr(e.text, "yet"));
	assert_int_equal(machine.plans, 0);
	assert_string_not_equal(target.linux_facts.task_note.text, "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(kernel_that_stays),
		T(kernel_that_moves),
		T(conflict),
		T(firmware_and_decompressor),
		T(firmware_alone),
		T(give_up),
		T(sink_that_fails_at_once),
		T(sink_that_fails),
		T(tables_that_stay),
		T(translations),
		T(tasks_that_cannot_be_told_apart),
		T(process_with_a_library),
		T(library_without_its_pages),
		T(large_kernel_stacks),
		T(exits_are_looked_for),
		T(before_tasks_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
