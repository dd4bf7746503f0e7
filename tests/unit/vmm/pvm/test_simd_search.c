/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Searches encodings of a guest that make kvmprof run something with other effects than it
 * states: each order of at most three prefixes, each opcode of the maps, each ModRM. What is
 * assembled runs on this machine's CPU under simd_judge. Alone it takes a sample of ModRM bytes;
 * with KVMPROF_SIMD_SEARCH=all in the environment it takes all of them (tests/run.py --slow).
 */
#include "tests/unit/simd_judge.h"

#include "tests/unit/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SEEN_BITS 22u

static struct {
	unsigned long tried, accepted, executed, unknown, differences;
} count;

static uint64_t search_seed = 0x5eed, random_state = 0x1234567;

/* Assembled forms that were judged: many encodings of a guest become one. */
static struct seen {
	uint8_t code[SIMD_FORM_MAX];
	uint8_t len; /* 0: free */
} * seen;

static bool is_new(const struct simd_form *f)
{
	uint64_t h = 1469598103934665603u;
	struct seen *s;

	for (unsigned int i = 0; i < f->len; i++)
		h = (h ^ f->code[i]) * 1099511628211u;
	s = &seen[h >> (64 - SEEN_BITS)];
	if (s->len == f->len && memcmp(s->code, f->code, f->len) == 0)
		return false;
	s->len = (uint8_t)f->len;
	memcpy(s->code, f->code, f->len);
	return true;
}

static void report(const uint8_t *bytes, unsigned int n, const struct simd_form *f,
		   unsigned int bits)
{
	if (count.differences++ >= 20)
		return;
	printf("difference 0x%x:", bits);
	for (unsigned int i = 0; i < n; i++)
		printf(" %02x", bytes[i]);
	printf(" runs as");
	for (unsigned int i = 0; i < f->len; i++)
		printf(" %02x", f->code[i]);
	printf("\n");
}

/* Completes the instruction with random bytes, so that SIB, displacement and immediate vary. */
static void search_one(uint8_t *bytes, unsigned int n)
{
	struct simd_permit permit;
	struct simd_form f;
	unsigned int bits;
	uint64_t tail[2] = { judge_random(&random_state), random_state };

	count.tried++;
	memcpy(bytes + n, tail, SIMD_FORM_MAX - n);
	if (simd_form_parse(bytes, SIMD_FORM_MAX, &f) < 0)
		return;
	count.accepted++;
	if (!is_new(&f))
		return;
	count.executed++;
	permit = simd_form_permits(&f);
	bits = simd_judge(f.code, f.len, &permit, search_seed++);
	if (bits == JUDGE_UNKNOWN)
		count.unknown++;
	else if (bits)
		report(bytes, SIMD_FORM_MAX, &f, bits);
}

/* Each ModRM byte, or a sample of them: registers 4 and 12 and the forms of memory are in it. */
static void search_modrm(uint8_t *bytes, unsigned int n, bool all)
{
	static const uint8_t sample[] = { 0xc4, 0xe0, 0xe4, 0xc1, 0x04, 0x25, 0x05, 0x63, 0x9c };

	if (!all) {
		bytes[n] = sample[judge_random(&random_state) % sizeof(sample)];
		search_one(bytes, n + 1);
		return;
	}
	for (unsigned int m = 0; m < 256; m++) {
		bytes[n] = (uint8_t)m;
		search_one(bytes, n + 1);
	}
}

static void search_legacy(const uint8_t *prefix, unsigned int n, bool all)
{
	static const uint8_t maps[][2] = { { 1, 0 }, { 2, 0x38 }, { 2, 0x3a } };
	uint8_t bytes[SIMD_FORM_MAX];

	memcpy(bytes, prefix, n);
	bytes[n] = 0x0f;
	bytes[n + 1] = 0x38;
	for (unsigned int map = 0; map < 3; map++)
		for (unsigned int op = 0; op < 256; op++) {
			bytes[n + 1] = maps[map][1];
			bytes[n + maps[map][0]] = (uint8_t)op;
			search_modrm(bytes, n + maps[map][0] + 1, all);
		}
}

/* REX is one of the prefixes, with random bits: more often than others, as there are 16. */
static void search_prefixes(bool all)
{
	static const uint8_t alphabet[] = { 0x66, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26,
					    0x64, 0x65, 0x67, 0xf0, 0x48, 0x40, 0x4f };
	const unsigned int n = sizeof(alphabet);
	uint8_t prefix[3];

	for (unsigned int len = 0; len <= 3; len++) {
		unsigned int orders = len == 0 ? 1 : len == 1 ? n : len == 2 ? n * n : n * n * n;

		for (unsigned int k = 0; k < orders; k++) {
			for (unsigned int i = 0, rest = k; i < len; i++, rest /= n) {
				prefix[i] = alphabet[rest % n];
				if ((prefix[i] & 0xf0) == 0x40 && prefix[i] == 0x40)
					prefix[i] |= judge_random(&random_state) & 15;
			}
			search_legacy(prefix, len, all);
		}
	}
}

