/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame on top of a stack for what the VMM did, or for a task's state. The machine has two devices. */
#include "profile/record/host/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define KERNEL_IP UINT64_C(0xffffffff81000100)
#define USER_IP UINT64_C(0x401000)

static const char *device_name(void *ctx, unsigned int device)
{
	static const char *const name[] = { "serial", "no device" };

	(void)ctx;
	return device < 2 ? name[device] : NULL;
}

static unsigned int told;
static struct profile_module module;

static int take_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	(void)s;
	(void)e;
	told++;
	module = *m;
	return 0;
}

static const struct sink_ops ops = { .module = take_module };
static struct sink sink = { &ops };
static struct frame_names g;
static struct stack stack;

static int setup(void **state)
{
	(void)state;
	g = (struct frame_names){ .devices = { .name = device_name } };
	told = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	frame_names_deinit(&g);
	return 0;
}

static void fill(unsigned int n, unsigned int n_kernel)
{
	memset(&stack, 0, sizeof(stack));
	stack.n = (uint16_t)n;
	stack.n_kernel = (uint16_t)n_kernel;
	stack.end = STACK_END_ROOT;
	for (unsigned int i = 0; i < n; i++) {
		stack.ip[i] = (i < n_kernel ? KERNEL_IP : USER_IP) + i;
		stack.quality[i] = FRAME_FP;
	}
}

static void see(uint8_t device)
{
	const struct sample s = { .device = device };
	struct err e = { 0 };

	assert_int_equal(frame_add_device(&g, &sink, &s, &stack, &e), 0);
}

static const char *name_of(uint64_t ip)
{
	const struct symbol *s = symtab_lookup(module.symbols, ip, NULL);

	return s ? s->name : "";
}

static void above_the_kernel(void **state)
{
	(void)state;
	fill(3, 3);
	see(0);
	assert_int_equal(stack.n, 3);
	assert_int_equal(told, 0);
	see(1);
	assert_int_equal(told, 1);
	assert_string_equal(module.name, "vmm");
	assert_int_equal(stack.n, 4);
	assert_int_equal(stack.n_kernel, 4);
	assert_true(frame_vmm_owns(stack.ip[0]));
	assert_string_equal(name_of(stack.ip[0]), "[vmm] serial");
	assert_int_equal(stack.ip[1], KERNEL_IP);
	assert_int_equal(stack.exact[1], 1); /* a sampled address, no return address */
	assert_int_equal(stack.exact[2], 0);
	assert_int_equal(stack.ip[3], KERNEL_IP + 2);
	assert_int_equal(stack.end, STACK_END_ROOT);
	fill(1, 1);
	see(2);
	assert_int_equal(told, 1);
	assert_string_equal(name_of(stack.ip[0]), "[vmm] no device");
	assert_false(frame_vmm_owns(KERNEL_IP));
	assert_false(frame_vmm_owns(USER_IP));
}

/* A program that does port I/O itself, or whose fault the VMM settles. */
static void above_a_program(void **state)
{
	(void)state;
	fill(2, 0);
	stack.end = STACK_END_BAD_CHAIN;
	see(1);
	assert_int_equal(stack.n, 3);
	assert_int_equal(stack.n_kernel, 1);
	assert_int_equal(stack.end, STACK_END_USER);
	assert_int_equal(stack.user_end, STACK_END_BAD_CHAIN);
	assert_int_equal(stack.ip[1], USER_IP);
}

static void above_a_full_stack(void **state)
{
	(void)state;
	fill(STACK_MAX_FRAMES, STACK_MAX_FRAMES);
	see(1);
	assert_int_equal(stack.n, STACK_MAX_FRAMES);
	assert_int_equal(stack.n_kernel, STACK_MAX_FRAMES);
	assert_int_equal(stack.ip[STACK_MAX_FRAMES - 1], KERNEL_IP + STACK_MAX_FRAMES - 2);
	assert_int_equal(stack.end, STACK_END_DEPTH);
	fill(STACK_MAX_FRAMES, 10);
	see(1);
	assert_int_equal(stack.n_kernel, 11);
	/* what cannot be a device is none */
	fill(2, 2);
	see(SAMPLE_MAX_DEVICES + 1);
	assert_int_equal(stack.n, 2);
}

/* The state in which a task waits. */
static const char *see_state(uint8_t reason, char letter, uint64_t time_ns)
{
	const struct sample s = { .reason = reason, .exit = (uint8_t)letter, .time_ns = time_ns };
	const struct symbol *name;
	struct err e = { 0 };

	fill(1, 1);
	assert_int_equal(frame_add_state(&g, &sink, &s, &stack, &e), 0);
	name = told ? frame_names_at(&g, stack.ip[0], NULL) : NULL;
	return name ? name->name : "";
}

static void names_states(void **state)
{
	(void)state;
	assert_string_equal(see_state(SAMPLE_TIMER, 'S', 500), "");
	assert_int_equal(told, 0);
	assert_string_equal(see_state(SAMPLE_OFFCPU, 'S', 1000), "[S]");
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.ip[1], KERNEL_IP);
	assert_string_equal(see_state(SAMPLE_OFFCPU, 'D', 2000), "[D]");
	assert_string_equal(see_state(SAMPLE_OFFCPU, '?', 3000), "[-]");
	assert_int_equal(told, 1);
	assert_string_equal(module.name, "off-cpu");
	/* Not before what was written already, which perf calls out of order. */
	assert_int_equal(module.time_ns, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(above_the_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(above_a_program, setup, teardown),
		cmocka_unit_test_setup_teardown(above_a_full_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(names_states, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
