/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks belong to the workload, to kernel threads and interrupts beside it, or to firmware. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/stacks/work.h"
#include "tests/unit/stackset_fixture.h"

#include <stdlib.h>

static struct fixture f;

static const char *dso_of(const char *name)
{
	return strstr(name, "firmware") ? "[firmware]" : "[kernel.kallsyms]";
}

static void stack_is(const char *frames, uint8_t mode, enum work work, const char *thread)
{
	uint8_t *of_stack = NULL;

	fixture_init(&f);
	fixture_names(&f, frames, dso_of);
	fixture_task(&f, "swapper", 0);
	fixture_stack(&f, 0, mode, 1, frames);
	assert_int_equal(work_find(&of_stack, &f.set), 0);
	if (of_stack[0] != work)
		fail_msg("%s: %u", frames, of_stack[0]);
	if (thread)
		assert_string_equal(work_thread(&f.set, &f.set.stack[0]), thread);
	free(of_stack);
	fixture_forget(&f);
}

static void test_threads(void **state)
{
	(void)state;
	stack_is("ret_from_fork_asm ret_from_fork kthread cryptomgr_test alg_test", STACKSET_KERNEL,
		 WORK_MEANWHILE, "cryptomgr_test");
	stack_is("ret_from_fork kthread worker_thread process_one_work", STACKSET_KERNEL,
		 WORK_MEANWHILE, "worker_thread");
	stack_is("ret_from_fork kthread", STACKSET_KERNEL, WORK_MEANWHILE, "kthread");
	stack_is("ret_from_fork kthreadd kernel_thread", STACKSET_KERNEL, WORK_MEANWHILE,
		 "kthreadd");
	stack_is("worker_thread.isra.0 process_one_work", STACKSET_KERNEL, WORK_MEANWHILE, NULL);
	stack_is("start_kernel rest_init cpu_startup_entry do_idle", STACKSET_KERNEL,
		 WORK_MEANWHILE, "idle");
	stack_is("start_kernel something", STACKSET_IDLE, WORK_MEANWHILE, "idle");
	stack_is("asm_sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt", STACKSET_KERNEL,
		 WORK_MEANWHILE, "interrupts");
	stack_is("handle_edge_irq handle_irq_event", STACKSET_KERNEL, WORK_MEANWHILE, "interrupts");
	stack_is("handle_softirqs rcu_core", STACKSET_KERNEL, WORK_MEANWHILE, "interrupts");
	stack_is("do_syscall_64 __x64_sys_openat path_openat __cond_resched __schedule",
		 STACKSET_KERNEL, WORK_MEANWHILE, "preemption");
	stack_is("do_syscall_64 syscall_exit_to_user_mode schedule __schedule", STACKSET_KERNEL,
		 WORK_MEANWHILE, "preemption");
}

static void test_workload(void **state)
{
	(void)state;
	stack_is("start_kernel setup_arch", STACKSET_KERNEL, WORK_WORKLOAD, NULL);
	stack_is("ret_from_fork kernel_init kernel_init_freeable do_one_initcall", STACKSET_KERNEL,
		 WORK_WORKLOAD, NULL);
	stack_is("entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_pipe2", STACKSET_KERNEL,
		 WORK_WORKLOAD, NULL);
	stack_is("asm_exc_page_fault exc_page_fault", STACKSET_KERNEL, WORK_WORKLOAD, NULL);
	/* It waits of its own will. */
	stack_is("do_syscall_64 __x64_sys_nanosleep do_nanosleep schedule __schedule",
		 STACKSET_KERNEL, WORK_WORKLOAD, NULL);
	/* Softirqs in a system call are its own. */
	stack_is("do_syscall_64 __x64_sys_sendto __local_bh_enable_ip __do_softirq net_rx_action",
		 STACKSET_KERNEL, WORK_WORKLOAD, NULL);
	/* The call that offers the processor is the task's own, and so is the rest of it. */
	stack_is("do_syscall_64 __x64_sys_openat __cond_resched", STACKSET_KERNEL, WORK_WORKLOAD,
		 NULL);
	/* A program's worker in the kernel. */
	stack_is("ret_from_fork_asm ret_from_fork io_wq_worker io_worker_handle_work",
		 STACKSET_KERNEL, WORK_WORKLOAD, NULL);
	stack_is("ret_from_fork call_usermodehelper_exec_async", STACKSET_KERNEL, WORK_WORKLOAD,
		 NULL);
	stack_is("", STACKSET_USER, WORK_WORKLOAD, NULL);
	stack_is("firmware firmware_copy", STACKSET_KERNEL, WORK_BEFORE, NULL);
}

static void test_phases(void **state)
{
	struct phases p = { .boot = true };
	const struct stackset_sample early = { .time_ns = 5 }, late = { .time_ns = 50 };
	const uint8_t of_stack[] = { WORK_WORKLOAD };

	(void)state;
	p.span[PHASE_FIRST] = (struct phase_span){ .seen = true, .from_ns = 0 };
	p.span[PHASE_START_KERNEL] = (struct phase_span){ .seen = true, .from_ns = 10 };
	assert_int_equal(work_of_sample(of_stack, &p, &early), WORK_BEFORE);
	assert_int_equal(work_of_sample(of_stack, &p, &late), WORK_WORKLOAD);
	p.boot = false;
	assert_int_equal(work_of_sample(of_stack, &p, &early), WORK_WORKLOAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_workload),
		cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
