/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capture of the running task, and of the program's stack below the kernel's. */
#include "vmm/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/capture_fixture.h"
#include "vmm/vm.h"

#define STACK UINT64_C(0xffffc90000010000)
#define STACK_SIZE UINT64_C(16384)
#define USER_STACK UINT64_C(0x7ffc12340000)
#define PERCPU UINT64_C(0xffff888007800000)
#define TASK UINT64_C(0xffff888003000000)
#define IMAGE UINT64_C(0xffffffff81000000)
#define SLIDE UINT64_C(0x12000000)
#define USER_GS UINT64_C(0x7f0000001000)
#define ENTRY (IMAGE + 0x200040)

enum {
	CURRENT = 0x40,
	TID = 0x4e0,
	PID = 0x4e4,
	MM = 0x430,
	BEGAN = 0x500,
	KSTACK = 0x18,
	COMM = 0x6a0
};

static struct fake f;
static void set_cpl(unsigned int cpl, uint64_t gs)
{
	fake_set_cpl(&f, cpl);
	f.v->run->s.regs.sregs.gs.base = gs;
}

static int setup(void **state)
{
	(void)state;
	fake_capture_init(&f);
	fake_kvm.msrs = true;
	fake_map_range(&f, STACK, STACK_SIZE);
	fake_map_range(&f, USER_STACK, 8192);
	fake_map_range(&f, PERCPU, 4096);
	fake_map_range(&f, TASK, 4096);
	fake_map_range(&f, IMAGE + SLIDE, 4096);
	fake_put64(&f, PERCPU + CURRENT, TASK);
	fake_put(&f, TASK + TID, &(uint32_t){ 43 }, 4);
	fake_put(&f, TASK + PID, &(uint32_t){ 42 }, 4);
	fake_put64(&f, TASK + MM, 0xffff888004000000);
	fake_put64(&f, TASK + BEGAN, 12345);
	fake_put64(&f, TASK + KSTACK, STACK);
	fake_put(&f, TASK + COMM, "0123456789abcdef", 16);
	f.vm->cfg.plan.user_stack_max = 8192;
	f.vm->cfg.plan.image_start = IMAGE;
	f.vm->cfg.plan.image_end = IMAGE + 0x2000000;
	f.vm->cfg.plan.task = (struct capture_task_plan){
		.known = true,
		.percpu = true,
		.members = true,
		.current = CURRENT,
		.tid = TID,
		.pid = PID,
		.mm = MM,
		.start = BEGAN,
		.stack = KSTACK,
		.comm = COMM,
		.comm_size = 16,
	};
	set_cpl(0, PERCPU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_capture_deinit(&f);
	return 0;
}

static struct sample last;

static uint32_t asked; /* bytes of a stack, by a client; 0: no client has */

static const struct sample *take(uint64_t rsp)
{
	const struct sample *s;

	f.v->run->s.regs.regs.rsp = rsp;
	s = fake_take(&f, asked ? asked : f.v->vm->cfg.plan.stack_max);
	assert_non_null(s);
	last = *s;
	ring_release(&f.v->ring);
	return &last;
}

static void assert_found(const struct sample *s)
{
	assert_int_equal(s->task.state, SAMPLE_TASK_FOUND);
	assert_int_equal(s->task.addr, TASK);
	assert_int_equal(s->task.tid, 43);
	assert_int_equal(s->task.pid, 42);
	assert_int_equal(s->task.mm, 0xffff888004000000);
	assert_int_equal(s->task.start, 12345);
	assert_int_equal(s->task.stack, STACK);
	assert_memory_equal(s->task.comm, "0123456789abcdef", 16);
}

static void in_the_kernel(void **state)
{
	(void)state;
	assert_found(take(STACK + 64));
	/* GS is the kernel's: no need to ask. */
	assert_int_equal(fake_kvm.msrs_asked, 0);
}

static void in_a_program_and_in_entry_code(void **state)
{
	(void)state;
	fake_kvm.kernel_gs = PERCPU;
	set_cpl(3, USER_GS);
	assert_found(take(USER_STACK));
	/* Before SWAPGS on entry, and after it on the way out. */
	set_cpl(0, USER_GS);
	assert_found(take(STACK + 64));
	set_cpl(0, 0);
	assert_found(take(STACK + 64));
}

static const struct sample *take_at(uint64_t ms, uint64_t rsp)
{
	const struct sample *s;
	size_t len;

	f.v->run->s.regs.regs.rsp = rsp;
	assert_true(capture_sample(f.v, &(struct capture_cause){ .now = FAKE_START + ms * 1000000,
								 .reason = SAMPLE_TIMER,
								 .weight = 1 }));
	s = ring_peek(&f.v->ring, &len);
	assert_non_null(s);
	last = *s;
	ring_release(&f.v->ring);
	return &last;
}

/* The kernel's GS base is asked for now and then, not at each sample of a program. */
static void asked_now_and_then(void **state)
{
	const uint64_t other = PERCPU - 4096;

	(void)state;
	fake_map_range(&f, other, 4096);
	fake_put64(&f, other + CURRENT, TASK + 8);
	f.v->stack_max = f.vm->cfg.plan.stack_max;
	/* Missing facts are requested each time. */
	set_cpl(3, USER_GS);
	assert_int_equal(take_at(0, USER_STACK)->task.state, SAMPLE_TASK_NOT_YET);
	fake_kvm.kernel_gs = PERCPU;
	assert_found(take_at(1, USER_STACK));
	assert_int_equal(fake_kvm.msrs_asked, 2);
	assert_found(take_at(50, USER_STACK));
	assert_found(take_at(100, USER_STACK));
	assert_int_equal(fake_kvm.msrs_asked, 2);
	/* GS in the kernel is what it is, and no reason to believe it of a program. */
	set_cpl(0, other);
	assert_int_equal(take_at(100, STACK + 64)->task.addr, TASK + 8);
	set_cpl(3, USER_GS);
	assert_found(take_at(100, USER_STACK));
	assert_int_equal(fake_kvm.msrs_asked, 2);
	/* In entry code it is asked. */
	set_cpl(0, USER_GS);
	assert_found(take_at(100, STACK + 64));
	assert_int_equal(fake_kvm.msrs_asked, 3);
	/* Another kernel, later. */
	fake_kvm.kernel_gs = other;
	set_cpl(3, USER_GS);
	assert_int_equal(take_at(200, USER_STACK)->task.addr, TASK + 8);
	assert_int_equal(fake_kvm.msrs_asked, 4);
}

/* The program's page tables lack the kernel; those in the page before have it. */
static void isolated_page_tables(void **state)
{
	uint64_t user_table, entry;

	(void)state;
	f.next_page = (f.next_page + 8191) & ~UINT64_C(8191);
	user_table = f.next_page + 4096;
	f.next_page += 8192;
	for (unsigned int i = 0; i < 512; i++) {
		assert_int_equal(gmem_read(&f.vm->mem, FAKE_PML4 + 8ull * i, &entry, 8), 0);
		assert_int_equal(gmem_write(&f.vm->mem, user_table - 4096 + 8ull * i, &entry, 8),
				 0);
		if (i < 256)
			assert_int_equal(gmem_write(&f.vm->mem, user_table + 8ull * i, &entry, 8),
					 0);
	}
	fake_kvm.kernel_gs = PERCPU;
	set_cpl(3, USER_GS);
	f.v->run->s.regs.sregs.cr3 = user_table;
	assert_found(take(USER_STACK));
}

static void not_there(void **state)
{
	(void)state;
	/* No kernel GS yet */
	set_cpl(3, 0);
	assert_int_equal(take(USER_STACK)->task.state, SAMPLE_TASK_NOT_YET);
	/* The kernel has not written its current task yet */
	set_cpl(0, PERCPU);
	fake_put64(&f, PERCPU + CURRENT, 0);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	fake_put64(&f, PERCPU + CURRENT, 0x7fff0000);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	/* Its place, or the task, is not mapped */
	fake_put64(&f, PERCPU + CURRENT, TASK + 0x100000);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_UNREADABLE);
	set_cpl(0, PERCPU + 0x100000);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_UNREADABLE);
	f.vm->cfg.plan.task.known = false;
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_UNASKED);
}

