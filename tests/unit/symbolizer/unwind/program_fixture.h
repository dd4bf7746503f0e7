/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program's code and a stack, both made by hand, and one sample of it. For one test file each. */
#ifndef KVMPROF_TESTS_UNIT_SYMBOLIZER_UNWIND_PROGRAM_FIXTURE_H
#define KVMPROF_TESTS_UNIT_SYMBOLIZER_UNWIND_PROGRAM_FIXTURE_H

#include "symbolizer/unwind/unwind.h"
#include "no_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CODE UINT64_C(0x7f0000400000)
#define STACK UINT64_C(0x7ffc00001000)
#define WORDS 64u
#define SPACE UINT64_C(0xc43000)
#define USER_CS 0x33
#define PLACES 8u
/* Each place is a function of its own; this is where a call in it returns to. */
#define AT(place) (CODE + (place)*256 + 64)

static uint8_t code[PLACES * 256];
static union {
	struct sample s;
	uint8_t room[sizeof(struct sample) + WORDS * 8];
} buf;
static struct stack got;

static size_t read_code(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (space != SPACE || va < CODE || va - CODE >= sizeof(code))
		return 0;
	if (len > sizeof(code) - (va - CODE))
		len = sizeof(code) - (va - CODE);
	memcpy(dst, code + (va - CODE), len);
	return len;
}

static void put(unsigned int place, const char *bytes, size_t n)
{
	memcpy(code + place * 256 + 64, bytes, n);
}

#define PUT(place, bytes) put(place, bytes, sizeof(bytes) - 1)

/* call *%rax, and then these bytes */
static void put_call(unsigned int place, const char *bytes, size_t n)
{
	memcpy(code + place * 256 + 62, "\xff\xd0", 2);
	put(place, bytes, n);
}

#define PUT_CALL(place, bytes) put_call(place, bytes, sizeof(bytes) - 1)

/* rsp: the first of WORDS words. */
static void run(const struct unwind_cfi *cfi, const uint64_t *words, uint64_t rip, uint64_t rbp)
{
	const struct unwinder u = {
		.read_text = no_text,
		.programs = { read_code, NULL },
		.cfi = cfi ? *cfi : (struct unwind_cfi){ .find = NULL },
	};
	struct sample *s = &buf.s;

	memset(&buf, 0, sizeof(buf));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_USER;
	s->regs.cs = USER_CS;
	s->regs.cr3 = SPACE;
	s->regs.rip = rip;
	s->regs.gpr[GPR_RSP] = STACK;
	s->regs.gpr[GPR_RBP] = rbp;
	memcpy(s->stack, words, WORDS * 8);
	s->nslices = 1;
	s->slice[0] = (struct sample_slice){ .va = STACK, .len = WORDS * 8 };
	s->stack_len = WORDS * 8;
	unwind(&u, s, &got);
}

/* The first n frames of these, and no more. */
static void expect_frames(const uint64_t *ip, unsigned int n)
{
	assert_int_equal(got.n, n);
	assert_memory_equal(got.ip, ip, n * sizeof(*ip));
}

#endif
