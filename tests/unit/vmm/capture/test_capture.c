/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/capture_fixture.h"

#define STACK UINT64_C(0xffffc90000010000) /* 16 KiB, aligned */
#define IRQ_STACK UINT64_C(0xffffc90000020000)
#define STACK_SIZE UINT64_C(16384)
#define USER_STACK UINT64_C(0x7ffc12340000)

static struct fake f;
static int setup(void **state)
{
	(void)state;
	fake_capture_init(&f);
	/* each word tells where it is */
	fake_map_range(&f, STACK, STACK_SIZE);
	fake_map_range(&f, IRQ_STACK, STACK_SIZE);
	for (uint64_t off = 0; off < STACK_SIZE; off += 8) {
		fake_put64(&f, STACK + off, 0x1111000000000000 + off);
		fake_put64(&f, IRQ_STACK + off, 0x2222000000000000 + off);
	}
	f.v->run->s.regs.regs.rip = 0xffffffff81000123;
	f.v->run->s.regs.regs.rflags = 0x202;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_capture_deinit(&f);
	return 0;
}

static void period_ends(uint64_t now, enum sample_reason reason)
{
	const struct capture_cause cause = { .now = now, .reason = reason };

	f.v->stack_max = f.v->vm->cfg.plan.stack_max;
	if (reason == SAMPLE_TIMER)
		source_take_timer(f.v, 0, now);
	else
		capture_sample(f.v, &cause);
}

/* Take one sample at rsp, on time, and look at it. NULL: nothing was committed. */
static const struct sample *take(uint64_t rsp, enum sample_reason reason)
{
	f.v->run->s.regs.regs.rsp = rsp;
	period_ends(f.v->source[0].trigger.deadline_ns, reason);
	return fake_sample(&f);
}

static void done(void)
{
	ring_release(&f.v->ring);
}

static void registers(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct kvm_sregs *sr = &f.v->run->s.regs.sregs;
	const struct sample *s;

	(void)state;
	*r = (struct kvm_regs){
		.rax = 0xa0,
		.rcx = 0xa1,
		.rdx = 0xa2,
		.rbx = 0xa3,
		.rsp = STACK,
		.rbp = 0xa5,
		.rsi = 0xa6,
		.rdi = 0xa7,
		.r8 = 0xa8,
		.r9 = 0xa9,
		.r10 = 0xaa,
		.r11 = 0xab,
		.r12 = 0xac,
		.r13 = 0xad,
		.r14 = 0xae,
		.r15 = 0xaf,
		.rip = 0xffffffff81234567,
		.rflags = 0x246,
	};
	sr->cr2 = 0xc2;
	sr->fs.base = 0xf5;
	sr->gs.base = 0xffff888000000000;
	sr->cs.selector = 0x10;
	sr->ss.selector = 0x18;
	f.v->index = 3;
	s = take(STACK, SAMPLE_TIMER);
	assert_non_null(s);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		assert_int_equal(s->regs.gpr[i], i == GPR_RSP ? STACK : 0xa0 + i);
	assert_int_equal(s->regs.rip, 0xffffffff81234567);
	assert_int_equal(s->regs.rflags, 0x246);
	assert_int_equal(s->regs.cr0, FAKE_CR0);
	assert_int_equal(s->regs.cr2, 0xc2);
	assert_int_equal(s->regs.cr3, FAKE_PML4);
	assert_int_equal(s->regs.cr4, FAKE_CR4);
	assert_int_equal(s->regs.efer, FAKE_EFER);
	assert_int_equal(s->regs.fs_base, 0xf5);
	assert_int_equal(s->regs.gs_base, 0xffff888000000000);
	assert_int_equal(s->regs.cs, 0x10);
	assert_int_equal(s->regs.ss, 0x18);
	assert_int_equal(s->version, SAMPLE_VERSION);
	assert_int_equal(s->vcpu, 3);
	assert_int_equal(s->reason, SAMPLE_TIMER);
	assert_int_equal(s->mode, SAMPLE_KERNEL);
	assert_int_equal(s->time_ns, FAKE_START + FAKE_PERIOD);
	done();
}