/*
 * The return addresses that the function graph tracer keeps for the task are copied with its stack.
 */
static void replaced_return_addresses(void **state)
{
	enum { RETURNS = 1024, INDEX = 1032, BYTES = 40 };
	struct capture_returns_plan *plan = &f.vm->cfg.plan.task.returns;
	uint64_t at = TASK + 1536;
	const struct sample *s;

	(void)state;
	assert_int_equal(take(STACK + 64)->returns.len, 0);
	*plan = (struct capture_returns_plan){
		.entry = BYTES, .stack = RETURNS, .index = INDEX, .unit = BYTES, .top = true
	};
	/* a task that was never traced has none */
	assert_int_equal(take(STACK + 64)->returns.len, 0);
	fake_put64(&f, TASK + RETURNS, at);
	fake_put(&f, TASK + INDEX, &(int32_t){ 2 }, 4);
	s = take(STACK + 64);
	/* three, and what lies above them */
	assert_int_equal(s->returns.va, at);
	assert_int_equal(s->returns.len, 4 * BYTES);
	assert_int_equal(s->returns.off + s->returns.len, s->stack_len);
	assert_found(s);
	fake_put(&f, TASK + INDEX, &(int32_t){ -1 }, 4);
	assert_int_equal(take(STACK + 64)->returns.len, BYTES);
	fake_put(&f, TASK + INDEX, &(int32_t){ -2 }, 4);
	assert_int_equal(take(STACK + 64)->returns.len, 0);
	/* counted in words; of many the topmost */
	*plan = (struct capture_returns_plan){
		.entry = BYTES, .stack = RETURNS, .index = INDEX, .unit = 8
	};
	fake_put(&f, TASK + INDEX, &(int32_t){ 6 }, 4);
	assert_int_equal(take(STACK + 64)->returns.len, 48 + BYTES);
	fake_put(&f, TASK + INDEX, &(int32_t){ 260 }, 4);
	s = take(STACK + 64);
	assert_int_equal(s->returns.va, at + 2080 + BYTES - 1536);
	assert_int_equal(s->returns.len, 1536);
	/* in a program's own code nobody asks */
	set_cpl(3, 0);
	fake_kvm.kernel_gs = PERCPU;
	assert_int_equal(take(USER_STACK)->returns.len, 0);
	set_cpl(0, PERCPU);
	/* pointers that are none */
	fake_put64(&f, TASK + RETURNS, 0x1000);
	assert_int_equal(take(STACK + 64)->returns.len, 0);
	fake_put64(&f, TASK + RETURNS, at + 1);
	assert_int_equal(take(STACK + 64)->returns.len, 0);
	fake_put64(&f, TASK + RETURNS, 0xffff9fff00000000);
	assert_int_equal(take(STACK + 64)->returns.len, 0);
}

