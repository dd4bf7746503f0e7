/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a program's stack ends, and whether it counts as whole: code and a stack made by
 * hand. Each function's code is at a place of its own.
 */
#include "symbolizer/unwind/unwind.h"
#include "no_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CODE (base + UINT64_C(0x400000))
#define STACK (base + UINT64_C(0x7ffc00001000))
#define WORDS 256u
#define SPACE UINT64_C(0xc43000)
#define USER_CS 0x33

enum place { LEAF, FRAMED, BARE, START, MIDDLE, LEFTOVER, STUB, PLACES };

static uint64_t base; /* all of it lies so far up */
static uint8_t code[PLACES * 256];
static uint64_t words[WORDS];
static unsigned int used;
static struct stack got;
static union {
	struct sample s;
	uint8_t room[sizeof(struct sample) + sizeof(words)];
} buf;

static size_t read_code(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (space == SPACE && va >= STACK && va - STACK < sizeof(words) &&
	    len <= sizeof(words) - (va - STACK)) {
		memcpy(dst, (const uint8_t *)words + (va - STACK), len);
		return len;
	}
	if (space != SPACE || va < CODE || va - CODE >= sizeof(code))
		return 0;
	if (len > sizeof(code) - (va - CODE))
		len = sizeof(code) - (va - CODE);
	memcpy(dst, code + (va - CODE), len);
	return len;
}

/* The code of a place, and what follows its call: the return address. */
static uint64_t put(enum place at, const char *before, size_t nbefore, const char *after,
		    size_t nafter)
{
	uint8_t *p = code + at * 256 + 64;

	memcpy(p - nbefore, before, nbefore);
	memcpy(p, after, nafter);
	return CODE + at * 256 + 64;
}

#define PUT(at, before, after) put(at, before, sizeof(before) - 1, after, sizeof(after) - 1)
#define CALL "\xe8\x00\x01\x00\x00" /* to somewhere in the code */
#define CALL_RAX "\xff\xd0"

static int setup(void **state)
{
	(void)state;
	memset(code, 0x90, sizeof(code));
	memset(words, 0, sizeof(words));
	used = 0;
	/* A leaf that keeps a frame: it stands before leave; ret. */
	PUT(LEAF, "", "\x90\xc9\xc3");
	return 0;
}

static uint64_t push(uint64_t word)
{
	assert_true(used < WORDS);
	words[used] = word;
	return STACK + 8 * used++;
}

/* The leaf's frame at the bottom: its caller's rbp and where it returns to. */
static void leaf(uint64_t rbp, uint64_t ret)
{
	push(rbp);
	push(ret);
}

static void run(void)
{
	const struct unwinder u = { .read_text = no_text, .programs = { read_code, NULL } };
	struct sample *s = &buf.s;

	memset(&buf, 0, sizeof(buf));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_USER;
	s->regs.cs = USER_CS;
	s->regs.cr3 = SPACE;
	s->regs.rip = CODE + LEAF * 256 + 64;
	s->regs.gpr[GPR_RSP] = s->regs.gpr[GPR_RBP] = STACK;
	memcpy(s->stack, words, sizeof(words));
	s->nslices = 1;
	s->slice[0] = (struct sample_slice){ .va = STACK, .len = sizeof(words) };
	s->stack_len = sizeof(words);
	unwind(&u, s, &got);
}

static void expect(enum stack_end end, unsigned int frames)
{
	run();
	if (got.user_end != end || got.n != frames)
		fail_msg("%u frames, %s; expected %u, %s", got.n, stack_end_name(got.user_end),
			 frames, stack_end_name(end));
}

/* -- rbp is 0 ------------------------------------------------------------------------ */

/* A loop without frame pointers, which has another use for rbp. */
static void zero_in_a_register(void **state)
{
	(void)state;
	leaf(0, PUT(BARE, "\x31\xed" CALL, "\xff\xc5\xeb\xf5"));
	expect(STACK_END_BAD_CHAIN, 2);
}

/* It calls more, and perhaps it never returns. */
static void zero_before_calls(void **state)
{
	(void)state;
	leaf(0, PUT(BARE, "\x31\xed" CALL, CALL "\x0f\x0b"));
	expect(STACK_END_BAD_CHAIN, 2);
}

/* Stack contents are no code, although the bytes before the address are those of a call. */
static void stack_for_code(void **state)
{
	(void)state;
	leaf(STACK + 32, STACK + 64);
	while (used < 7)
		push(0);
	push(UINT64_C(0xd0ff) << 48); /* call *%rax */
	expect(STACK_END_BAD_CHAIN, 1);
}

/* Code that says how its frame is left has an address in rbp. */
static void zero_with_a_frame(void **state)
{
	(void)state;
	leaf(0, PUT(FRAMED, CALL, "\x90\xc9\xc3"));
	expect(STACK_END_BAD_CHAIN, 2);
}

