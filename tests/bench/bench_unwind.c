/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks unwound and symbols looked up per second, on one core.
 *
 *	make build/bench/bench_unwind && build/bench/bench_unwind [vmlinux]
 *
 * The text is synthetic: KT_FUNCTIONS functions of 64 bytes with the usual prologue,
 * a direct call and an epilogue; each stack takes 15 of them at random, so that
 * code, symbols and stacks are as cold as with a real profile. With a vmlinux,
 * lookups go to random places of its text instead. Prints the median of ROUNDS
 * rounds, and the slowest and fastest. Time is this thread's CPU time, so that
 * other work on the machine counts only by what it does to the caches.
 */
#include "base/file.h"
#include "symbolizer/unwind/unwind.h"
#include "tests/bench/kernel_text.h"
#include "tests/text_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACKS 1000u
#define ROUNDS 9u
#define LOOKUPS 1000000u

static uint8_t text[KT_BYTES];
static struct text_bytes text_bytes = { KT_TEXT, text, sizeof(text) };
static volatile uint64_t keep;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Looks up an entry as orc_find() would without its index of blocks. */
static const struct orc_entry *orc_search(const struct orc *o, uint64_t va)
{
	size_t lo = 0, hi = orc_count(o);
	uint64_t at;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		orc_at(o, mid, &at);
		if (at <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? orc_at(o, lo - 1, &at) : NULL;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *what, double *rate)
{
	qsort(rate, ROUNDS, sizeof(*rate), cmp_double);
	printf("%-28s %12.0f /s  (%.0f to %.0f)\n", what, rate[ROUNDS / 2], rate[0],
	       rate[ROUNDS - 1]);
}

static void bench_stacks(const char *what, const struct unwinder *u, struct sample **s)
{
	static struct stack out;
	double rate[ROUNDS];
	unsigned int repeat = 100;

	for (unsigned int r = 0; r < ROUNDS; r++) {
		double t = now();

		for (unsigned int k = 0; k < repeat; k++)
			for (unsigned int i = 0; i < STACKS; i++) {
				unwind(u, s[i], &out);
				if (out.n != KT_DEPTH || out.end != STACK_END_ROOT) {
					fprintf(stderr, "wrong stack: %u frames, %s\n", out.n,
						stack_end_name(out.end));
					exit(1);
				}
			}
		rate[r] = repeat * STACKS / (now() - t);
	}
	report(what, rate);
}

static void bench_lookup(const char *what, const struct symtab *t, uint64_t from, uint64_t len)
{
	uint64_t *addr = malloc(LOOKUPS * sizeof(*addr)), x = 88172645463325252ull;
	double rate[ROUNDS];

	if (!addr)
		abort();
	for (unsigned int i = 0; i < LOOKUPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		addr[i] = from + x % len;
	}
	for (unsigned int r = 0; r < ROUNDS; r++) {
		double begin = now();

		for (unsigned int i = 0; i < LOOKUPS; i++)
			keep += (uintptr_t)symtab_lookup(t, addr[i], NULL);
		rate[r] = LOOKUPS / (now() - begin);
	}
	report(what, rate);
	free(addr);
}

static void bench_orc(const char *what, const struct orc *o, uint64_t from, uint64_t len,
		      bool plain)
{
	double rate[ROUNDS];

	for (unsigned int r = 0; r < ROUNDS; r++) {
		uint64_t x = 88172645463325252ull;
		double begin = now();

		for (unsigned int i = 0; i < LOOKUPS; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			keep += (uintptr_t)(plain ? orc_search(o, from + x % len)
						  : orc_lookup(o, from + x % len));
		}
		rate[r] = LOOKUPS / (now() - begin);
	}
	report(what, rate);
}

#define MODULES 100u

/* All functions but the first ones belong to modules. */
static void bench_modules(const struct unwinder *kernel, struct sample **s, const struct symtab *t,
			  const struct orc *o)
{
	static struct unwind_region region[MODULES];
	struct unwinder u = *kernel;
	uint64_t len = sizeof(text) / (MODULES + 1) / KT_FUNC_BYTES * KT_FUNC_BYTES;

	u.text_end = u.text_start + len;
	for (unsigned int i = 0; i < MODULES; i++) {
		uint64_t start = u.text_start + (i + 1) * len;

		region[i] = (struct unwind_region){
			.start = start, .end = start + len, .orc = o, .symbols = t
		};
	}
	region[MODULES - 1].end = KT_TEXT + sizeof(text);
	u.region = region;
	u.nregions = MODULES;
	bench_stacks("stacks, ORC, 100 modules", &u, s);
}

/* From the bytes of an image to a ready table, and lookups in it. */
static void bench_orc_image(const struct kimage *k)
{
	struct orc *o = NULL;
	double rate[ROUNDS];
	struct err e = { 0 };
	char name[48];

	for (unsigned int r = 0; r < ROUNDS; r++) {
		double begin = now();

		orc_destroy(o);
		if (orc_open(&o, k, &e) < 0) {
			printf("no ORC table: %s\n", e.text);
			return;
		}
		rate[r] = 1 / (now() - begin);
	}
	snprintf(name, sizeof(name), "ORC tables built, %zu", orc_count(o));
	report(name, rate);
	bench_orc("ORC lookups", o, k->text, k->etext - k->text, false);
	bench_orc("ORC lookups, no blocks", o, k->text, k->etext - k->text, true);
	orc_destroy(o);
}

int main(int argc, char **argv)
{
	struct unwinder u = { .read_text = text_bytes_read,
			      .ctx = &text_bytes,
			      .text_start = KT_TEXT,
			      .text_end = KT_TEXT + sizeof(text),
			      .frame_pointers = true };
	struct symtab *t = symtab_create();
	struct orc *o = kt_orc(KT_FUNCTIONS);
	static struct sample *s[STACKS];
	struct err e = { 0 };
	unsigned int seed = 1;
	char name[32];

	kt_make_text(text, &seed);
	for (unsigned int i = 0; i < KT_FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		symtab_add(t, KT_TEXT + i * KT_FUNC_BYTES, 55, 'T', name);
	}
	if (symtab_freeze(t, &e) < 0)
		return 1;
	for (unsigned int i = 0; i < STACKS; i++)
		s[i] = kt_sample(&seed);
	u.symbols = t;
	bench_stacks("stacks, depth 15", &u, s);
	u.symbols = NULL;
	bench_stacks("stacks, no symbols", &u, s);
	u.orc = o;
	u.frame_pointers = false;
	bench_stacks("stacks, ORC", &u, s);
	bench_modules(&u, s, t, o);
	bench_orc("ORC lookups, 80000 entries", o, KT_TEXT, sizeof(text), false);
	bench_orc("ORC lookups, no blocks", o, KT_TEXT, sizeof(text), true);
	orc_destroy(o);
	bench_lookup("lookups, 20000 symbols", t, KT_TEXT, sizeof(text));
	symtab_destroy(t);
	if (argc > 1) {
		struct file_map m;
		struct kimage k;

		if (file_map_open(&m, argv[1], 1u << 30, &e) < 0 ||
		    kimage_parse(&k, argv[1], m.data, m.len, &e) < 0 ||
		    kimage_symbols(&k, &t, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
		snprintf(name, sizeof(name), "lookups, %zu symbols", symtab_count(t));
		bench_lookup(name, t, k.text, k.etext - k.text);
		symtab_destroy(t);
		bench_orc_image(&k);
		file_map_close(&m);
	}
	for (unsigned int i = 0; i < STACKS; i++)
		free(s[i]);
	return 0;
}