/* And what probes of functions' returns keep, on a list. */
static void probed_return_addresses(void **state)
{
	enum { LIST = 1040, LINK = 16, BYTES = 48 };
	struct capture_returns_plan *plan = &f.vm->cfg.plan.task.returns;
	uint64_t at = TASK + 1536;

	(void)state;
	*plan = (struct capture_returns_plan){ .node = BYTES, .list = LIST, .link = LINK };
	assert_int_equal(take(STACK + 64)->returns.len, 0);
	fake_put64(&f, TASK + LIST, at + LINK);
	assert_int_equal(take(STACK + 64)->returns.len, BYTES);
	fake_put64(&f, at + LINK, at + 64 + LINK);
	assert_int_equal(take(STACK + 64)->returns.len, 2 * BYTES);
	/* a way that leads nowhere, and one that never ends */
	fake_put64(&f, at + 64 + LINK, 0xffff9fff00000000);
	assert_int_equal(take(STACK + 64)->returns.len, 2 * BYTES);
	fake_put64(&f, at + 64 + LINK, at + LINK + 1);
	assert_int_equal(take(STACK + 64)->returns.len, 2 * BYTES);
	fake_put64(&f, at + 64 + LINK, at + LINK);
	assert_int_equal(take(STACK + 64)->returns.len, 8 * BYTES);
	assert_found(take(STACK + 64));
}

