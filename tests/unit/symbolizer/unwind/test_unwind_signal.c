/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a signal's handler to what it has interrupted, where no table tells the way: by the code that
 * asks the kernel to return, as in musl, and from what Go calls a function without a caller.
 */
#include "program_fixture.h"

enum place { HANDLER, RETURN, INTERRUPTED, CALLER, START };

/* Words of the stack: the handler's frame, the kernel's (struct rt_sigframe), the program's. */
enum {
	HANDLER_RBP,
	HANDLER_RET,
	CONTEXT,
	SAVED_RBP = CONTEXT + 5 + 10,
	SAVED_RSP = CONTEXT + 5 + 15,
	SAVED_RIP,
	PROGRAM_SP = 50, /* a saved rbp */
	PROGRAM_RET,
	CALLER_RET = PROGRAM_RET + 3,
};

#define LONG_FORM "\x48\xc7\xc0\x0f\0\0\0\x0f\x05" /* mov $15, %rax; syscall */
#define SHORT_FORM "\xb8\x0f\0\0\0\x0f\x05"

static const uint64_t whole[] = { AT(HANDLER), AT(RETURN), AT(INTERRUPTED), AT(CALLER), AT(START) };
static uint64_t words[WORDS];

static int fill(void **state)
{
	(void)state;
	memset(code, 0xcc, sizeof(code));
	PUT(HANDLER, "\xc9\xc3"); /* leave; ret */
	PUT(RETURN, LONG_FORM);
	PUT(INTERRUPTED, "\x5d\xc3");		  /* pop %rbp; ret */
	PUT_CALL(CALLER, "\x48\x83\xc4\x10\xc3"); /* add $16, %rsp; ret */
	PUT_CALL(START, "\xf4");
	memset(words, 0, sizeof(words));
	words[HANDLER_RBP] = 54321;
	words[HANDLER_RET] = AT(RETURN);
	words[CONTEXT] = 7; /* uc_flags */
	words[SAVED_RBP] = 777;
	words[SAVED_RSP] = STACK + 8 * PROGRAM_SP;
	words[SAVED_RIP] = AT(INTERRUPTED);
	words[PROGRAM_RET] = AT(CALLER);
	words[CALLER_RET] = AT(START);
	return 0;
}

static void expect_whole(unsigned int from)
{
	expect_frames(whole + from, 5 - from);
	/* Each of them is looked up as it is: no call precedes it. */
	for (unsigned int i = 0; i <= INTERRUPTED - from; i++)
		assert_true(got.exact[i]);
	assert_false(got.exact[CALLER - from]);
}

static void by_its_code(void **state)
{
	(void)state;
	run(NULL, words, AT(HANDLER), STACK + 8 * HANDLER_RBP);
	expect_whole(HANDLER);
	PUT(RETURN, SHORT_FORM);
	run(NULL, words, AT(HANDLER), STACK + 8 * HANDLER_RBP);
	expect_whole(HANDLER);
}

/* At its first instruction, at its system call, in the kernel. */
static void sampled_there(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} form[] = { { LONG_FORM, sizeof(LONG_FORM) - 1 }, { SHORT_FORM, sizeof(SHORT_FORM) - 1 } };

	(void)state;
	memmove(words, words + CONTEXT, (WORDS - CONTEXT) * sizeof(*words));
	words[SAVED_RSP - CONTEXT] -= 8 * CONTEXT;
	for (unsigned int i = 0; i < 2; i++) {
		const size_t at[] = { 0, form[i].len - 2, form[i].len };

		put(RETURN, form[i].bytes, form[i].len);
		for (unsigned int k = 0; k < 3; k++) {
			run(NULL, words, AT(RETURN) + at[k], 1);
			assert_int_equal(got.ip[0], AT(RETURN) + at[k]);
			got.ip[0] = AT(RETURN);
			expect_whole(RETURN);
		}
	}
}

static void expect_end(unsigned int frames, enum stack_end end)
{
	run(NULL, words, AT(HANDLER), STACK + 8 * HANDLER_RBP);
	expect_frames(whole, frames);
	assert_int_equal(got.user_end, end);
}

