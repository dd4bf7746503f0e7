/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

static int put(struct ring *r, size_t reserve, size_t used, uint8_t fill)
{
	uint8_t *p = ring_reserve(r, reserve);

	if (!p)
		return -1;
	memset(p, fill, used);
	ring_commit(r, used);
	return 0;
}

static void take(struct ring *r, size_t want_len, uint8_t want)
{
	size_t len;
	const uint8_t *p = ring_peek(r, &len);

	assert_non_null(p);
	assert_int_equal(len, want_len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], want);
	ring_release(r);
}

static void test_order_and_lengths(void **state)
{
	struct ring r;
	size_t len;

	(void)state;
	assert_int_equal(ring_init(&r, 1), 0);
	assert_int_equal(r.size, 4096);
	assert_null(ring_peek(&r, &len));
	assert_int_equal(put(&r, 100, 1, 'a'), 0);
	assert_int_equal(put(&r, 100, 100, 'b'), 0);
	assert_int_equal(put(&r, 100, 0, 'c'), 0);
	take(&r, 1, 'a');
	take(&r, 100, 'b');
	take(&r, 0, 'c');
	assert_null(ring_peek(&r, &len));
	ring_deinit(&r);
}

static void test_full_drops_the_new_one(void **state)
{
	struct ring r;
	unsigned int n = 0;

	(void)state;
	ring_init(&r, 4096);
	while (put(&r, 1000, 1000, (uint8_t)n) == 0)
		n++;
	assert_int_equal(n, 4);
	assert_int_equal(ring_dropped(&r), 1);
	assert_null(ring_reserve(&r, 4000)); /* never fits */
	assert_int_equal(ring_dropped(&r), 2);
	for (unsigned int i = 0; i < n; i++)
		take(&r, 1000, (uint8_t)i);
	assert_int_equal(put(&r, 1000, 1000, 9), 0);
	take(&r, 1000, 9);
	ring_deinit(&r);
}

/* A large reservation that commits little must not cost room, wherever the ring stands. */
static void test_large_reservation_small_commit(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r, 1 << 20);
	for (unsigned int round = 0; round < 1000; round++) {
		unsigned int n = 1 + round % 5;

		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(put(&r, 66000, 16000 + 8 * i, (uint8_t)i), 0);
		for (unsigned int i = 0; i < n; i++)
			take(&r, 16000 + 8 * i, (uint8_t)i);
	}
	assert_int_equal(ring_dropped(&r), 0);
	ring_deinit(&r);
}

/* A consumer that keeps up makes the producer reuse the first bytes. */
static void test_empty_ring_starts_over(void **state)
{
	struct ring r;
	void *first;

	(void)state;
	ring_init(&r, 1 << 16);
	first = ring_reserve(&r, 100);
	ring_commit(&r, 100);
	ring_release(&r);
	assert_ptr_equal(ring_reserve(&r, 100), first);
	ring_deinit(&r);
}

/*
 * Held records can be changed, and become visible all at once; they count as used, also around the
 * end.
 */
static void test_held_records(void **state)
{
	struct ring r;
	size_t len, at;
	uint8_t *p;

	(void)state;
	ring_init(&r, 4096);
	for (unsigned int round = 0; round < 100; round++) {
		unsigned int n = 0;

		assert_int_equal(put(&r, 200, 200, 'a'), 0);
		ring_hold(&r);
		ring_hold(&r);
		at = 0;
		assert_null(ring_held(&r, &at));
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(put(&r, 1000, 104 + 8 * i, 'b'), 0);
		assert_true(ring_used(&r) > 3 * 104);
		take(&r, 200, 'a');
		assert_null(ring_peek(&r, &len));
		/* Empty to the consumer only. */
		assert_int_equal(put(&r, 1000, 0, 'c'), 0);
		for (; (p = ring_held(&r, &at)); n++)
			if (n < 3)
				memset(p, 'd', 104 + 8 * n);
		assert_int_equal(n, 4);
		ring_unhold(&r);
		at = 0;
		assert_null(ring_held(&r, &at));
		for (unsigned int i = 0; i < 3; i++)
			take(&r, 104 + 8 * i, 'd');
		take(&r, 0, 'c');
		assert_null(ring_peek(&r, &len));
		/* Wherever the ring stands. */
		assert_int_equal(put(&r, 8, 8 * (round % 2), 'e'), 0);
		take(&r, 8 * (round % 2), 'e');
		ring_unhold(&r);
	}
	assert_int_equal(ring_dropped(&r), 0);
	ring_deinit(&r);
}

#define STRESS 200000u

static void *producer(void *arg)
{
	struct ring *r = arg;
	uint64_t seed = 1;

	for (uint32_t i = 0; i < STRESS;) {
		size_t len;
		uint32_t *p;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		len = 4 + (seed >> 33) % 600 / 4 * 4;
		p = ring_reserve(r, len + 64);
		if (!p) {
			sched_yield();
			continue;
		}
		for (size_t k = 0; k < len / 4; k++)
			p[k] = i;
		ring_commit(r, len);
		i++;
	}
	return NULL;
}