static void stack_up_to_its_boundary(void **state)
{
	static const uint64_t off[] = {
		0, 8, 4096 - 8, 4096, 0x3001, STACK_SIZE - 8, STACK_SIZE - 1
	};

	(void)state;
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		const struct sample *s = take(STACK + off[i], SAMPLE_TIMER);
		uint8_t want[STACK_SIZE];

		assert_non_null(s);
		assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
		assert_int_equal(s->nslices, 1);
		assert_int_equal(s->slice[0].va, STACK + off[i]);
		assert_int_equal(s->slice[0].off, 0);
		assert_int_equal(s->slice[0].len, STACK_SIZE - off[i]);
		assert_int_equal(s->stack_len, STACK_SIZE - off[i]);
		fake_get(&f, STACK + off[i], want, s->stack_len);
		assert_memory_equal(s->stack, want, s->stack_len);
		done();
	}
	assert_int_equal(f.v->stats.samples, 7);
	assert_int_equal(f.v->stats.kernel, 7);
	assert_int_equal(f.v->stats.stack_capped, 0);
	assert_int_equal(f.v->stats.stack_unmapped, 0);
}

static void stack_at_the_top_of_the_address_space(void **state)
{
	const struct sample *s;

	(void)state;
	fake_map(&f, UINT64_C(0xfffffffffffff000), FAKE_P | FAKE_W);
	s = take(UINT64_C(0xffffffffffffff00), SAMPLE_TIMER);
	assert_non_null(s);
	/* what lies behind the last byte is not the first byte */
	assert_int_equal(s->stack_len, 0x100);
	assert_int_equal(s->slice[0].len, 0x100);
	done();
}

static void follows_the_interrupt_stack(void **state)
{
	const struct sample *s;
	uint64_t v;

	(void)state;
	fake_put64(&f, IRQ_STACK + STACK_SIZE - 8, STACK + 0x2000);
	s = take(IRQ_STACK + 0x3000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[0].va, IRQ_STACK + 0x3000);
	assert_int_equal(s->slice[0].len, 0x1000);
	assert_int_equal(s->slice[1].va, STACK + 0x2000);
	assert_int_equal(s->slice[1].off, 0x1000);
	assert_int_equal(s->slice[1].len, 0x2000);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	assert_int_equal(sample_read(s, STACK + 0x2010, &v, 8), 0);
	assert_int_equal(v, 0x1111000000002010);
	assert_int_equal(sample_read(s, IRQ_STACK + 0x3ff8, &v, 8), 0);
	assert_int_equal(v, STACK + 0x2000);
	done();
}

/* With five-level paging Linux has its stacks where no four-level address is canonical. */
static void five_level_paging(void **state)
{
	enum { FIRST = 0x10000, SECOND = 0x20000 };
	const uint64_t vmalloc = 0xffa0000000000000, user = 0x00f0000000001000;
	static const uint64_t frame[] = { 0x401000, 0x33, 0x246, user + 0x100, 0x2b };
	const struct sample *s;

	(void)state;
	f.v->run->s.regs.sregs.cr4 |= FAKE_LA57;
	fake_map_range(&f, vmalloc + FIRST, STACK_SIZE);
	fake_map_range(&f, vmalloc + SECOND, STACK_SIZE);
	fake_map_range(&f, user, 4096);
	f.vm->cfg.plan.user_stack_max = 256;
	fake_put64(&f, vmalloc + SECOND + STACK_SIZE - 8, vmalloc + FIRST + 0x2000);
	for (unsigned int i = 0; i < 5; i++)
		fake_put64(&f, vmalloc + FIRST + STACK_SIZE - 40 + 8 * i, frame[i]);
	s = take(vmalloc + SECOND + 0x3000, SAMPLE_TIMER);
	assert_int_equal(s->nslices, 3);
	assert_int_equal(s->slice[1].va, vmalloc + FIRST + 0x2000);
	assert_int_equal(s->slice[1].len, 0x2000);
	/* and a program may have asked for a stack beyond 47 bits */
	assert_int_equal(s->slice[2].va, user + 0x100);
	done();
	/* no kernel's address, with more levels either */
	fake_put64(&f, vmalloc + SECOND + STACK_SIZE - 8, 0xfe00000000002000);
	assert_int_equal(take(vmalloc + SECOND + 0x3000, SAMPLE_TIMER)->nslices, 1);
	done();
}