static void search_vex(bool all)
{
	uint8_t b[SIMD_FORM_MAX];

	for (unsigned int second = 0; second < 256; second++)
		for (unsigned int op = 0; op < 256; op++) {
			b[0] = 0xc5;
			b[1] = (uint8_t)second;
			b[2] = (uint8_t)op;
			search_modrm(b, 3, all);
		}
	/* A sample has maps 1 to 3, and one in eight of those that do not exist. */
	for (unsigned int map = 0; map < 32; map += !all && map >= 3 ? 8 : 1)
		for (unsigned int rxb = 0; rxb < 8; rxb++)
			for (unsigned int third = 0; third < 256; third++)
				for (unsigned int op = 0; op < 256; op++) {
					b[0] = 0xc4;
					b[1] = (uint8_t)(rxb << 5 | map);
					b[2] = (uint8_t)third;
					b[3] = (uint8_t)op;
					/* Maps that do not exist: a sample suffices. */
					search_modrm(b, 4, all && map >= 1 && map <= 3);
				}
}

static void search_random(unsigned long n)
{
	uint8_t b[SIMD_FORM_MAX];

	for (unsigned long i = 0; i < n; i++) {
		b[0] = i % 4 ? (uint8_t)judge_random(&random_state) : 0x62; /* EVEX */
		search_one(b, 1);
	}
}

static void no_difference(void **state)
{
	const char *how = getenv("KVMPROF_SIMD_SEARCH");
	bool all = how && !strcmp(how, "all");

	(void)state;
	assert_int_equal(simd_judge_start(), 0);
	search_prefixes(all);
	search_vex(all);
	search_random(1000000);
	printf("%lu encodings, %lu accepted, %lu assembled forms executed (%lu unknown to this "
	       "CPU), %lu differences between permitted and observed effects\n",
	       count.tried, count.accepted, count.executed, count.unknown, count.differences);
	assert_true(count.executed > 10000);
	assert_int_equal(count.differences, 0);
}

/* The judge reports what an earlier encoder emitted for both families of two prefixes. */
static void judge_sees(void **state)
{
	static const struct {
		uint8_t code[8];
		unsigned int len, bits;
		struct simd_permit permit;
	} bad[] = {
		/* cvtsi2sd xmm0, rsp; cvttsd2si rsp, xmm0: the other registers are permitted */
		{ { 0x66, 0xf2, 0x48, 0x0f, 0x2a, 0xc4 },
		  6,
		  JUDGE_READ_MORE,
		  { 0xffef, 0xffef, 0, 0, 0 } },
		{ { 0x66, 0xf2, 0x48, 0x0f, 0x2c, 0xe0 },
		  6,
		  JUDGE_WROTE_REGISTER,
		  { 0xffef, 0xffef, 0, 0, 0 } },
		{ { 0x66, 0xf3, 0x48, 0x0f, 0x2a, 0xc4 },
		  6,
		  JUDGE_READ_MORE,
		  { 0xffef, 0xffef, 0, 0, 0 } },
		{ { 0x66, 0xf3, 0x0f, 0x2d, 0xe0 },
		  5,
		  JUDGE_WROTE_REGISTER,
		  { 0xffef, 0xffef, 0, 0, 0 } },
		{ { 0x66, 0x0f, 0xf7, 0xc1 },
		  4,
		  JUDGE_FAULTED,
		  { 0, 0, 0, 0, 0 } }, /* maskmovdqu */
		{ { 0x66, 0x0f, 0x3a, 0x61, 0xc1, 0 },
		  6,
		  JUDGE_WROTE_REGISTER | JUDGE_WROTE_FLAGS,
		  { 0, 0, 0, 0, 0 } },
		{ { 0x0f, 0x11, 0x03 },
		  3,
		  JUDGE_FAULTED,
		  { 1 << 3, 0, 8, 1, 0 } }, /* 16 bytes, not 8 */
		{ { 0x0f, 0x11, 0x03 }, 3, JUDGE_WROTE_MEMORY, { 1 << 3, 0, 16, 0, 0 } },
	};

	(void)state;
	assert_int_equal(simd_judge_start(), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unsigned int bits = 0;

		/* A write of equal flags is not seen; one of several seeds shows it. */
		for (unsigned int seed = 1; seed < 40; seed++)
			bits |= simd_judge(bad[i].code, bad[i].len, &bad[i].permit, seed * 77);
		if ((bits & bad[i].bits) != bad[i].bits)
			fail_msg("case %zu: 0x%x, not 0x%x", i, bits, bad[i].bits);
	}
}

static int start(void **state)
{
	(void)state;
	seen = calloc(1u << SEEN_BITS, sizeof(*seen));
	return !seen;
}

static int end(void **state)
{
	(void)state;
	free(seen);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(judge_sees),
					    cmocka_unit_test(no_difference) };

	if (!__builtin_cpu_supports("avx")) {
		printf("this CPU has no AVX\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, start, end);
}