/* While execve() replaces a program its stack is gone already: nothing contradicts anything. */
static void nothing_copied(void **state)
{
	const struct unwinder u = { .read_text = no_text, .programs = { read_code, NULL } };

	(void)state;
	leaf(0, PUT(FRAMED, CALL, "\x90\xc9\xc3"));
	run();
	buf.s.regs.rip = CODE + PLACES * 256; /* its text is gone, too */
	buf.s.slice[0].va += UINT64_C(1) << 40;
	unwind(&u, &buf.s, &got);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.user_end, STACK_END_CUT);
}

/* -- a return to 0 --------------------------------------------------------------------- */

/* A frame that is proven: made by hand, as a thread's first is. */
static void frame_that_returns_to_0(void **state)
{
	(void)state;
	leaf(STACK + 32, PUT(FRAMED, CALL, "\x90\xc9\xc3"));
	push(1);
	push(1);
	push(0);
	push(0);
	expect(STACK_END_ROOT, 2);
}

static void other_zeros(void **state)
{
	(void)state;
	/* ret, with nothing but zeros above: rbp is a number. */
	leaf(0, PUT(BARE, CALL, "\x48\x83\xc4\x10\xc3"));
	expect(STACK_END_BAD_CHAIN, 2);
}

/* -- where programs and threads begin ---------------------------------------------------- */

static void start_of_glibc(void **state)
{
	(void)state;
	leaf(0, PUT(START, CALL, "\xf4"));
	expect(STACK_END_ROOT, 2);
	/* rbp is not what it depends on: a frame in between may not have told of it. */
	setup(NULL);
	leaf(STACK + 64, PUT(START, CALL, "\xf4"));
	expect(STACK_END_ROOT, 2);
	setup(NULL);
	leaf(0, PUT(START, CALL, "\x89\xc7" CALL "\xf4"));
	expect(STACK_END_ROOT, 2);
	/* Some other call before hlt is not the exit with the result. */
	setup(NULL);
	leaf(0, PUT(BARE, CALL, "\x31\xff" CALL "\xf4"));
	expect(STACK_END_BAD_CHAIN, 2);
}

/*
 * jne over a call; what is behind that up to the next multiple of 16; there the rest. The jump
 * leads 32 bytes behind the return address, to add $8,%rsp; ret.
 */
static uint64_t put_call_and(const char *fill, const char *next, size_t len)
{
	uint64_t ret = PUT(BARE, CALL, "\x75\x1e" CALL);
	uint8_t *p = code + BARE * 256 + 64;

	memcpy(p + 7, fill, 9);
	memset(p + 16, 0x90, 16);
	memcpy(p + 16, next, len);
	memcpy(p + 32, "\x48\x83\xc4\x08\xc3", 5);
	return ret;
}

/* Behind a call that does not return another function starts, which says nothing of this one. */
static void calls_that_do_not_return(void **state)
{
	static const struct {
		const char *fill, *next;
		size_t len;
		bool start;
	} kind[] = {
		{ "\x66\x0f\x1f\x84\0\0\0\0\0", "\x55\x48\x89\xe5\xc3", 5, true },
		{ "\x66\x0f\x1f\x84\0\0\0\0\0", "\x48\x83\xec\x28\x0f\x0b", 6, true },
		{ "\x90\x90\x90\x90\x90\x90\x90\x90\x90", "\xf3\x0f\x1e\xfa\xc3", 5, true },
		/* a loop is no function, nor is what follows at once */
		{ "\x66\x0f\x1f\x84\0\0\0\0\0", "\xff\xc0\xc3", 3, false },
		{ "\xff\xc0\xff\xc0\xff\xc0\xff\xc0\x90", "\x50\x58\xc3", 3, false },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		uint64_t other = PUT(LEFTOVER, CALL, "\xf4"), start;

		setup(NULL);
		start = PUT(START, CALL, "\xf4");
		PUT(LEFTOVER, CALL, "\xf4");
		leaf(0, put_call_and(kind[i].fill, kind[i].next, kind[i].len));
		push(other);
		push(start);
		expect(STACK_END_ROOT, 3);
		assert_int_equal(got.ip[2], kind[i].start ? start : other);
	}
}

/* With five-level paging a program may ask for memory up there. */
static void beyond_47_bits(void **state)
{
	base = UINT64_C(0x00f0000000000000);
	frame_that_returns_to_0(state);
	setup(state);
	start_of_glibc(state);
	base = 0;
}

static void start_of_threads(void **state)
{
	(void)state;
	leaf(0, PUT(START, CALL_RAX, "\x48\x89\xc7\xb8\x3c\x00\x00\x00\x0f\x05"));
	expect(STACK_END_ROOT, 2);
	setup(NULL);
	leaf(0, PUT(START, CALL, "\x89\xc7\xb8\xe7\x00\x00\x00\x0f\x05"));
	expect(STACK_END_ROOT, 2);
	/* It ends the program, but not with what was returned: anybody may do that. */
	setup(NULL);
	leaf(0, PUT(BARE, CALL, "\xbf\x01\x00\x00\x00\xb8\xe7\x00\x00\x00\x0f\x05"));
	expect(STACK_END_BAD_CHAIN, 2);
	/* Another system call, with the result. */
	setup(NULL);
	leaf(0, PUT(BARE, CALL, "\x89\xc7\xb8\x03\x00\x00\x00\x0f\x05"));
	expect(STACK_END_BAD_CHAIN, 2);
}

