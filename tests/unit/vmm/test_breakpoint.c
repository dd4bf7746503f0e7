/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints: who has which debug register, what is sampled, and how the vCPU goes on. */
#include "vmm/breakpoint.h"

#include "vmm/machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/vcpu_fixture.h"

#define PF UINT64_C(0xffffffff81a00c40)
#define FUNC UINT64_C(0xffffffff81000100)
#define OTHER UINT64_C(0xffffffff81000200)
#define STACK UINT64_C(0xffffc90000003f00)
#define TF 0x100u
#define RF 0x10000u

static struct fake f;
static struct quirks quirks;
static struct kvm_guest_debug debug;
static struct kvm_debugregs own;
static unsigned int reached_calls;
static uint64_t set_flags;
static int refuse; /* errno of KVM_SET_GUEST_DEBUG */

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd != -1)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	switch (request) {
	case KVM_SET_GUEST_DEBUG:
		if (refuse) {
			errno = refuse;
			return -1;
		}
		debug = *(struct kvm_guest_debug *)arg;
		return 0;
	case KVM_SET_REGS:
		set_flags = ((struct kvm_regs *)arg)->rflags;
		return 0;
	case KVM_GET_DEBUGREGS:
		*(struct kvm_debugregs *)arg = own;
		return 0;
	case KVM_SET_DEBUGREGS:
		own = *(struct kvm_debugregs *)arg;
		return 0;
	}
	errno = EBADF;
	return -1;
}

static void on_reached(void *ctx, unsigned int breakpoint)
{
	(void)ctx;
	(void)breakpoint;
	reached_calls++;
}

static int setup(void **state)
{
	(void)state;
	fake_init(&f, 1u << 20);
	fake_map(&f, FUNC, FAKE_P);
	fake_map(&f, STACK & ~0xfffull, FAKE_P | FAKE_W);
	quirks = (struct quirks){ 0 };
	debug = (struct kvm_guest_debug){ 0 };
	own = (struct kvm_debugregs){ .dr6 = 0xffff0ff0, .dr7 = 0x401 };
	reached_calls = 0;
	refuse = 0;
	f.vm->cfg.quirks = &quirks;
	f.vm->cfg.plan.stack_max = 256;
	f.v->stack_max = 256;
	f.vm->cfg.reached = on_reached;
	f.vm->cfg.breakpoint[0] = (struct vm_breakpoint){ .addr = FUNC };
	f.vm->cfg.breakpoint[1] = (struct vm_breakpoint){ .addr = OTHER };
	f.vm->cfg.nbreakpoints = 2;
	f.v->run->s.regs.regs.rsp = STACK;
	f.v->run->s.regs.regs.rflags = 2;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_deinit(&f);
	return 0;
}

/* A debug exit at rip, for these bits of DR6. */
static int exit_at(uint64_t rip, uint64_t dr6)
{
	struct err e = { 0 };
	int ret;

	f.v->run->s.regs.regs.rip = rip;
	f.v->run->debug.arch.exception = 1;
	f.v->run->debug.arch.dr6 = dr6 | 0xffff0ff0;
	f.v->run->kvm_dirty_regs = 0;
	ret = breakpoint_debug(f.v, &e);
	assert_int_equal(ret, -e.code);
	return ret;
}

/* The next sample in the ring is of this breakpoint. */
static void took(unsigned int breakpoint)
{
	size_t len;
	const struct sample *s = ring_peek(&f.v->ring, &len);

	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_MARKER);
	assert_int_equal(s->event, breakpoint);
	assert_int_equal(s->weight, 0);
	assert_true(s->stack_len);
	ring_release(&f.v->ring);
}

static void took_none(void)
{
	size_t len;

	assert_null(ring_peek(&f.v->ring, &len));
}

