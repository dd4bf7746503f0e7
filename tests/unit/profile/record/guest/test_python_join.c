/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of Python among those of C: where they belong, and when they are left out. */
#include "profile/record/guest/python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PY(n) (UINT64_C(0x0100000000000000) + (n))

/* A system call below it; frames at 0x1000, 0x1100, ... */
static struct stack native(unsigned int n, enum stack_end end)
{
	struct stack st = {
		.n_kernel = 1, .n = 1, .end = STACK_END_USER, .user_end = (uint8_t)end
	};

	st.ip[0] = UINT64_C(0xffffffff81000000);
	for (unsigned int i = 0; i < n; i++, st.n++) {
		st.ip[st.n] = 0x400 + i;
		st.sp[st.n] = 0x1000 + 0x100 * i;
		st.quality[st.n] = FRAME_CFI;
	}
	return st;
}

static enum python_joined join(struct stack *st, const uint64_t *entry, unsigned int n)
{
	struct sample_python f[SAMPLE_MAX_PYTHON] = { 0 };
	uint64_t ip[SAMPLE_MAX_PYTHON];

	for (unsigned int i = 0; i < n; i++) {
		f[i].entry = entry[i];
		ip[i] = PY(i);
	}
	return guest_python_join(st, &(struct python_frames){ f, ip, n, PY(99) });
}

static void is(const struct stack *st, const uint64_t *ip, unsigned int n)
{
	assert_int_equal(st->n, n + 1);
	for (unsigned int i = 0; i < n; i++)
		assert_true(st->ip[i + 1] == ip[i]);
}

static void in_turn(void **state)
{
	/* Two calls of the interpreter, at 0x1100 and 0x1300. */
	static const uint64_t entry[] = { 0, 0x1140, 0, 0, 0x1380 };
	static const uint64_t want[] = { 0x400, PY(0), PY(1), 0x401, 0x402,
					 PY(2), PY(3), PY(4), 0x403, 0x404 };
	struct stack st = native(5, STACK_END_ROOT);

	(void)state;
	assert_int_equal(join(&st, entry, 5), PYTHON_JOINED);
	is(&st, want, 10);
	assert_int_equal(st.n_kernel, 1);
	assert_int_equal(st.exact[2], 1);
	assert_int_equal(st.exact[1], 0);
	assert_true(st.sp[10] == 0x1400);
}

static void innermost(void **state)
{
	static const uint64_t entry[] = { 0x1008 };
	static const uint64_t want[] = { PY(0), 0x400, 0x401 };
	struct stack st = native(2, STACK_END_ROOT);

	(void)state;
	assert_int_equal(join(&st, entry, 1), PYTHON_JOINED);
	is(&st, want, 3);
}

static void beyond_what_was_copied(void **state)
{
	static const uint64_t entry[] = { 0x1048, 0, 0x7000 };
	static const uint64_t want[] = { PY(0), 0x400, 0x401, PY(1), PY(2) };
	struct stack st = native(2, STACK_END_CUT);

	(void)state;
	assert_int_equal(join(&st, entry, 3), PYTHON_JOINED);
	is(&st, want, 5);
	/* Nothing is called where the native stack is whole. */
	st = native(2, STACK_END_ROOT);
	assert_int_equal(join(&st, entry, 3), PYTHON_UNTIED);
	assert_int_equal(st.n, 3);
}

static void some_are_missing(void **state)
{
	static const uint64_t entry[] = { 0, 0x1048 | SAMPLE_PYTHON_SKIPPED };
	static const uint64_t want[] = { PY(0), PY(1), PY(99), 0x400, 0x401 };
	struct stack st = native(2, STACK_END_ROOT);

	(void)state;
	assert_int_equal(join(&st, entry, 2), PYTHON_JOINED);
	is(&st, want, 5);
}

static void contradictions(void **state)
{
	static const uint64_t below[] = { 0xff8 }, order[] = { 0x1140, 0x1040 },
			      left[] = { 0x1048, 0 };
	struct stack st = native(3, STACK_END_ROOT), was = st;

	(void)state;
	assert_int_equal(join(&st, below, 1), PYTHON_UNTIED);
	assert_int_equal(join(&st, order, 2), PYTHON_UNTIED);
	assert_int_equal(join(&st, left, 2), PYTHON_UNTIED);
	assert_int_equal(join(&st, left, 0), PYTHON_UNTIED);
	assert_memory_equal(&st, &was, sizeof(st));
	st.n = st.n_kernel; /* no frame of the program is known */
	assert_int_equal(join(&st, left, 1), PYTHON_UNTIED);
}

static void too_many(void **state)
{
	uint64_t entry[SAMPLE_MAX_PYTHON] = { 0 };
	struct stack st = native(200, STACK_END_ROOT);

	(void)state;
	entry[SAMPLE_MAX_PYTHON - 1] = 0x1008;
	assert_int_equal(join(&st, entry, SAMPLE_MAX_PYTHON), PYTHON_JOINED);
	assert_int_equal(st.n, STACK_MAX_FRAMES);
	assert_int_equal(st.user_end, STACK_END_DEPTH);
	assert_int_equal(st.end, STACK_END_USER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),
		cmocka_unit_test(innermost),
		cmocka_unit_test(beyond_what_was_copied),
		cmocka_unit_test(some_are_missing),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