static void top_word_that_is_no_stack(void **state)
{
	static const uint64_t word[] = {
		0,
		1,
		STACK + 0x2001,
		0x00007fff12345678,
		0xffff7fffffffffff & ~7ull,
		IRQ_STACK, /* the stack that we come from */
		IRQ_STACK + 0x3ff8,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		const struct sample *s;

		fake_put64(&f, IRQ_STACK + STACK_SIZE - 8, word[i]);
		s = take(IRQ_STACK + 0x3000, SAMPLE_TIMER);
		assert_non_null(s);
		assert_int_equal(s->nslices, 1);
		assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
		done();
	}
	/* a kernel address without memory: nothing to copy, and the sample says so */
	fake_put64(&f, IRQ_STACK + STACK_SIZE - 8, 0xffffd00000000000);
	{
		const struct sample *s = take(IRQ_STACK + 0x3000, SAMPLE_TIMER);

		assert_non_null(s);
		assert_int_equal(s->nslices, 1);
		assert_int_equal(s->stack_end, SAMPLE_STACK_NONE);
		done();
	}
}

static void stacks_that_point_at_each_other(void **state)
{
	const struct sample *s;

	(void)state;
	fake_put64(&f, IRQ_STACK + STACK_SIZE - 8, STACK);
	fake_put64(&f, STACK + STACK_SIZE - 8, IRQ_STACK);
	s = take(IRQ_STACK, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->nslices, SAMPLE_MAX_KERNEL_SLICES);
	assert_int_equal(s->stack_len, SAMPLE_MAX_KERNEL_SLICES * STACK_SIZE);
	assert_true(s->stack_len <= SAMPLE_MAX_STACK);
	done();
}

static void unmapped_page(void **state)
{
	uint64_t va = UINT64_C(0xffffc90000040000);
	const struct sample *s;

	(void)state;
	fake_map(&f, va, FAKE_P | FAKE_W);
	s = take(va + 0x800, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_UNMAPPED);
	assert_int_equal(s->nslices, 1);
	assert_int_equal(s->stack_len, 0x800);
	done();
	s = take(va + 0x1000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_NONE);
	assert_int_equal(s->nslices, 0);
	assert_int_equal(s->stack_len, 0);
	done();
	s = take(UINT64_C(0x8000000000000000), SAMPLE_TIMER); /* not canonical */
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_NONE);
	done();
	/* page tables outside of RAM */
	f.v->run->s.regs.sregs.cr3 = FAKE_RAM;
	s = take(STACK, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_NONE);
	done();
	assert_int_equal(f.v->stats.stack_unmapped, 1);
	assert_int_equal(f.v->stats.stack_none, 3);
	assert_int_equal(f.v->stats.samples, 4);
}

/* As far as they are mapped, and only when they are asked for. */
static void instruction_bytes(void **state)
{
	static const uint8_t code[] = { 0x48, 0x8b, 0x07, 0xc3 };
	const uint64_t page = 0xffffffff81000000;
	const struct sample *s;

	(void)state;
	fake_map_range(&f, page, 4096);
	fake_put(&f, page + 0x123, code, sizeof(code));
	fake_put(&f, page + 0xffc, code, sizeof(code));
	f.v->run->s.regs.regs.rip = page + 0x123;
	s = take(STACK, SAMPLE_TIMER);
	assert_int_equal(s->insn_len, 0);
	done();
	f.v->vm->cfg.plan.want_insn = true;
	s = take(STACK, SAMPLE_TIMER);
	assert_int_equal(s->insn_len, 15);
	assert_memory_equal(s->insn, code, sizeof(code));
	done();
	f.v->run->s.regs.regs.rip = page + 0xffc;
	s = take(STACK, SAMPLE_TIMER);
	assert_int_equal(s->insn_len, 4);
	assert_memory_equal(s->insn, code, sizeof(code));
	done();
	f.v->run->s.regs.regs.rip = page + 4096;
	s = take(STACK, SAMPLE_TIMER);
	assert_int_equal(s->insn_len, 0);
	done();
}