/* Nothing is guessed where one of these is not as it is there. */
static void contradictions_end_it(void **state)
{
	(void)state;
	PUT(RETURN, "\x48\xc7\xc0\x0e\0\0\0\x0f\x05"); /* system call 14 */
	expect_end(1, STACK_END_BAD_CHAIN);
	fill(NULL);
	words[SAVED_RIP] = 0;
	expect_end(2, STACK_END_BAD_CHAIN);
	words[SAVED_RIP] = UINT64_C(1) << 63;
	expect_end(2, STACK_END_BAD_CHAIN);
	fill(NULL);
	words[SAVED_RSP] = STACK + 16; /* below what was used: it would go round for ever */
	expect_end(2, STACK_END_BAD_CHAIN);
}

static void cut_in_the_kernels_frame(void **state)
{
	(void)state;
	memmove(words + WORDS - 10, words, 10 * sizeof(*words));
	words[WORDS - 10 + HANDLER_RBP] = 54321;
	run(NULL, words, AT(HANDLER), STACK + 8 * (WORDS - 10));
	expect_frames(whole, 2);
	assert_int_equal(got.user_end, STACK_END_CUT);
}

/* -- what Go says of a function ------------------------------------------------------------ */

static struct cfi_row ends; /* row of the handler, which has no caller */

static bool find(void *ctx, uint64_t va, struct unwind_place *out)
{
	static uint8_t call[PLACES];
	unsigned int place = (unsigned int)((va - CODE) / 256);

	(void)ctx;
	if (va < CODE || place >= PLACES)
		return false;
	call[place] = CFI_CALL_UNKNOWN;
	*out = (struct unwind_place){ .row = place == HANDLER ? &ends : NULL,
				      .call = &call[place] };
	return true;
}

static void run_go(int32_t cfa, uint64_t rip)
{
	const struct unwind_cfi cfi = { .find = find };

	memset(&ends, 0, sizeof(ends));
	ends.cfa_reg = CFI_RSP;
	ends.cfa = cfa;
	ends.rule[CFI_RIP].how = CFI_UNDEFINED;
	cfi_row_classify(&ends);
	run(&cfi, words, rip, 1);
}

static void expect_root(void)
{
	run_go(8 * (HANDLER_RET + 1), AT(HANDLER) + 20);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.user_end, STACK_END_ROOT);
}

static void from_a_function_without_a_caller(void **state)
{
	(void)state;
	run_go(8 * (HANDLER_RET + 1), AT(HANDLER));
	expect_whole(HANDLER);
	words[HANDLER_RET] = AT(CALLER);
	expect_root();
}

/* call, directly, of what is at this address, before AT(CALLER) */
static void put_direct(uint64_t target)
{
	int32_t rel = (int32_t)(target - AT(CALLER));

	code[CALLER * 256 + 59] = 0xe8;
	memcpy(code + CALLER * 256 + 60, &rel, sizeof(rel));
}

/* One that changes stacks still has its caller, if that has called it, and nothing else. */
static void before_it_changes_stacks(void **state)
{
	(void)state;
	memset(code + 64, 0x90, 64);
	put_direct(AT(HANDLER));
	words[HANDLER_RET] = AT(CALLER);
	words[HANDLER_RET + 3] = AT(START);
	for (unsigned int at = 0; at <= 20; at += 20) {
		const uint64_t called[] = { AT(HANDLER) + at, AT(CALLER), AT(START) };

		run_go(8 * (HANDLER_RET + 1), called[0]);
		expect_frames(called, 3);
	}
	/* In a caller nothing is known of where its call has left the stack. */
	memcpy(code + 64 + 18, "\xff\xd0", 2); /* call *%rax, which has returned here */
	words[HANDLER_RBP] = AT(HANDLER) + 20;
	PUT(INTERRUPTED, "\xc3"); /* ret */
	run_go(16, AT(INTERRUPTED));
	assert_int_equal(got.n, 2);
	assert_int_equal(got.user_end, STACK_END_ROOT);
	put_direct(AT(START));
	expect_root();
	put_direct(AT(HANDLER) + 24); /* behind it */
	expect_root();
	put_direct(AT(HANDLER));
	memset(code + 64 + 10, 0xcc, 2); /* another function's */
	expect_root();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_its_code, fill),
		cmocka_unit_test_setup(sampled_there, fill),
		cmocka_unit_test_setup(contradictions_end_it, fill),
		cmocka_unit_test_setup(cut_in_the_kernels_frame, fill),
		cmocka_unit_test_setup(from_a_function_without_a_caller, fill),
		cmocka_unit_test_setup(before_it_changes_stacks, fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
