/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's frames on the guest's: what is cut, what is named, and what a damaged sample may do. */
#include "profile/record/host/frame_host.h"
#include "profile/format/sink/sink.h"

#include <linux/kvm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KERNEL UINT64_C(0xffffffff81000000)
#define LONG "a_function_of_the_host_with_a_name_of_fifty_letters"
#define GUEST_IP UINT64_C(0xffffffff82000000)

static const char *exit_name(unsigned int kind)
{
	return kind == KVM_EXIT_X86_RDMSR ? "X86_RDMSR" : "other";
}

static unsigned int told;

static int on_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	(void)s;
	(void)m;
	(void)e;
	told++;
	return 0;
}

static const struct sink_ops ops = { .module = on_module };
static struct sink sink = { .ops = &ops };
static struct host_names names;
static struct frame_host *h;
static struct stack stack;
static struct err err;
static union {
	struct sample s;
	uint8_t room[sizeof(struct sample) + sizeof(struct sample_host)];
} sample;

static int setup(void **state)
{
	static const char *const function[] = { "leaf",		  "vcpu_enter_guest",
						"kvm_vcpu_ioctl", "do_syscall_64",
						"kvm_vcpu_halt",  LONG LONG,
						"ptrace_stop" };

	(void)state;
	told = 0;
	names.kernel = symtab_create();
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(
			symtab_add(names.kernel, KERNEL + 0x100 * i, 0x100, 'T', function[i]), 0);
	assert_int_equal(symtab_freeze(names.kernel, &err), 0);
	assert_int_equal(frame_host_create(&h, &names, NULL, exit_name, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	frame_host_destroy(h);
	host_names_deinit(&names);
	return 0;
}

/* A sample of that, on a guest's stack of one frame. */
static void see(const struct sample_host *what, uint8_t device)
{
	memset(&sample, 0, sizeof(sample));
	sample.s.reason = SAMPLE_HOST;
	sample.s.device = device;
	sample.s.time_ns = 1000;
	sample.s.stack_len = sizeof(*what);
	memcpy(sample.s.stack, what, sizeof(*what));
	memset(&stack, 0, sizeof(stack));
	stack.n = stack.n_kernel = 1;
	stack.ip[0] = GUEST_IP;
	assert_int_equal(frame_host_where(h, &sink, &sample.s, &stack, &err), 0);
	assert_int_equal(frame_host_functions(h, &sink, &sample.s, &stack, &err), 0);
}

static void frame(unsigned int i, const char *name)
{
	const struct symbol *s = frame_host_symbol(h, stack.ip[i], NULL);

	assert_non_null(s);
	assert_string_equal(s->name, name);
	assert_true(frame_host_owns(stack.ip[i]));
}

static void in_kvm(void **state)
{
	(void)state;
	see(&(struct sample_host){ .where = SAMPLE_IN_KVM,
				   .n = 4,
				   .ip = { KERNEL + 8, KERNEL + 0x180, KERNEL + 0x200 + 9,
					   KERNEL + 0x300 + 9 } },
	    0);
	/* Behind KVM_RUN's entry: that and what called it is of every sample. */
	assert_int_equal(stack.n, 4);
	frame(0, "leaf");
	frame(1, "vcpu_enter_guest");
	frame(2, "[kvm]");
	assert_int_equal(stack.ip[3], GUEST_IP);
	assert_true(told > 0);
}

/* A VMM that is not ours: the exit without a device, and a file name in place of its functions. */
static void of_another_vmm(void **state)
{
	const struct sample_host what = {
		.where = SAMPLE_IN_VMM,
		.exit = KVM_EXIT_IO,
		.exit_addr = 0x3ff,
		.n = 4,
		.ip = { KERNEL + 8, 0x401000, 0x402000, 0x700000 },
	};

	(void)state;
	names.file = calloc(1, sizeof(*names.file));
	*names.file = (struct host_file){ .start = 0x400000, .end = 0x500000, .label = "[vmm]" };
	names.nfiles = 1;
	see(&what, 0);
	assert_int_equal(stack.n, 4);
	frame(0, "leaf");
	frame(1, "[vmm]");
	frame(2, "[exit: io port 0x3ff]");
	assert_int_equal(stack.ip[3], GUEST_IP);
}

/* A stop of ours is none of KVM's work. */
static void in_a_stop(void **state)
{
	(void)state;
	see(&(struct sample_host){ .where = SAMPLE_IN_KVM, .n = 1, .ip = { KERNEL + 0x608 } }, 0);
	frame(1, "[stopped]");
}

/* A long name is stored once, however often it occurs. */
static void long_name(void **state)
{
	const struct sample_host what = { .where = SAMPLE_IN_KVM,
					  .n = 1,
					  .ip = { KERNEL + 0x508 } };
	uint64_t first;

	(void)state;
	see(&what, 0);
	first = stack.ip[0];
	see(&what, 0);
	assert_int_equal(stack.ip[0], first);
	assert_int_equal(frame_host_finish(h, &sink, &err), 0);
	assert_memory_equal(frame_host_symbol(h, first, NULL)->name, LONG, strlen(LONG));
}

/* KVM polls before it sleeps: the guest is halted. */
static void polls(void **state)
{
	(void)state;
	see(&(struct sample_host){ .where = SAMPLE_IN_KVM,
				   .n = 2,
				   .ip = { KERNEL + 8, KERNEL + 0x410 } },
	    0);
	frame(stack.n - 2u, "[halted]");
}

static void in_a_device(void **state)
{
	(void)state;
	see(&(struct sample_host){ .where = SAMPLE_IN_VMM,
				   .exit = KVM_EXIT_IO,
				   .exit_addr = 0x3f8 },
	    1);
	assert_int_equal(stack.n, 2);
	frame(0, "[exit: io port 0x3f8]");
	see(&(struct sample_host){ .where = SAMPLE_IN_VMM, .exit = KVM_EXIT_X86_RDMSR }, 1);
	assert_int_equal(frame_host_finish(h, &sink, &err), 0);
	frame(0, "[exit: x86_rdmsr]");
}

static void elsewhere(void **state)
{
	(void)state;
	see(&(struct sample_host){ .where = SAMPLE_IN_GUEST }, 0);
	assert_int_equal(stack.n, 1);
	see(&(struct sample_host){ .where = SAMPLE_RUNNABLE }, 0);
	frame(0, "[runnable]");
	/* Unknown code of the kernel is shown by its address; a program's without a name is left out. */
	see(&(struct sample_host){ .where = SAMPLE_IN_VMM,
				   .n = 2,
				   .ip = { KERNEL + 0x900000, 0x401000 } },
	    0);
	assert_int_equal(frame_host_finish(h, &sink, &err), 0);
	assert_int_equal(stack.n, 3);
	frame(0, "0xffffffff81900000");
	frame(1, "[vmm]");
}

/* More functions than there are addresses: they share the last one. */
static void too_many(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < WHERE_HOSTS + 10; i++)
		see(&(struct sample_host){ .where = SAMPLE_IN_KVM,
					   .n = 1,
					   .ip = { KERNEL + 0x900000 + i * 16u } },
		    0);
	assert_int_equal(frame_host_finish(h, &sink, &err), 0);
	frame(0, "[others]");
}

static void damaged(void **state)
{
	/* The compiler must not know the value: it would warn of the access that the check prevents. */
	volatile uint32_t beyond = 1000000;
	struct sample_host out;

	(void)state;
	see(&(struct sample_host){ .where = SAMPLE_IN_KVM, .n = SAMPLE_MAX_HOST }, 0);
	assert_true(sample_host(&sample.s, &out));
	sample.s.stack_len -= 8; /* its last frame */
	assert_false(sample_host(&sample.s, &out));
	sample.s.exit_addr = beyond;
	assert_false(sample_host(&sample.s, &out));
	see(&(struct sample_host){ .where = SAMPLE_IN_KVM, .n = SAMPLE_MAX_HOST + 1 }, 0);
	assert_int_equal(stack.n, 1);
	see(&(struct sample_host){ .where = SAMPLE_WHERES }, 0);
	assert_int_equal(stack.n, 1);
}

/* A thread that runs no vCPU has a stack of its own: nothing of a guest's. */
static void of_a_thread(void **state)
{
	const struct sample_host what = { .where = SAMPLE_IN_VMM,
					  .n = 2,
					  .ip = { KERNEL + 8, KERNEL + 0x300 + 9 } };

	(void)state;
	memset(&sample, 0, sizeof(sample));
	sample.s.reason = SAMPLE_THREAD;
	sample.s.stack_len = sizeof(what);
	memcpy(sample.s.stack, &what, sizeof(what));
	memset(&stack, 0xff, sizeof(stack));
	assert_int_equal(frame_host_thread(h, &sink, &sample.s, &stack, &err), 0);
	assert_int_equal(stack.n, 3);
	assert_int_equal(stack.n_kernel, 3);
	assert_int_equal(stack.end, STACK_END_ROOT);
	assert_int_equal(stack.user_end, 0);
	frame(0, "leaf");
	frame(1, "do_syscall_64");
	frame(2, "[vmm]");
	/* A vCPU's frames are not for it, nor its for a vCPU's. */
	assert_int_equal(frame_host_where(h, &sink, &sample.s, &stack, &err), 0);
	assert_int_equal(frame_host_functions(h, &sink, &sample.s, &stack, &err), 0);
	assert_int_equal(stack.n, 3);
	/* Damaged: nothing of it is believed. */
	sample.s.exit_addr = sizeof(what) - 4;
	assert_int_equal(frame_host_thread(h, &sink, &sample.s, &stack, &err), 0);
	assert_int_equal(stack.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_kvm, setup, teardown),
		cmocka_unit_test_setup_teardown(of_another_vmm, setup, teardown),
		cmocka_unit_test_setup_teardown(in_a_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(long_name, setup, teardown),
		cmocka_unit_test_setup_teardown(polls, setup, teardown),
		cmocka_unit_test_setup_teardown(in_a_device, setup, teardown),
		cmocka_unit_test_setup_teardown(elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(of_a_thread, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
