/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame that says in which state a task waits, and where its name comes from. */
#include "profile/record/host/frame_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define KERNEL_IP 0xffffffff81000000ull

static struct profile_module module;
static unsigned int told;

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
static struct guest_states g;
static struct stack stack;

static const char *see(uint8_t reason, char state, uint64_t time_ns)
{
	const struct sample s = { .reason = reason, .exit = (uint8_t)state, .time_ns = time_ns };
	const struct symbol *name;
	struct err e = { 0 };

	memset(&stack, 0, sizeof(stack));
	stack.n = stack.n_kernel = 1;
	stack.ip[0] = KERNEL_IP;
	assert_int_equal(guest_state_see(&g, &sink, &s, &stack, &e), 0);
	name = told ? symtab_lookup(module.symbols, stack.ip[0], NULL) : NULL;
	return name ? name->name : "";
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(see(SAMPLE_TIMER, 'S', 500), "");
	assert_int_equal(told, 0);
	assert_string_equal(see(SAMPLE_OFFCPU, 'S', 1000), "[S]");
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.ip[1], KERNEL_IP);
	assert_string_equal(see(SAMPLE_OFFCPU, 'D', 2000), "[D]");
	assert_string_equal(see(SAMPLE_OFFCPU, '?', 3000), "[-]");
	assert_int_equal(told, 1);
	/* Not before what was written already, which perf calls out of order. */
	assert_int_equal(module.time_ns, 1000);
	guest_state_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