static void test_two_threads(void **state)
{
	struct ring r;
	pthread_t t;
	uint32_t next = 0;

	(void)state;
	ring_init(&r, 8192);
	pthread_create(&t, NULL, producer, &r);
	while (next < STRESS) {
		size_t len;
		const uint32_t *p = ring_peek(&r, &len);

		if (!p) {
			sched_yield();
			continue;
		}
		for (size_t k = 0; k < len / 4; k++)
			assert_int_equal(p[k], next);
		ring_release(&r);
		next++;
	}
	pthread_join(t, NULL);
	ring_deinit(&r);
}

/* All up to three quarters, then one of two, and of twice as many with each half of what is left. */
static void thinned(void **state)
{
	struct ring r;
	unsigned int last = 1;

	(void)state;
	assert_int_equal(ring_init(&r, 65536), 0);
	assert_int_equal(ring_keep_one_of(&r), 1);
	while (ring_reserve(&r, 56)) {
		size_t left;

		ring_commit(&r, 56);
		left = r.size - ring_used(&r);
		assert_true(ring_keep_one_of(&r) >= last && ring_keep_one_of(&r) <= 2 * last);
		last = ring_keep_one_of(&r);
		assert_int_equal(last > 1, left <= r.size / 4);
		assert_true(last == RING_THIN_MOST || left > r.size / 4 / last);
	}
	assert_int_equal(last, RING_THIN_MOST);
	ring_release(&r);
	ring_deinit(&r);
}

#define SHARED_SIZE 4096u

/* Two ends over the same memory, as two processes have them. */
static void test_shared_between_two_ends(void **state)
{
	static uint8_t data[SHARED_SIZE];
	static struct ring_head front;
	static struct ring_tail back;
	struct ring in, out;
	unsigned int given = 0, taken = 0;

	(void)state;
	assert_int_equal(ring_round(1), 4096);
	assert_int_equal(ring_round(4097), 8192);
	/* The other process says how long its ring is. */
	assert_int_equal(ring_round(SIZE_MAX), SIZE_MAX / 2 + 1);
	assert_int_equal(ring_round(SIZE_MAX / 2 + 2), SIZE_MAX / 2 + 1);
	ring_init_shared(&in, data, sizeof(data), &front, &back);
	ring_init_shared(&out, data, sizeof(data), &front, &back);
	while (taken < 1000) {
		size_t len;
		const uint8_t *p;
		uint8_t *room;

		while (given < 1000 && (room = ring_reserve(&in, 100))) {
			memset(room, (int)(given & 0xff), 100);
			ring_commit(&in, 1 + given % 100);
			given++;
		}
		p = ring_peek(&out, &len);
		assert_non_null(p);
		assert_int_equal(len, 1 + taken % 100);
		assert_int_equal(p[len - 1], taken & 0xff);
		ring_release(&out);
		taken++;
	}
	/* Each time that there was no room. */
	assert_in_range(ring_dropped(&out), 1, 1000);
	assert_int_equal(ring_dropped(&out), ring_dropped(&in));
	ring_deinit(&in);
	ring_deinit(&out);
}

/* Whatever the consumer's process stores in the tail, the producer stays within its memory. */
static void test_hostile_tail(void **state)
{
	static uint8_t memory[3 * SHARED_SIZE];
	uint8_t *data = memory + SHARED_SIZE;
	static struct ring_head front;
	static struct ring_tail back;
	struct ring r;
	uint64_t x = 36;

	(void)state;
	memset(memory, 0xa5, sizeof(memory));
	ring_init_shared(&r, data, SHARED_SIZE, &front, &back);
	for (unsigned int i = 0; i < 200000; i++) {
		const size_t len = (size_t)(x >> 20) % (SHARED_SIZE + 64);
		uint8_t *room;

		x = x * 6364136223846793005u + 1442695040888963407u;
		/* Near the head, unaligned, and anywhere. */
		atomic_store(&back.tail,
			     x >> 62 ? atomic_load(&front.head) - (x >> 40) % 9000 : (size_t)x);
		room = ring_reserve(&r, len);
		if (!room)
			continue;
		assert_true(room >= data && room + len <= data + SHARED_SIZE);
		memset(room, 0x11, len);
		ring_commit(&r, len);
	}
	for (unsigned int i = 0; i < SHARED_SIZE; i++)
		assert_true(memory[i] == 0xa5 && memory[2 * SHARED_SIZE + i] == 0xa5);
	ring_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_lengths),
		cmocka_unit_test(test_full_drops_the_new_one),
		cmocka_unit_test(test_large_reservation_small_commit),
		cmocka_unit_test(test_empty_ring_starts_over),
		cmocka_unit_test(test_held_records),
		cmocka_unit_test(test_two_threads),
		cmocka_unit_test(thinned),
		cmocka_unit_test(test_shared_between_two_ends),
		cmocka_unit_test(test_hostile_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
