/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Past breakpoints on a host that interprets ring 0. */
#include "vmm/pvm.h"
#include "vmm/debugreg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/breakpoint_fixture.h"

static void single_step_where_it_does_not(void **state)
{
	(void)state;
	quirks.interpreted = true;
	f.vm->pvm = pvm_ops_for(&quirks);
	f.vm->step_flags = KVM_GUESTDBG_BLOCKIRQ;
	breakpoint_update(f.v);
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
	f.vm->pvm = pvm_ops_for(&quirks);
	breakpoint_update(f.v);
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

/* The guest single-steps the instruction that we step over: both get what they want. */
static void both_step(void **state)
{
	(void)state;
	quirks.interpreted = true;
	f.vm->pvm = pvm_ops_for(&quirks);
	breakpoint_update(f.v);
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

/* Work-arounds, but for ring 0 that is not interpreted: the resume flag is honoured. */
static void resume_flag_where_kvm_honours_it(void **state)
{
	(void)state;
	quirks.syscall_keeps_cpl = true;
	f.vm->pvm = pvm_ops_for(&quirks);
	breakpoint_update(f.v);
	assert_int_equal(exit_at(FUNC, DR6_SLOT(1)), 0);
	assert_int_equal(f.v->run->s.regs.regs.rflags, 2 | RF);
	assert_false(f.v->debug.stepping);
	took(0);
	/* not ours, and not the work-around's */
	assert_int_equal(exit_at(0x401000, DR6_BS), 0);
	assert_int_equal(f.v->stats.debug_returned, 1);
	took_none();
}

static void table_is_for_hosts_that_need_it(void **state)
{
	(void)state;
	assert_null(pvm_ops_for(&quirks));
	quirks.tsc_fixed = true;
	assert_null(pvm_ops_for(&quirks));
	quirks.refuses_insns = true;
	assert_non_null(pvm_ops_for(&quirks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(single_step_where_it_does_not),
		T(fault_below_the_step),
		T(both_step),
		T(resume_flag_where_kvm_honours_it),
		T(table_is_for_hosts_that_need_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