static void registers_are_shared(void **state)
{
	(void)state;
	assert_int_equal(debugreg_set(f.v, DEBUGREG_ASSIST, PF), 0);
	breakpoints_follow(f.v);
	assert_int_equal(debug.control, KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP);
	assert_int_equal(debug.arch.debugreg[0], PF);
	assert_int_equal(debug.arch.debugreg[1], FUNC);
	assert_int_equal(debug.arch.debugreg[2], OTHER);
	assert_int_equal(debug.arch.debugreg[3], 0);
	assert_int_equal(debug.arch.debugreg[7], 0x400 | 2 | 8 | 32);
	/* who moves leaves the others alone */
	assert_int_equal(debugreg_set(f.v, DEBUGREG_ASSIST, PF + 16), 0);
	assert_int_equal(debug.arch.debugreg[0], PF + 16);
	assert_int_equal(debug.arch.debugreg[1], FUNC);
	/* past one of them the others still stop */
	assert_int_equal(debugreg_step(f.v, 1), 0);
	assert_int_equal(debug.control,
			 KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP | KVM_GUESTDBG_SINGLESTEP);
	assert_int_equal(debug.arch.debugreg[7], 0x400 | 2 | 32);
	assert_int_equal(debugreg_step_done(f.v), 0);
	assert_int_equal(debug.arch.debugreg[7], 0x400 | 2 | 8 | 32);
	/* nothing left: off */
	f.vm->cfg.breakpoint[0].addr = f.vm->cfg.breakpoint[1].addr = 0;
	breakpoints_follow(f.v);
	assert_int_equal(debugreg_set(f.v, DEBUGREG_ASSIST, 0), 0);
	assert_int_equal(debug.control, 0);
}

static void resume_flag_where_kvm_honours_it(void **state)
{
	(void)state;
	breakpoints_follow(f.v);
	for (unsigned int i = 1; i <= 3; i++) {
		f.v->run->s.regs.regs.rflags = 2;
		assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
		assert_int_equal(f.v->run->s.regs.regs.rflags, 2 | RF);
		assert_int_equal(f.v->run->s.regs.regs.rip, FUNC);
		assert_int_equal(f.v->run->kvm_dirty_regs, KVM_SYNC_X86_REGS);
		assert_false(f.v->debug.stepping);
		assert_int_equal(f.v->stats.breakpoints[0], i);
		took(0);
	}
	assert_int_equal(exit_at(OTHER, DR6_SLOT(2)), 0);
	assert_int_equal(f.v->stats.breakpoints[1], 1);
	took(1);
	/* markers are no samples */
	assert_int_equal(f.v->stats.samples, 0);
	assert_int_equal(reached_calls, 0);
}

static void single_step_where_it_does_not(void **state)
{
	(void)state;
	quirks.interpreted = true;
	f.vm->step_flags = KVM_GUESTDBG_BLOCKIRQ;
	breakpoints_follow(f.v);
	fake_put(&f, FUNC, "\x55\x48\x89\xe5", 4);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->run->s.regs.regs.rflags, 2);
	assert_true(f.v->debug.stepping);
	assert_int_equal(debug.control, KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP |
						KVM_GUESTDBG_SINGLESTEP | KVM_GUESTDBG_BLOCKIRQ);
	took(0);
	assert_int_equal(exit_at(FUNC + 1, DR6_BS), 0);
	assert_false(f.v->debug.stepping);
	assert_int_equal(debug.arch.debugreg[7], 0x400 | 8 | 32);
	assert_int_equal(f.v->stats.debug_returned, 0);
	took_none();
	/* again with the same stack: another call */
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->stats.breakpoints[0], 2);
}

/* The step ended in the handler of a fault: the instruction comes again, and counts once. */
static void fault_below_the_step(void **state)
{
	(void)state;
	quirks.interpreted = true;
	breakpoints_follow(f.v);
	fake_put(&f, FUNC, "\x55\x48\x89\xe5", 4);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(exit_at(PF + 3, DR6_BS), 0);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->stats.breakpoints[0], 1);
	assert_int_equal(exit_at(FUNC + 1, DR6_BS), 0);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->stats.breakpoints[0], 2);
	/* with another stack it is somebody else */
	assert_int_equal(exit_at(PF + 3, DR6_BS), 0);
	f.v->run->s.regs.regs.rsp -= 64;
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->stats.breakpoints[0], 3);
	/* a jump goes elsewhere by itself */
	assert_int_equal(exit_at(FUNC + 1, DR6_BS), 0);
	fake_put(&f, FUNC, "\xe9\x00\x01\x00\x00", 5);
	for (unsigned int i = 4; i < 6; i++) {
		assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
		assert_int_equal(f.v->stats.breakpoints[0], i);
		assert_int_equal(exit_at(FUNC + 0x105, DR6_BS), 0);
	}
}