static void capped(void **state)
{
	const struct sample *s;

	(void)state;
	f.vm->cfg.plan.stack_max = 1024;
	s = take(STACK + 0x2000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_CAPPED);
	assert_int_equal(s->stack_len, 1024);
	done();
	s = take(STACK + STACK_SIZE - 1024, SAMPLE_TIMER); /* just fits */
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	assert_int_equal(s->stack_len, 1024);
	done();
	/* stacks that end nobody knows where */
	f.vm->cfg.plan.stack_align = 0;
	s = take(STACK + STACK_SIZE - 512, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->stack_end, SAMPLE_STACK_UNMAPPED);
	assert_int_equal(s->stack_len, 512);
	done();
	assert_int_equal(f.v->stats.stack_capped, 1);
}

/* Its size came to be known while the guest ran: 32 KiB. */
static void larger_stacks(void **state)
{
	const uint64_t base = UINT64_C(0xffffc90000080000);
	struct capture_task_plan plan = { .stack_align = 32768 };
	const struct sample *s;

	(void)state;
	fake_map_range(&f, base, 32768);
	s = take(base + 0x2000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->slice[0].len, 0x2000); /* taken for a whole one */
	done();
	f.vm->late_task[0] = plan;
	atomic_store(&f.vm->late_tasks, 1);
	s = take(base + 0x5000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->slice[0].len, 0x3000);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	done();
	s = take(base + 0x3000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->slice[0].len, 16384);
	assert_int_equal(s->stack_end, SAMPLE_STACK_CAPPED);
	done();
}

static void user_mode(void **state)
{
	const struct sample *s;

	(void)state;
	fake_map_range(&f, USER_STACK, 0x8000);
	fake_set_cpl(&f, 3);
	f.v->run->s.regs.regs.rip = 0x401000;
	/* an alignment of 16 KiB says nothing about a user stack: on to the limit */
	s = take(USER_STACK + 0x3ff0, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->mode, SAMPLE_USER);
	assert_int_equal(s->stack_len, 16384);
	assert_int_equal(s->stack_end, SAMPLE_STACK_CAPPED);
	assert_int_equal(s->regs.cs, 0x33);
	done();
	s = take(USER_STACK + 0x7ff0, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->stack_len, 16);
	/* where nothing is mapped a program's stack ends */
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	done();
	assert_int_equal(f.v->stats.user, 2);
	assert_int_equal(f.v->stats.kernel, 0);
	assert_int_equal(fake_kvm.mp_asked, 0); /* ring 3 cannot be halted: the call is saved */
}

/* Linux's interrupt stacks are page aligned only; a per-CPU variable names their topmost word. */
static void interrupt_stack_by_its_pointer(void **state)
{
	const uint64_t irq = UINT64_C(0xffffc90000051000), top = irq + STACK_SIZE - 8;
	const uint64_t percpu = UINT64_C(0xffff888000000000);
	const struct sample *s;

	(void)state;
	fake_map_range(&f, irq, STACK_SIZE);
	fake_map(&f, percpu, FAKE_P | FAKE_W);
	fake_put64(&f, percpu + 0x20, top);
	fake_put64(&f, top, STACK + 0x1000);
	f.v->run->s.regs.sregs.gs.base = percpu;
	for (int absolute = 0; absolute < 2; absolute++) {
		f.vm->cfg.plan.irq_stack_ptr = absolute ? percpu + 0x20 : 0x20;
		f.vm->cfg.plan.irq_stack_percpu = !absolute;
		s = take(irq + 0x2800, SAMPLE_TIMER); /* the rest crosses a 16 KiB boundary */
		assert_non_null(s);
		assert_int_equal(s->nslices, 2);
		assert_int_equal(s->slice[0].len, 0x1800);
		assert_int_equal(s->slice[1].va, STACK + 0x1000);
		assert_int_equal(s->slice[1].len, 0x3000);
		assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
		done();
		s = take(top, SAMPLE_TIMER); /* nothing but the word itself */
		assert_non_null(s);
		assert_int_equal(s->nslices, 2);
		assert_int_equal(s->slice[0].len, 8);
		done();
	}
	/* a task's stack has no such word, whatever lies in its last place */
	fake_put64(&f, STACK + STACK_SIZE - 8, IRQ_STACK);
	s = take(STACK + 0x3000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->nslices, 1);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	done();
	/* the variable's values and place are the guest's to choose */
	for (int i = 0; i < 6; i++) {
		static const uint64_t hostile[] = {
			0, 7, UINT64_MAX, UINT64_MAX - 7, UINT64_C(0xffffc90000013ff9), STACK
		};

		fake_put64(&f, percpu + 0x20, hostile[i]);
		s = take(STACK, SAMPLE_TIMER);
		assert_non_null(s);
		assert_true(s->stack_len <= SAMPLE_MAX_STACK);
		done();
	}
	f.v->run->s.regs.sregs.gs.base = 0x1000; /* swapgs is still to come */
	s = take(STACK + 0x3000, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->slice[0].len, 0x1000);
	done();
}

