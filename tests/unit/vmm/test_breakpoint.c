/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints: who has which debug register, what is sampled, and how the vCPU goes on. */
#include "vmm/breakpoint.h"

#include "vmm/machine.h"
#include "vmm/debugreg.h"
#include "vmm/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/breakpoint_fixture.h"
#include "vmm/vm.h"

static void registers_are_shared(void **state)
{
	(void)state;
	assert_int_equal(debugreg_set(f.v, DEBUGREG_ASSIST, PF), 0);
	breakpoint_update(f.v);
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
	breakpoint_update(f.v);
	assert_int_equal(debugreg_set(f.v, DEBUGREG_ASSIST, 0), 0);
	assert_int_equal(debug.control, 0);
}

static void resume_flag_where_kvm_honours_it(void **state)
{
	(void)state;
	breakpoint_update(f.v);
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

static void once_means_on_any_vcpu(void **state)
{
	(void)state;
	f.vm->cfg.breakpoint[0].once = true;
	breakpoint_update(f.v);
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
	breakpoint_update(f.v);
	assert_int_equal(f.v->debug.addr[1], 0);
}

static void starts_and_stops(void **state)
{
	(void)state;
	f.vm->cfg.breakpoint[0] = (struct vm_breakpoint){ FUNC, VM_BREAKPOINT_START, true, false };
	f.vm->cfg.breakpoint[1] = (struct vm_breakpoint){ OTHER, VM_BREAKPOINT_STOP, true, false };
	breakpoint_update(f.v);
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

/* Two breakpoints that count together count once: the first that is reached. */
static void first_of_several(void **state)
{
	(void)state;
	for (unsigned int first = 0; first < 2; first++) {
		const uint64_t at[] = { FUNC, OTHER };

		f.vm->cfg.breakpoint[0] =
			(struct vm_breakpoint){ FUNC, VM_BREAKPOINT_START, true, false };
		f.vm->cfg.breakpoint[1] =
			(struct vm_breakpoint){ OTHER, VM_BREAKPOINT_START, true, true };
		f.vm->reached_ns[0] = f.vm->reached_ns[1] = 0;
		f.v->stats.breakpoints[0] = f.v->stats.breakpoints[1] = 0;
		reached_calls = 0;
		breakpoint_update(f.v);
		assert_int_equal(debug.arch.debugreg[1], FUNC);
		assert_int_equal(debug.arch.debugreg[2], OTHER);
		assert_int_equal(exit_at(at[first], DR6_SLOT(1 + first)), 0);
		assert_true(vm_is_collecting(f.vm));
		assert_true(vm_reached_ns(f.vm, 0) > 0);
		took(first);
		/* Both are disarmed; another vCPU that has not done so yet takes no second sample. */
		assert_int_equal(f.v->debug.addr[1], 0);
		assert_int_equal(f.v->debug.addr[2], 0);
		assert_int_equal(debugreg_set(f.v, 2 - first, at[1 - first]), 0);
		assert_int_equal(exit_at(at[1 - first], DR6_SLOT(2 - first)), 0);
		took_none();
		breakpoint_update(f.v);
		assert_int_equal(f.v->debug.addr[2 - first], 0);
		assert_int_equal(f.v->stats.breakpoints[0] + f.v->stats.breakpoints[1], 1);
		assert_int_equal(reached_calls, 1);
	}
}

static void own_exceptions_go_back(void **state)
{
	(void)state;
	own.dr6 |= DR6_SLOT(3); /* left there by an earlier one */
	breakpoint_update(f.v);
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

static void kvm_that_refuses(void **state)
{
	(void)state;
	refuse = EINVAL;
	breakpoint_update(f.v);
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
	breakpoint_update(f.v);
	assert_int_equal(debug.control, 0);
	vm_set_slide(f.vm, 0x200000);
	breakpoint_update(f.v);
	assert_int_equal(debug.arch.debugreg[1], FUNC + 0x200000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(registers_are_shared),   T(resume_flag_where_kvm_honours_it),
		T(once_means_on_any_vcpu), T(starts_and_stops),
		T(own_exceptions_go_back), T(kvm_that_refuses),
		T(waits_for_the_slide),	   T(first_of_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