static void once_means_on_any_vcpu(void **state)
{
	(void)state;
	f.vm->cfg.breakpoint[0].once = true;
	breakpoints_follow(f.v);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->stats.breakpoints[0], 1);
	assert_int_equal(f.v->debug.addr[1], 0);
	assert_int_equal(f.v->debug.addr[2], OTHER);
	assert_int_equal(f.v->run->kvm_dirty_regs, 0); /* nothing to go past any more */
	assert_int_equal(reached_calls, 1);
	assert_true(vm_reached_ns(f.vm, 0) > 0);
	took(0);
	/* another vCPU that has not disarmed it yet */
	assert_int_equal(debugreg_set(f.v, 1, FUNC), 0);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->stats.breakpoints[0], 1);
	assert_int_equal(reached_calls, 1);
	breakpoints_follow(f.v);
	assert_int_equal(f.v->debug.addr[1], 0);
}

static void starts_and_stops(void **state)
{
	(void)state;
	f.vm->cfg.breakpoint[0] = (struct vm_breakpoint){ FUNC, VM_BREAKPOINT_START, true };
	f.vm->cfg.breakpoint[1] = (struct vm_breakpoint){ OTHER, VM_BREAKPOINT_STOP, true };
	breakpoints_follow(f.v);
	/* nothing to stop yet */
	assert_int_equal(exit_at(OTHER, DR6_SLOT(2)), 0);
	took_none();
	assert_int_equal(f.vm->result.reason, VM_RUNNING);
	assert_int_equal(f.v->debug.addr[2], OTHER);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_true(vm_is_collecting(f.vm));
	took(0);
	assert_int_equal(exit_at(OTHER, DR6_SLOT(2)), 0);
	assert_false(vm_is_collecting(f.vm));
	took(1);
	assert_int_equal(f.vm->result.reason, VM_END_MARKER);
}

static void own_exceptions_go_back(void **state)
{
	(void)state;
	own.dr6 |= DR6_SLOT(3); /* left there by an earlier one */
	breakpoints_follow(f.v);
	assert_int_equal(exit_at(0x401000, DR6_BS), 0);
	assert_int_equal(debug.control,
			 KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP | KVM_GUESTDBG_INJECT_DB);
	assert_int_equal(own.dr6, 0xffff0ff0 | DR6_BS);
	assert_int_equal(own.dr7, 0x401);
	assert_int_equal(debug.arch.debugreg[1], FUNC); /* still watched for */
	assert_int_equal(f.v->stats.debug_returned, 1);
	/* the trap comes first, also where a breakpoint is next */
	assert_int_equal(exit_at(FUNC, DR6_BS), 0);
	assert_int_equal(f.v->stats.debug_returned, 2);
	assert_int_equal(f.v->stats.breakpoints[0], 0);
	took_none();
}

/* The guest single-steps the instruction that we step over: both get what they want. */
static void both_step(void **state)
{
	(void)state;
	quirks.interpreted = true;
	breakpoints_follow(f.v);
	fake_put(&f, FUNC, "\x55", 1);
	f.v->run->s.regs.regs.rflags |= TF;
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	f.v->run->s.regs.regs.rflags &= ~(uint64_t)TF; /* as KVM does */
	assert_int_equal(exit_at(FUNC + 1, DR6_BS), 0);
	assert_true(debug.control & KVM_GUESTDBG_INJECT_DB);
	assert_true(own.dr6 & DR6_BS);
	assert_int_equal(set_flags, 2 | TF);
	/* through the shared page it would take the injected exception back */
	assert_int_equal(f.v->run->kvm_dirty_regs, 0);
}

static void kvm_that_refuses(void **state)
{
	(void)state;
	refuse = EINVAL;
	breakpoints_follow(f.v);
	assert_int_equal(f.v->debug.addr[1], 0);
	assert_int_equal(f.vm->result.reason, VM_END_ERROR);
	assert_non_null(strstr(f.vm->result.err.text, "breakpoint at 0xffffffff81000100"));
}

static void waits_for_the_slide(void **state)
{
	(void)state;
	f.vm->cfg.plan.slide_unknown = true;
	f.vm->cfg.plan.image_start = FUNC & ~0xffffull;
	f.vm->cfg.plan.image_end = f.vm->cfg.plan.image_start + 0x100000;
	breakpoints_follow(f.v);
	assert_int_equal(debug.control, 0);
	vm_set_slide(f.vm, 0x200000);
	breakpoints_follow(f.v);
	assert_int_equal(debug.arch.debugreg[1], FUNC + 0x200000);
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(registers_are_shared),
		T(resume_flag_where_kvm_honours_it),
		T(single_step_where_it_does_not),
		T(fault_below_the_step),
		T(once_means_on_any_vcpu),
		T(starts_and_stops),
		T(own_exceptions_go_back),
		T(both_step),
		T(kvm_that_refuses),
		T(waits_for_the_slide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