/* Without type information the members are found while the guest runs. */
static void members_found_later(void **state)
{
	struct capture_task_plan plan = f.vm->cfg.plan.task;

	(void)state;
	f.vm->cfg.plan.task.members = false;
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_POINTER);
	assert_int_equal(take(STACK)->task.addr, TASK);
	/* First only where tasks are, then their members, too. */
	vm_set_task_plan(f.vm, &f.vm->cfg.plan.task);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_POINTER);
	plan.start = plan.stack = CAPTURE_NONE;
	vm_set_task_plan(f.vm, &plan);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_FOUND);
	assert_int_equal(take(STACK)->task.tid, 43);
	assert_int_equal(take(STACK)->task.start, 0);
}

/* A kernel for one CPU has the pointer in its image, which may have moved. */
static void in_a_slid_image(void **state)
{
	(void)state;
	f.vm->cfg.plan.task.percpu = false;
	f.vm->cfg.plan.task.current = IMAGE + 8;
	f.vm->cfg.plan.slide_unknown = true;
	fake_put64(&f, IMAGE + SLIDE + 8, TASK);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	vm_set_slide(f.vm, SLIDE);
	assert_found(take(STACK));
	/* Since 6.15 per-CPU variables are linked there, too, and reached from GS. */
	f.vm->cfg.plan.task.percpu = true;
	set_cpl(0, PERCPU + CURRENT - (IMAGE + SLIDE + 8));
	assert_found(take(STACK));
}

/* Since 6.15, and before the boot processor has its own area: GS is 0, the variable in the image. */
static void before_per_cpu_areas(void **state)
{
	(void)state;
	f.vm->cfg.plan.task.current = IMAGE + 8;
	f.vm->cfg.plan.slide_unknown = true;
	fake_put64(&f, IMAGE + SLIDE + 8, TASK);
	set_cpl(0, 0);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	vm_set_slide(f.vm, SLIDE);
	assert_found(take(STACK));
	/* once there is an area, a GS of 0 is a program's */
	set_cpl(0, PERCPU - (IMAGE + SLIDE));
	fake_put64(&f, PERCPU + 8, TASK);
	assert_found(take(STACK));
	set_cpl(0, 0);
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	/* older kernels link these variables from 0 on: nothing is there */
	f.v->kernel_gs = 0;
	f.vm->cfg.plan.task.current = CURRENT;
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	/* another processor starts with its own */
	f.vm->cfg.plan.task.current = IMAGE + 8;
	f.v->index = 1;
	assert_int_equal(take(STACK)->task.state, SAMPLE_TASK_NOT_YET);
	f.v->index = 0;
}

static void entry_point_of_system_calls(void **state)
{
	(void)state;
	f.vm->cfg.plan.want_lstar = true;
	assert_int_equal(take(STACK)->lstar, 0);
	assert_int_equal(fake_kvm.msrs_asked, 1);
	fake_kvm.lstar = ENTRY;
	assert_int_equal(take(STACK)->lstar, ENTRY);
	assert_int_equal(take(STACK)->lstar, ENTRY);
	/* It is asked for until it is there. */
	assert_int_equal(fake_kvm.msrs_asked, 2);
}

/* Stores the frame of an interruption or of entry code: ip, cs, flags, rsp, ss. */
static void put_iret(uint64_t end, uint64_t cs, uint64_t rsp)
{
	fake_put64(&f, end - 40, cs & 3 ? 0x401000 : 0xffffffff81001000);
	fake_put64(&f, end - 32, cs);
	fake_put64(&f, end - 24, 0x246);
	fake_put64(&f, end - 16, rsp);
	fake_put64(&f, end - 8, cs & 3 ? 0x2b : 0x18);
}

static void put_user_regs(uint64_t cs, uint64_t rsp)
{
	put_iret(STACK + STACK_SIZE, cs, rsp);
}

static void program_stack_below_a_system_call(void **state)
{
	const struct sample *s;

	(void)state;
	put_user_regs(0x33, USER_STACK + 4096);
	s = take(STACK + STACK_SIZE - 512);
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[1].va, USER_STACK + 4096);
	assert_int_equal(s->slice[1].len, 4096); /* up to the end of what is mapped */
	assert_int_equal(s->slice[1].off, 512);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	/* A 32-bit program's, too */
	put_user_regs(0x23, USER_STACK);
	s = take(STACK + STACK_SIZE - 512);
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[1].len, 8192);
}