/* Up to 5.11 the variable has the stack's end, a word above that one. */
static void interrupt_stack_by_its_end(void **state)
{
	const uint64_t irq = UINT64_C(0xffffc90000051000), end = irq + STACK_SIZE;
	const uint64_t percpu = UINT64_C(0xffff888000000000);
	const struct sample *s;

	(void)state;
	fake_map_range(&f, irq, STACK_SIZE); /* nothing is mapped above */
	fake_map(&f, percpu, FAKE_P | FAKE_W);
	fake_put64(&f, percpu + 0x20, end);
	fake_put64(&f, end - 8, STACK + 0x1000);
	f.v->run->s.regs.sregs.gs.base = percpu;
	f.vm->cfg.plan.irq_stack_ptr = 0x20;
	f.vm->cfg.plan.irq_stack_percpu = true;
	s = take(irq + 0x2800, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->nslices, 2);
	assert_int_equal(s->slice[0].len, 0x1800);
	assert_int_equal(s->slice[1].va, STACK + 0x1000);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	done();
}

/* CONFIG_X86_FRED leaves two words above the registers at a stack's end. */
static void program_below_padding(void **state)
{
	static const uint64_t regs[] = { 0x401000, 0x33, 0x246, USER_STACK + 0x100, 0x2b };
	const struct sample *s;

	(void)state;
	fake_map_range(&f, USER_STACK, 4096);
	f.vm->cfg.plan.user_stack_max = 256;
	for (unsigned int pad = 0; pad <= 16; pad += 16) {
		fake_put64(&f, STACK + STACK_SIZE - 16, 0);
		fake_put64(&f, STACK + STACK_SIZE - 8, 0);
		for (unsigned int i = 0; i < 5; i++)
			fake_put64(&f, STACK + STACK_SIZE - pad - 40 + 8 * i, regs[i]);
		s = take(STACK + 0x3000, SAMPLE_TIMER);
		assert_non_null(s);
		assert_int_equal(s->nslices, 2);
		assert_int_equal(s->slice[1].va, USER_STACK + 0x100);
		assert_int_equal(s->slice[1].len, 256);
		done();
	}
}

static void full_ring_drops_and_counts(void **state)
{
	unsigned int taken = 0;
	size_t len;

	(void)state;
	ring_deinit(&f.v->ring);
	assert_int_equal(ring_init(&f.v->ring, 256 << 10), 0);
	f.v->run->s.regs.regs.rsp = STACK;
	for (unsigned int i = 0; i < 40; i++)
		period_ends(f.v->source[0].trigger.deadline_ns, SAMPLE_TIMER);
	assert_in_range(f.v->stats.samples, 3, 39);
	assert_int_equal(f.v->stats.samples + ring_dropped(&f.v->ring), 40);
	assert_int_equal(f.v->stats.samples, f.v->stats.kernel);
	for (;; taken++) {
		const struct sample *s = ring_peek(&f.v->ring, &len);

		if (!s)
			break;
		assert_int_equal(sample_check(s, len), 0);
		assert_int_equal(s->time_ns,
				 FAKE_START + (taken + 1) * FAKE_PERIOD); /* the oldest stay */
		ring_release(&f.v->ring);
	}
	assert_int_equal(taken, f.v->stats.samples);
	/* a ring that can never hold one */
	ring_deinit(&f.v->ring);
	assert_int_equal(ring_init(&f.v->ring, 4096), 0);
	assert_null(take(STACK, SAMPLE_TIMER));
	assert_int_equal(ring_dropped(&f.v->ring), 1);
}

