/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/syscall_assist.h"

#include "vmm/machine.h"
#include "vmm/debugreg.h"
#include "vmm/pvm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/vcpu_fixture.h"
#include "vmm/breakpoint.h"
#include "vmm/quirks.h"

#define LSTAR UINT64_C(0xffffffff81a00080)
#define PF_HANDLER UINT64_C(0xffffffff81a00c40)
#define FMASK UINT64_C(0x257fd5) /* what Linux writes */
#define KSTACK UINT64_C(0xfffffe0000010000)
#define FRAME (KSTACK + 0xf00)
#define IDT UINT64_C(0xfffffe0000000000)
#define USER_RIP UINT64_C(0x401234)
#define USER_RSP UINT64_C(0x7ffc00001000)
#define USER_CS 0x33u
#define USER_SS 0x2bu
#define R11 UINT64_C(0x10a47) /* user flags: CF PF ZF IF OF RF and the fixed one */

static struct fake f;
static const struct quirks quirks = { .syscall_keeps_cpl = true };

/* KVM's answers, for tests that need them; otherwise all calls fail, as on fd -1. */
static bool kvm_answers;
static struct kvm_guest_debug debug;
static unsigned int debug_set;
static struct kvm_msr_entry msr;
static uint64_t msr_fmask;

int ioctl(int fd, unsigned long request, ...)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} * m;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	m = arg;
	if (fd == -1 && kvm_answers) {
		switch (request) {
		case KVM_SET_GUEST_DEBUG:
			debug = *(struct kvm_guest_debug *)arg;
			debug_set++;
			return 0;
		case KVM_SET_MSRS:
			msr = m->entry;
			return 1;
		case KVM_GET_MSRS:
			assert_int_equal(m->entry.index, 0xc0000084);
			m->entry.data = msr_fmask;
			return 1;
		}
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

struct frame {
	uint64_t error, rip, cs, rflags, rsp, ss;
};

/* At the breakpoint, with the frame that SYSCALL's fault at LSTAR leaves. */
static int setup(void **state)
{
	struct frame frame = { 0x14, LSTAR, USER_CS, 0x10202, USER_RSP, USER_SS };
	struct kvm_regs *r;
	struct kvm_sregs *s;

	(void)state;
	kvm_answers = false;
	debug_set = 0;
	memset(&debug, 0, sizeof(debug));
	memset(&msr, 0, sizeof(msr));
	fake_init(&f, 1 << 16);
	f.vm->cfg.quirks = &quirks;
	f.vm->pvm = pvm_ops_for(&quirks);
	fake_map(&f, KSTACK, FAKE_P | FAKE_W);
	fake_map(&f, IDT, FAKE_P | FAKE_W);
	fake_map(&f, PF_HANDLER, FAKE_P);
	fake_put(&f, FRAME, &frame, sizeof(frame));
	r = &f.v->run->s.regs.regs;
	s = &f.v->run->s.regs.sregs;
	r->rip = PF_HANDLER;
	r->rsp = FRAME;
	r->rflags = 0x2;
	r->rcx = USER_RIP;
	r->r11 = R11;
	r->rax = 39;
	s->cr2 = LSTAR;
	s->ss.selector = 0;
	f.v->pvm_state.syscall = (struct pvm_syscall){
		.lstar = LSTAR,
		.fmask = FMASK,
		.pf_handler = PF_HANDLER,
		.know_lstar = true,
		.know_fmask = true,
	};
	f.v->debug.addr[DEBUGREG_ASSIST] = PF_HANDLER;
	f.v->run->debug.arch.dr6 = DR6_SLOT(0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_deinit(&f);
	return 0;
}

static void set_frame(size_t field, uint64_t v)
{
	fake_put64(&f, FRAME + field, v);
}

static void converts(void **state)
{
	const struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct kvm_sregs before = f.v->run->s.regs.sregs;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(syscall_assist_debug(f.v, &e), 0);
	assert_int_equal(r->rip, LSTAR);
	assert_int_equal(r->rsp, USER_RSP); /* SYSCALL leaves it to the kernel to switch stacks */
	assert_int_equal(r->rflags, (R11 & ~FMASK & ~UINT64_C(0x10000)) | 2);
	assert_int_equal(r->rflags & 0x200, 0);
	assert_int_equal(r->rcx, USER_RIP);
	assert_int_equal(r->r11, R11);
	assert_int_equal(r->rax, 39);
	assert_int_equal(f.v->run->kvm_dirty_regs, KVM_SYNC_X86_REGS);
	assert_memory_equal(&before, &f.v->run->s.regs.sregs, sizeof(before));
	assert_int_equal(f.v->stats.syscalls_assisted, 1);
	assert_int_equal(f.v->stats.syscalls_undone, 0);
	assert_int_equal(f.v->stats.faults_forwarded, 0);
}

static void keeps_flags_outside_the_mask(void **state)
{
	struct err e = { 0 };

	(void)state;
	f.v->pvm_state.syscall.fmask = 0;
	assert_int_equal(syscall_assist_debug(f.v, &e), 0);
	assert_int_equal(f.v->run->s.regs.regs.rflags, (R11 & ~UINT64_C(0x10000)) | 2);
}

/* A guest that never wrote SFMASK: its reset value is asked for, once. */
static void learns_the_mask(void **state)
{
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	msr_fmask = 0x200;
	f.v->pvm_state.syscall.fmask = 0;
	f.v->pvm_state.syscall.know_fmask = false;
	assert_int_equal(syscall_assist_debug(f.v, &e), 0);
	assert_true(f.v->pvm_state.syscall.know_fmask);
	assert_int_equal(f.v->run->s.regs.regs.rflags, (R11 & ~UINT64_C(0x10200)) | 2);
}

static void undoes_while_an_interrupt_waits(void **state)
{
	const struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct kvm_sregs *s = &f.v->run->s.regs.sregs;
	struct err e = { 0 };

	(void)state;
	for (unsigned int vector = 32; vector < 256; vector += 31) {
		teardown(state);
		setup(state);
		s = &f.v->run->s.regs.sregs;
		r = &f.v->run->s.regs.regs;
		s->interrupt_bitmap[vector / 64] = UINT64_C(1) << vector % 64;
		assert_int_equal(syscall_assist_debug(f.v, &e), 0);
		assert_int_equal(r->rip, USER_RIP - 2); /* SYSCALL runs again */
		assert_int_equal(r->rsp, USER_RSP);
		assert_int_equal(r->rflags, (R11 & ~UINT64_C(0x10000)) | 2);
		assert_int_equal(r->rflags & 0x200, 0x200); /* the interrupt may come */
		assert_int_equal(s->cs.selector, USER_CS);
		assert_int_equal(s->cs.dpl, 3);
		assert_true(s->cs.l && !s->cs.db && s->cs.s && s->cs.present && !s->cs.unusable);
		assert_int_equal(s->cs.type, 11);
		assert_int_equal(s->ss.selector, USER_SS);
		assert_int_equal(s->ss.dpl, 3);
		assert_int_equal(s->ss.type, 3);
		assert_true(s->ss.s && s->ss.present && !s->ss.l && !s->ss.unusable);
		assert_int_equal(f.v->run->kvm_dirty_regs, KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS);
		/* the interrupt goes back to KVM with the registers */
		assert_int_equal(s->interrupt_bitmap[vector / 64], UINT64_C(1) << vector % 64);
		syscall_assist_enter(f.v);
		assert_int_equal(s->interrupt_bitmap[vector / 64], UINT64_C(1) << vector % 64);
		assert_int_equal(f.v->stats.syscalls_undone, 1);
		assert_int_equal(f.v->stats.syscalls_assisted, 0);
	}
}

static void enter_clears_the_stale_bitmap(void **state)
{
	struct kvm_sregs *s = &f.v->run->s.regs.sregs;
	struct err e = { 0 };

	(void)state;
	memset(s->interrupt_bitmap, 0xff, sizeof(s->interrupt_bitmap));
	f.v->run->kvm_dirty_regs = KVM_SYNC_X86_REGS;
	syscall_assist_enter(f.v);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(s->interrupt_bitmap[i], 0);
	/* so that the next conversion is not undone for ever */
	assert_int_equal(syscall_assist_debug(f.v, &e), 0);
	assert_int_equal(f.v->stats.syscalls_assisted, 1);
}

static void forwards_past_the_first_instruction(void **state)
{
	static const struct {
		uint8_t insn[4];
		unsigned int len;
	} known[] = {
		{ { 0x0f, 0x1f, 0x00, 0xcc }, 3 }, /* nop3, CLAC patched out */
		{ { 0x0f, 0x01, 0xca, 0xcc }, 3 }, /* clac */
		{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4 }, /* endbr64 */
		{ { 0x90, 0xcc, 0xcc, 0xcc }, 1 }, /* nop */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct err e = { 0 };
		struct kvm_regs before;

		teardown(state);
		setup(state);
		fake_put(&f, PF_HANDLER, known[i].insn, 4);
		set_frame(offsetof(struct frame, rip), USER_RIP); /* a page of the program */
		f.v->run->s.regs.sregs.cr2 = 0x7f0000001000;
		before = f.v->run->s.regs.regs;
		before.rip += known[i].len;
		assert_int_equal(syscall_assist_debug(f.v, &e), 0);
		assert_memory_equal(&before, &f.v->run->s.regs.regs, sizeof(before));
		assert_int_equal(f.v->run->kvm_dirty_regs, KVM_SYNC_X86_REGS);
		assert_int_equal(f.v->stats.faults_forwarded, 1);
		assert_int_equal(f.v->stats.syscalls_assisted, 0);
		assert_false(f.v->debug.stepping);
	}
}

/* Whatever does not look exactly like SYSCALL's fault belongs to the guest. */
static void genuine_faults_are_not_converted(void **state)
{
	static const uint8_t nop3[] = { 0x0f, 0x1f, 0x00 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct err e = { 0 };

		teardown(state);
		setup(state);
		fake_put(&f, PF_HANDLER, nop3, sizeof(nop3));
		switch (i) {
		case 0:
			set_frame(offsetof(struct frame, rip), LSTAR + 1);
			break;
		case 1:
			set_frame(offsetof(struct frame, cs), 0x10);
			break; /* kernel text gone */
		case 2:
			f.v->run->s.regs.sregs.cr2 = LSTAR + 8;
			break;
		case 3:
			f.v->pvm_state.syscall.know_lstar = false;
			break;
		}
		assert_int_equal(syscall_assist_debug(f.v, &e), 0);
		assert_int_equal(f.v->run->s.regs.regs.rip, PF_HANDLER + 3);
		assert_int_equal(f.v->run->s.regs.regs.rsp, FRAME);
		assert_int_equal(f.v->stats.faults_forwarded, 1);
		assert_int_equal(f.v->stats.syscalls_assisted, 0);
	}
}

static void steps_over_other_instructions(void **state)
{
	static const uint8_t push[] = { 0x50, 0x0f, 0x1f, 0x00 };
	struct err e = { 0 };

	(void)state;
	kvm_answers = true;
	fake_put(&f, PF_HANDLER, push, sizeof(push));
	set_frame(offsetof(struct frame, rip), USER_RIP);
	assert_int_equal(syscall_assist_debug(f.v, &e), 0);
	assert_int_equal(f.v->run->s.regs.regs.rip, PF_HANDLER);
	assert_int_equal(f.v->run->kvm_dirty_regs, 0);
	assert_true(f.v->debug.stepping);
	assert_int_equal(debug.control, KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP);

	/* a sample in between must not set the breakpoint under the step's feet */
	syscall_assist_refresh(f.v);
	assert_int_equal(debug_set, 1);

	f.v->run->s.regs.regs.rip++;
	f.v->run->debug.arch.dr6 = DR6_BS;
	assert_int_equal(breakpoint_debug(f.v, &e), 0);
	assert_false(f.v->debug.stepping);
	assert_int_equal(debug.control, KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP);
	assert_int_equal(debug.arch.debugreg[0], PF_HANDLER);
	assert_int_equal(debug.arch.debugreg[7] & 0xf0003, 2);
	assert_int_equal(f.v->stats.faults_forwarded, 1);

	/* and where KVM refuses */
	kvm_answers = false;
	f.v->run->s.regs.regs.rip = PF_HANDLER;
	assert_int_equal(syscall_assist_debug(f.v, &e), -EIO);
	assert_non_null(strstr(e.text, "single-step"));
	assert_false(f.v->debug.stepping);
}

static void frame_cannot_be_read(void **state)
{
	struct err e = { 0 };
	struct kvm_regs before;

	(void)state;
	f.v->run->s.regs.regs.rsp = KSTACK + 4096 - 40; /* the last word is on the next page */
	before = f.v->run->s.regs.regs;
	assert_int_equal(syscall_assist_debug(f.v, &e), -EFAULT);
	assert_non_null(strstr(e.text, "frame"));
	assert_non_null(strstr(e.text, "0xfffffe0000010fd8"));
	assert_memory_equal(&before, &f.v->run->s.regs.regs, sizeof(before));
	assert_int_equal(f.v->run->kvm_dirty_regs, 0);
}

static void not_ours(void **state)
{
	struct err e = { 0 };

	(void)state;
	f.v->run->s.regs.regs.rip = PF_HANDLER + 1;
	f.v->run->debug.arch.exception = 1;
	f.v->run->debug.arch.dr6 = DR6_SLOT(0);
	assert_int_equal(breakpoint_debug(f.v, &e), -EBADF); /* tried to give it to the guest */
	assert_int_equal(f.v->stats.debug_returned, 1);
	e.code = 0;
	f.v->run->s.regs.regs.rip = 0;
	f.v->pvm_state.syscall.pf_handler = 0;
	assert_int_equal(breakpoint_debug(f.v, &e), -EBADF);
	assert_int_equal(f.v->stats.debug_returned, 2);
	assert_int_equal(f.v->stats.faults_forwarded + f.v->stats.syscalls_assisted, 0);
}

static void put_gate(uint64_t handler, bool present)
{
	uint32_t gate[4] = {
		(uint32_t)(0x10u << 16 | (handler & 0xffff)),
		(uint32_t)((handler & 0xffff0000) | (present ? 0x8e00 : 0x0e00)),
		(uint32_t)(handler >> 32),
		0,
	};

	fake_put(&f, IDT + 14 * 16, gate, sizeof(gate));
}

static void learns_from_msr_writes(void **state)
{
	(void)state;
	kvm_answers = true;
	memset(&f.v->pvm_state, 0, sizeof(f.v->pvm_state));
	f.v->run->s.regs.sregs.idt.base = IDT;
	f.v->run->s.regs.sregs.idt.limit = 0xfff;
	put_gate(PF_HANDLER, true);

	f.v->run->msr.index = 0xc0000084;
	f.v->run->msr.data = FMASK;
	f.v->run->msr.error = 7;
	assert_true(syscall_assist_wrmsr(f.v));
	assert_int_equal(f.v->run->msr.error, 0);
	assert_int_equal(msr.index, 0xc0000084);
	assert_int_equal(msr.data, FMASK);
	assert_true(f.v->pvm_state.syscall.know_fmask);
	assert_int_equal(f.v->pvm_state.syscall.fmask, FMASK);
	assert_int_equal(debug_set, 0); /* no breakpoint before there is a SYSCALL */

	f.v->run->msr.index = 0xc0000082;
	f.v->run->msr.data = LSTAR;
	assert_true(syscall_assist_wrmsr(f.v));
	assert_int_equal(msr.data, LSTAR);
	assert_int_equal(f.v->pvm_state.syscall.lstar, LSTAR);
	assert_int_equal(f.v->pvm_state.syscall.pf_handler, PF_HANDLER);
	assert_int_equal(debug.arch.debugreg[0], PF_HANDLER);
	assert_int_equal(debug_set, 1);

	f.v->run->msr.index = 0xc0000081; /* STAR: not filtered, not ours */
	assert_false(syscall_assist_wrmsr(f.v));

	/* the guest's write must fail where KVM's does */
	kvm_answers = false;
	f.v->run->msr.index = 0xc0000082;
	assert_true(syscall_assist_wrmsr(f.v));
	assert_int_equal(f.v->run->msr.error, 1);
}

static void follows_another_handler(void **state)
{
	struct kvm_dtable *idt = &f.v->run->s.regs.sregs.idt;

	(void)state;
	kvm_answers = true;
	idt->base = IDT;
	idt->limit = 0xfff;
	put_gate(PF_HANDLER, true);
	syscall_assist_refresh(f.v);
	assert_int_equal(debug_set, 0); /* the same: no call */
	put_gate(PF_HANDLER + 0x1000, false);
	syscall_assist_refresh(f.v);
	assert_int_equal(debug_set, 0);
	put_gate(PF_HANDLER + 0x1000, true);
	idt->limit = 14 * 16 + 14; /* one byte short of the gate */
	syscall_assist_refresh(f.v);
	assert_int_equal(debug_set, 0);
	idt->limit++;
	idt->base = IDT + 0x1000; /* not mapped */
	syscall_assist_refresh(f.v);
	assert_int_equal(debug_set, 0);
	idt->base = IDT;
	syscall_assist_refresh(f.v);
	assert_int_equal(debug_set, 1);
	assert_int_equal(debug.arch.debugreg[0], PF_HANDLER + 0x1000);
	assert_int_equal(f.v->pvm_state.syscall.pf_handler, PF_HANDLER + 0x1000);
	/* refused: asked again the next time */
	put_gate(PF_HANDLER, true);
	kvm_answers = false;
	syscall_assist_refresh(f.v);
	assert_int_equal(f.v->pvm_state.syscall.pf_handler, PF_HANDLER + 0x1000);
	kvm_answers = true;
	syscall_assist_refresh(f.v);
	assert_int_equal(f.v->pvm_state.syscall.pf_handler, PF_HANDLER);
}

/* A sample at the kernel's entry point, still at CPL 3 with the program's stack. */
static void sampled_at(uint64_t rip, unsigned int mode)
{
	const struct capture_cause cause = { .reason = SAMPLE_TIMER };
	const struct sample *s;
	size_t len;

	f.v->run->s.regs.regs.rip = rip;
	assert_true(capture_sample(f.v, &cause));
	s = ring_peek(&f.v->ring, &len);
	assert_non_null(s);
	assert_int_equal(s->mode, mode);
	/* no kernel stack ends there, none is followed */
	assert_int_equal(s->stack_end, SAMPLE_STACK_CAPPED);
	assert_int_equal(s->nslices, 1);
	ring_release(&f.v->ring);
}

static void cpl_3_at_lstar_is_kernel(void **state)
{
	(void)state;
	fake_map(&f, USER_RSP, FAKE_P | FAKE_W | FAKE_U);
	f.vm->cfg.plan.stack_max = f.v->stack_max = 256;
	atomic_store(&f.vm->control.collect, true);
	atomic_store(&f.v->collect, true);
	f.v->run->s.regs.regs.rsp = USER_RSP;
	f.v->run->s.regs.sregs.cs.dpl = 3;
	f.v->pvm_state.syscall.know_lstar = false;
	sampled_at(LSTAR, SAMPLE_USER);
	f.v->pvm_state.syscall.know_lstar = true;
	sampled_at(LSTAR, SAMPLE_KERNEL);
	sampled_at(LSTAR + 1, SAMPLE_USER);
	assert_int_equal(f.v->stats.kernel, 1);
	assert_int_equal(f.v->stats.user, 2);
}

/* The state in a snapshot is restored, and the breakpoint with it. */
static void comes_back_from_a_snapshot(void **state)
{
	const struct pvm_syscall saved = f.v->pvm_state.syscall;
	struct err e = { 0 };

	(void)state;
	memset(&f.v->pvm_state, 0, sizeof(f.v->pvm_state));
	f.v->debug.addr[DEBUGREG_ASSIST] = 0;
	assert_int_equal(syscall_assist_restore(f.v, &saved, &e), -EBADF);
	assert_non_null(strstr(e.text, "refuses a breakpoint"));
	kvm_answers = true;
	err_clear(&e);
	assert_int_equal(syscall_assist_restore(f.v, &saved, &e), 0);
	assert_int_equal(debug.arch.debugreg[0], PF_HANDLER);
	assert_memory_equal(&f.v->pvm_state.syscall, &saved, sizeof(saved));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(converts),
		TEST(keeps_flags_outside_the_mask),
		TEST(learns_the_mask),
		TEST(undoes_while_an_interrupt_waits),
		TEST(enter_clears_the_stale_bitmap),
		TEST(forwards_past_the_first_instruction),
		TEST(genuine_faults_are_not_converted),
		TEST(steps_over_other_instructions),
		TEST(frame_cannot_be_read),
		TEST(not_ours),
		TEST(learns_from_msr_writes),
		TEST(follows_another_handler),
		TEST(cpl_3_at_lstar_is_kernel),
		TEST(comes_back_from_a_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