#define ENTRY_STACK UINT64_C(0xfffffe0000003000)

/* On the stack where an entry from a program begins there is its frame alone. */
static void entry_stack(void **state)
{
	const struct sample *s;

	(void)state;
	fake_map_range(&f, ENTRY_STACK, 4096);
	put_iret(ENTRY_STACK + 4096, 0x33, USER_STACK);
	s = take(ENTRY_STACK + 4096 - 48);
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[0].len, 48);
	assert_int_equal(s->slice[1].va, USER_STACK);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	assert_int_equal(take(ENTRY_STACK + 4096 - 32)->nslices, 1);
}

/* An NMI in the kernel: its stack leads to the task's, and that to the program's. */
static void stack_of_an_nmi(void **state)
{
	const struct sample *s;

	(void)state;
	fake_map_range(&f, ENTRY_STACK, 4096);
	put_iret(ENTRY_STACK + 4096, 0x10, STACK + STACK_SIZE - 512);
	put_user_regs(0x33, USER_STACK);
	s = take(ENTRY_STACK + 4096 - 512);
	assert_int_equal(s->nslices, 3);
	assert_int_equal(s->slice[0].len, 512);
	assert_int_equal(s->slice[1].va, STACK + STACK_SIZE - 512);
	assert_int_equal(s->slice[1].len, 512);
	assert_int_equal(s->slice[2].va, USER_STACK);
	put_iret(ENTRY_STACK + 4096, 0x10, 0x1234);
	assert_int_equal(take(ENTRY_STACK + 4096 - 512)->nslices, 1);
}

static void no_program_stack(void **state)
{
	(void)state;
	/* A kernel thread has zeros there, and a guest may write anything. */
	put_user_regs(0, 0);
	assert_int_equal(take(STACK + STACK_SIZE - 512)->nslices, 1);
	put_user_regs(0x10, USER_STACK);
	assert_int_equal(take(STACK + STACK_SIZE - 512)->nslices, 1);
	put_user_regs(0x33, STACK);
	assert_int_equal(take(STACK + STACK_SIZE - 512)->nslices, 1);
	put_user_regs(0x33, 0);
	assert_int_equal(take(STACK + STACK_SIZE - 512)->nslices, 1);
	put_user_regs(0x33, 0x500000000000);
	assert_int_equal(take(STACK + STACK_SIZE - 512)->nslices, 1);
	/* Only registers that lie above rsp are saved ones. */
	put_user_regs(0x33, USER_STACK);
	assert_int_equal(take(STACK + STACK_SIZE - 160)->nslices, 1);
	f.vm->cfg.plan.user_stack_max = 0;
	assert_int_equal(take(STACK + STACK_SIZE - 512)->nslices, 1);
}

/* A program's stack may be copied deeper than the kernel's, unless a client asks for less of all. */
static void program_deeper_than_kernel(void **state)
{
	const struct sample *s;

	(void)state;
	put_user_regs(0x33, USER_STACK);
	f.vm->cfg.plan.stack_max = 4096;
	s = take(STACK + STACK_SIZE - 512);
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[1].len, 8192);
	asked = 512;
	s = take(STACK + STACK_SIZE - 512);
	asked = 0;
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[1].len, 512);
	/* As deep while it runs. */
	set_cpl(3, 0);
	s = take(USER_STACK);
	assert_int_equal(s->slice[0].len, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_the_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(in_a_program_and_in_entry_code, setup, teardown),
		cmocka_unit_test_setup_teardown(asked_now_and_then, setup, teardown),
		cmocka_unit_test_setup_teardown(isolated_page_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(replaced_return_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(probed_return_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(members_found_later, setup, teardown),
		cmocka_unit_test_setup_teardown(in_a_slid_image, setup, teardown),
		cmocka_unit_test_setup_teardown(before_per_cpu_areas, setup, teardown),
		cmocka_unit_test_setup_teardown(entry_point_of_system_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(program_stack_below_a_system_call, setup, teardown),
		cmocka_unit_test_setup_teardown(entry_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(stack_of_an_nmi, setup, teardown),
		cmocka_unit_test_setup_teardown(no_program_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(program_deeper_than_kernel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