static void weight_counts_what_was_missed(void **state)
{
	const struct sample *s;
	size_t len;

	(void)state;
	f.v->run->s.regs.regs.rsp = STACK;
	period_ends(FAKE_START + FAKE_PERIOD + 4000, SAMPLE_TIMER);
	s = ring_peek(&f.v->ring, &len);
	assert_non_null(s);
	assert_int_equal(s->weight, FAKE_PERIOD);
	assert_int_equal(s->overruns, 0);
	assert_int_equal(s->time_ns, FAKE_START + FAKE_PERIOD + 4000);
	done();
	assert_int_equal(f.v->stats.latency_ns.count, 1);
	assert_int_equal(f.v->stats.latency_ns.max, 4000);

	period_ends(FAKE_START + 5 * FAKE_PERIOD + 1, SAMPLE_TIMER);
	s = ring_peek(&f.v->ring, &len);
	assert_non_null(s);
	assert_int_equal(s->overruns, 3);
	assert_int_equal(s->weight, 4 * FAKE_PERIOD);
	done();
	assert_int_equal(f.v->stats.overruns, 3);
	assert_int_equal(f.v->source[0].trigger.deadline_ns, FAKE_START + 6 * FAKE_PERIOD);
}

static void crash_has_no_weight(void **state)
{
	uint64_t deadline = f.v->source[0].trigger.deadline_ns;
	const struct sample *s;

	(void)state;
	fake_kvm.mp_state =
		KVM_MP_STATE_UNINITIALIZED; /* a reset vCPU: still the last thing to be seen */
	s = take(STACK + 0x3000, SAMPLE_CRASH);
	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_CRASH);
	assert_int_equal(s->weight, 0);
	assert_int_equal(s->stack_len, 0x1000);
	assert_int_equal(f.v->source[0].trigger.deadline_ns, deadline);
	assert_int_equal(f.v->stats.latency_ns.count, 0);
	done();
}

/* As kvm_amd leaves a vCPU that had a triple fault, and as no kernel stands anywhere. */
static void reset_is_recognised(void **state)
{
	struct kvm_run *run = f.v->run;

	(void)state;
	assert_false(capture_is_reset(&run->s.regs.regs, &run->s.regs.sregs));
	memset(&run->s.regs.regs, 0, sizeof(run->s.regs.regs));
	run->s.regs.regs.rip = 0xfff0;
	run->s.regs.regs.rdx = 0x60fb1;
	run->s.regs.regs.rflags = 2;
	assert_false(capture_is_reset(&run->s.regs.regs, &run->s.regs.sregs)); /* long mode */
	run->s.regs.sregs.cr0 = 0x60000010;
	run->s.regs.sregs.cr3 = run->s.regs.sregs.efer = 0;
	run->s.regs.sregs.cs.selector = 0xf000;
	assert_true(capture_is_reset(&run->s.regs.regs, &run->s.regs.sregs));
	run->s.regs.sregs.cs.selector = 0x1000; /* real mode, but the guest's own */
	assert_false(capture_is_reset(&run->s.regs.regs, &run->s.regs.sregs));
	run->s.regs.sregs.cs.selector = 0xf000;
	run->s.regs.regs.rip = 0xfff5;
	assert_false(capture_is_reset(&run->s.regs.regs, &run->s.regs.sregs));
}

static void idle_offline_and_dead(void **state)
{
	const struct sample *s;

	(void)state;
	fake_kvm.mp_state = KVM_MP_STATE_HALTED;
	s = take(STACK, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->mode, SAMPLE_IDLE);
	done();
	assert_int_equal(f.v->dead_looks, 0); /* an interrupt can wake it */
	f.v->run->s.regs.regs.rflags = 0x2;
	for (unsigned int i = 1; i < 4; i++) {
		s = take(STACK, SAMPLE_TIMER);
		assert_non_null(s);
		done();
		assert_int_equal(f.v->dead_looks, i);
	}
	fake_kvm.mp_state = KVM_MP_STATE_UNINITIALIZED;
	assert_null(take(STACK, SAMPLE_TIMER));
	assert_int_equal(f.v->stats.offline, 1);
	assert_int_equal(f.v->dead_looks, 4);
	assert_int_equal(ring_dropped(&f.v->ring), 0); /* not a loss: there was nothing to see */
	fake_kvm.mp_state = KVM_MP_STATE_RUNNABLE;
	s = take(STACK, SAMPLE_TIMER);
	assert_non_null(s);
	assert_int_equal(s->mode, SAMPLE_KERNEL);
	done();
	assert_int_equal(f.v->dead_looks, 0);
	assert_int_equal(f.v->stats.idle, 4);
	assert_int_equal(f.v->stats.kernel, 1);
	assert_int_equal(f.v->stats.samples, 5);
}

