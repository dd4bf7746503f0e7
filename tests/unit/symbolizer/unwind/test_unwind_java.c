/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of HotSpot's interpreter: code and a stack made by hand. A compiled method returns to
 * where the interpreter goes on, which no call precedes; the interpreter's caller has its rsp where
 * the frame says, above the locals.
 */
#include "program_fixture.h"

enum place { METHOD, INTERPRETER, CALLER, START };

#define DISPATCH "\x41\xff\x24\xda" /* jmp *(%r10,%rbx,8) */
#define RETURN_17 "\x48\x8b\x65\xf0\x48\xc7\x45\xf0\0\0\0\0" DISPATCH
#define RETURN_25 "\x48\x8b\x4d\xf0\x48\x8d\x64\xcd\x00\x48\xc7\x45\xf0\0\0\0\0" DISPATCH

/* Words of the stack, from its bottom on. */
enum {
	METHOD_RBP,
	METHOD_RET,
	LAST_SP = 4,
	SENDER,
	JAVA_RBP,
	JAVA_RET,
	LOCALS,
	CALLER_SP = LOCALS + 3, /* stack pointer of the caller, which keeps two words and returns */
	CALLER_RET = CALLER_SP + 2,
};

static void fill(uint64_t *words)
{
	memset(code, 0x90, sizeof(code));
	/* As C2 compiles it: rbp is saved, and used for anything. pop %rbp; ret */
	PUT(METHOD, "\x5d\xc3");
	PUT_CALL(CALLER, "\x48\x83\xc4\x10\xc3"); /* add $16, %rsp; ret */
	PUT_CALL(START, "\xf4");
	memset(words, 0, WORDS * 8);
	words[METHOD_RBP] = STACK + 8 * JAVA_RBP;
	words[METHOD_RET] = AT(INTERPRETER);
	words[LAST_SP] = STACK + 16;
	words[SENDER] = STACK + 8 * CALLER_SP;
	words[JAVA_RBP] = 777;
	words[JAVA_RET] = AT(CALLER);
	words[CALLER_RET] = AT(START);
}

static void expect(const uint64_t *words, unsigned int frames)
{
	static const uint64_t ip[] = { AT(METHOD), AT(INTERPRETER), AT(CALLER), AT(START) };

	run(NULL, words, AT(METHOD), 12345);
	expect_frames(ip, frames);
}

static void leads_through_the_interpreter(void **state)
{
	uint64_t words[WORDS];

	(void)state;
	fill(words);
	PUT(INTERPRETER, RETURN_17);
	expect(words, 4);
	PUT(INTERPRETER, RETURN_25);
	words[LAST_SP] = (uint64_t)-9;
	expect(words, 4);
}

/* Nothing is guessed where one of these is not as it is there. */
static void contradictions_end_it(void **state)
{
	static const char almost[] = "\x48\x8b\x65\xf0\x48\xc7\x45\xf8\0\0\0\0";
	uint64_t words[WORDS];

	(void)state;
	fill(words);
	PUT(INTERPRETER, almost);
	expect(words, 1);
	PUT(INTERPRETER, RETURN_17);
	words[LAST_SP] = 0;
	expect(words, 2);
	words[LAST_SP] = STACK + 16;
	words[SENDER] = STACK;
	expect(words, 2);
	words[SENDER] = STACK + 8 * CALLER_SP + 4;
	expect(words, 2);
	words[SENDER] = STACK + (1u << 20);
	expect(words, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leads_through_the_interpreter),
		cmocka_unit_test(contradictions_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