static void start_of_musl(void **state)
{
	(void)state;
	leaf(0, PUT(START, "\x48\x31\xed\x48\x89\xe7\x48\x83\xe4\xf0" CALL, "\x55"));
	expect(STACK_END_ROOT, 2);
	/* A function that aligns its stack keeps rbp for it. */
	setup(NULL);
	leaf(STACK + 64, PUT(BARE, "\x48\x89\xe5\x48\x83\xe4\xf0" CALL, "\x55"));
	run();
	assert_int_not_equal(got.user_end, STACK_END_ROOT);
}

static void start_of_the_linker(void **state)
{
	uint64_t ret;

	(void)state;
	ret = PUT(START, "\x48\x89\xe7" CALL, "\x49\x89\xc4\x41\xff\xe4");
	leaf(0, ret);
	push(2);
	push(STACK + 800);
	push(STACK + 810);
	push(0);
	expect(STACK_END_ROOT, 2);
	/* Some structure lies at rsp. */
	words[4] = words[5] = words[6] = 77;
	expect(STACK_END_BAD_CHAIN, 2);
}

/* -- close below them ------------------------------------------------------------------ */

/* As __libc_start_call_main(): it hands on the result and never returns. */
static uint64_t put_calls_main(void)
{
	return PUT(BARE, CALL_RAX, "\x89\xc7" CALL CALL "\xeb\xf4");
}

static void pad(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		push(i % 3 ? STACK + i : i);
}

/* As __libc_start_main(): it calls the one that calls main(), by its address. */
static uint64_t put_direct(enum place at, enum place callee)
{
	uint8_t call[5] = { 0xe8 };
	int32_t distance = ((int)callee - (int)at) * 256 - 64;

	memcpy(call + 1, &distance, 4);
	return put(at, (const char *)call, sizeof(call), "\x90\xeb\xfd", 3);
}

static void below_the_start(void **state)
{
	uint64_t start = PUT(START, CALL_RAX, "\xf4"), middle = put_direct(MIDDLE, BARE);

	(void)state;
	leaf(1, put_calls_main());
	pad(19);
	push(middle);
	pad(9);
	push(start);
	expect(STACK_END_START, 2);
	/* A function more. */
	setup(NULL);
	PUT(START, CALL_RAX, "\xf4");
	middle = PUT(MIDDLE, CALL_RAX, "\x90\xeb\xfd");
	leaf(1, put_calls_main());
	pad(5);
	push(middle);
	pad(5);
	push(middle);
	pad(9);
	push(start);
	expect(STACK_END_BAD_CHAIN, 2);
	/* Too far above to be sure. */
	setup(NULL);
	PUT(START, CALL_RAX, "\xf4");
	leaf(1, put_calls_main());
	pad(64);
	push(start);
	expect(STACK_END_BAD_CHAIN, 2);
}

/* Unused words of the C library's frame keep return addresses of what ran there before main(). */
static void below_the_start_and_leftovers(void **state)
{
	uint64_t start = PUT(START, CALL_RAX, "\xf4"), middle = put_direct(MIDDLE, BARE),
		 leftover = put_direct(LEFTOVER, LEFTOVER);

	(void)state;
	leaf(1, put_calls_main());
	pad(3);
	push(leftover);
	push(leftover);
	pad(9);
	push(middle);
	push(leftover);
	pad(5);
	push(start);
	expect(STACK_END_START, 2);
}

/* A linkage table's stub for a function. */
static void put_stub(uint64_t function)
{
	static const uint8_t jump[6] = { 0xff, 0x25, 128 - 6 };

	memcpy(code + STUB * 256, jump, sizeof(jump));
	memcpy(code + STUB * 256 + 128, &function, sizeof(function));
}

static void expect_through_stub(uint64_t function, enum stack_end end)
{
	uint64_t start, middle, other;

	setup(NULL);
	start = PUT(START, CALL_RAX, "\xf4");
	middle = PUT(MIDDLE, CALL_RAX, "\x90\xeb\xfd");
	other = put_direct(LEFTOVER, STUB);
	put_stub(function);
	leaf(1, put_calls_main());
	push(other);
	push(middle);
	pad(9);
	push(start);
	expect(end, 2);
}

/* A function of the program called one of a library: two functions are missing, not one. */
static void called_through_a_stub(void **state)
{
	(void)state;
	expect_through_stub(CODE + BARE * 256, STACK_END_BAD_CHAIN);
	/* It led to another function: the call is over. */
	expect_through_stub(CODE + MIDDLE * 256, STACK_END_START);
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_copied),	  T(zero_in_a_register), T(zero_before_calls),
		T(stack_for_code),	  T(zero_with_a_frame),	 T(frame_that_returns_to_0),
		T(other_zeros),		  T(start_of_glibc),	 T(calls_that_do_not_return),
		T(beyond_47_bits),	  T(start_of_threads),	 T(start_of_musl),
		T(start_of_the_linker),	  T(below_the_start),	 T(below_the_start_and_leftovers),
		T(called_through_a_stub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