/* KVM is asked only where the vCPU can stand: behind a HLT or a hypercall, or in real mode. */
static void asks_only_where_it_can_stand(void **state)
{
	static const struct {
		uint8_t before[3];
		bool ask;
	} code[] = {
		{ { 0x90, 0xfb, 0xf4 }, true }, /* sti; hlt */
		{ { 0x90, 0x0f, 0x05 }, true },	 { { 0x0f, 0x01, 0xc1 }, true },
		{ { 0x0f, 0x01, 0xd9 }, true },	 { { 0xf4, 0x90, 0x90 }, false },
		{ { 0x48, 0x89, 0xe5 }, false },
	};
	uint64_t rip = STACK + 0x100;

	(void)state;
	fake_kvm.mp_state = KVM_MP_STATE_HALTED;
	f.v->run->s.regs.regs.rip = rip;
	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
		const struct sample *s;

		fake_put(&f, rip - 3, code[i].before, 3);
		fake_kvm.mp_asked = 0;
		s = take(STACK + 0x3000, SAMPLE_TIMER);
		assert_non_null(s);
		assert_int_equal(fake_kvm.mp_asked, code[i].ask);
		assert_int_equal(s->mode, code[i].ask ? SAMPLE_IDLE : SAMPLE_KERNEL);
		done();
	}
	/* the last code again, before protected mode: it may wait to be started */
	fake_kvm.mp_state = KVM_MP_STATE_UNINITIALIZED;
	f.v->run->s.regs.sregs.cr0 &= ~UINT64_C(0x80000001);
	assert_null(take(STACK + 0x3000, SAMPLE_TIMER));
	assert_int_equal(f.v->stats.offline, 1);
}

/* With ring 3's selectors at the system call's entry: only the vsyscall page is a program's. */
static void foreign_at_entry(void **state)
{
	static const struct {
		uint64_t rip;
		unsigned int mode;
	} at[] = {
		{ UINT64_C(0xffffffff81000123), SAMPLE_KERNEL },
		{ UINT64_C(0xffffffffff600000), SAMPLE_USER },
		{ UINT64_C(0xffffffffff600fff), SAMPLE_USER },
		{ UINT64_C(0xffffffffff5fffff), SAMPLE_KERNEL },
		{ UINT64_C(0xffffffffff601000), SAMPLE_KERNEL },
		{ UINT64_C(0x7fffffffe000), SAMPLE_USER },
	};

	(void)state;
	f.v->foreign = true;
	fake_set_cpl(&f, 3);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		const struct sample *s;

		f.v->run->s.regs.regs.rip = at[i].rip;
		s = take(STACK, SAMPLE_TIMER);
		assert_non_null(s);
		assert_int_equal(s->mode, at[i].mode);
		done();
	}
	f.v->foreign = false;
	f.v->run->s.regs.regs.rip = at[0].rip;
	assert_int_equal(take(STACK, SAMPLE_TIMER)->mode, SAMPLE_USER); /* nothing known of LSTAR */
	done();
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(registers),
		TEST(foreign_at_entry),
		TEST(stack_up_to_its_boundary),
		TEST(stack_at_the_top_of_the_address_space),
		TEST(follows_the_interrupt_stack),
		TEST(five_level_paging),
		TEST(top_word_that_is_no_stack),
		TEST(stacks_that_point_at_each_other),
		TEST(unmapped_page),
		TEST(instruction_bytes),
		TEST(capped),
		TEST(larger_stacks),
		TEST(user_mode),
		TEST(interrupt_stack_by_its_pointer),
		TEST(interrupt_stack_by_its_end),
		TEST(program_below_padding),
		TEST(full_ring_drops_and_counts),
		TEST(weight_counts_what_was_missed),
		TEST(crash_has_no_weight),
		TEST(reset_is_recognised),
		TEST(idle_offline_and_dead),
		TEST(asks_only_where_it_can_stand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
