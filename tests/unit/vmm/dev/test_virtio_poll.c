/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A disk that looks into its queues by itself, by a driver that heeds what it is told of notifications. */
#include "tests/unit/blk_fixture.h"
#include "tests/unit/skip.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#define SECTORS 4096u
#define LEN 4096u
#define LIMIT_NS (20 * NSEC_PER_SEC)
#define QUIET_NS (5 * NSEC_PER_SEC)
#define SPIN_NS (NSEC_PER_SEC / 2)

static char image[64];
static uint8_t model[SECTORS * 512];

static int set_up(void **state)
{
	(void)state;
	return blk_image(image, model, sizeof(model));
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(image);
}

struct fixture {
	struct disk *disk;
	struct blk_driver b;
	bool event_idx;
	unsigned int kicks, requests;
};

static void begin(struct fixture *f, unsigned int vcpus, bool event_idx)
{
	struct disk_config dc = { .path = image, .write = DISK_READ_ONLY };
	struct virtio_blk_config cfg = { .queues = vcpus };
	struct err e = { 0 };

	memset(f, 0, sizeof(*f));
	f->event_idx = event_idx;
	if (disk_open(&f->disk, &dc, &e) < 0)
		fail_msg("%s", e.text);
	cfg.disk = f->disk;
	assert_int_equal(blk_driver_init(&f->b, &cfg), 0);
	blk_begin(&f->b, event_idx ? VIRTIO_F_EVENT_IDX : 0);
}

static void end(struct fixture *f)
{
	blk_driver_deinit(&f->b);
	disk_close(f->disk, NULL);
}

static unsigned int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

static void *spin(void *arg)
{
	uint64_t *cpu_ns = arg, until = clock_mono_ns() + SPIN_NS;
	struct timespec ts;

	while (clock_mono_ns() < until)
		;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	*cpu_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return NULL;
}

/* Returns how much of two processors two threads of this process get at present. */
static unsigned int percent_of_two(void)
{
	pthread_t thread[2];
	uint64_t ns[2];

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, spin, &ns[i]), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return (unsigned int)((ns[0] + ns[1]) * 100 / (2 * SPIN_NS));
}

/* Does the device want to hear of the chain that was put last? */
static bool is_wanted(struct fixture *f, unsigned int q)
{
	const uint16_t *used = blk_ptr(&f->b, blk_used_at(q), 6 + 8 * BLK_SIZE);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (f->event_idx)
		return __atomic_load_n(&used[2 + 4 * BLK_SIZE], __ATOMIC_ACQUIRE) ==
		       (uint16_t)(f->b.avail[q] - 1);
	return !(__atomic_load_n(&used[0], __ATOMIC_ACQUIRE) & 1);
}

static bool is_used(struct fixture *f, unsigned int q)
{
	uint64_t since = clock_mono_ns();

	while (blk_used(&f->b, q) != f->b.avail[q]) {
		if (clock_mono_ns() - since > LIMIT_NS)
			return false;
		sched_yield();
	}
	return true;
}

/* Read something; was a notification wanted? */
static bool read_one(struct fixture *f, unsigned int q, bool notify_anyhow)
{
	uint32_t sector = f->requests++ * 5 % (SECTORS - LEN / 512);
	bool wanted;

	blk_put(&f->b, q, 0, BLK_T_IN, sector, LEN);
	wanted = is_wanted(f, q);
	f->kicks += wanted;
	if (wanted || notify_anyhow)
		virtio_notify(f->b.d, q);
	if (!is_used(f, q))
		fail_msg("request %u had no answer", f->requests);
	assert_int_equal(blk_status(&f->b, q, 0), IO_OK);
	assert_memory_equal(blk_ptr(&f->b, blk_data_at(0), LEN), model + sector * 512, LEN);
	return wanted;
}

/*
 * Read until the device says that it looks by itself. Where no other processor is free its
 * thread begins when this one sleeps; and it gives up where this one does not come to run.
 */
static void read_until_quiet(struct fixture *f)
{
	uint64_t begin = clock_mono_ns(), since = begin;
	unsigned int got;

	while (read_one(f, 0, false)) {
		if (clock_mono_ns() - since > QUIET_NS) {
			got = percent_of_two();
			if (got < 85) {
				end(f);
				SKIP("the host is too busy: two threads got %u %% of two "
				     "processors",
				     got);
			}
			/* It may have been busy until now. */
			if (clock_mono_ns() - begin > LIMIT_NS)
				fail_msg("it never looked by itself, in %u requests", f->requests);
			since = clock_mono_ns();
		}
		if (f->requests % 20 == 0)
			usleep(20);
	}
}

/* A device that looks into its queue already; skips the test where it never does. */
static void begin_quiet(struct fixture *f, bool event_idx)
{
	if (processors() < 2)
		SKIP("this host has one processor");
	begin(f, 1, event_idx);
	read_until_quiet(f);
}

static void needs_no_notifications(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 4; round++) {
		struct fixture f;
		uint64_t kicks;

		begin_quiet(&f, round & 1);
		for (unsigned int i = 0; i < 20000; i++)
			(void)read_one(&f, 0, round & 2 && !(i % 3));
		kicks = f.b.d->kicks;
		assert_true(f.kicks < f.requests);
		assert_true(round & 2 ? kicks >= f.kicks : kicks == f.kicks);
		assert_int_equal(f.b.d->chains, f.requests);
		assert_int_equal(f.b.d->bad, 0);
		end(&f);
	}
}

/* Two queues, each with its own hints. */
static void looks_into_many_queues(void **state)
{
	struct fixture f;

	(void)state;
	if (processors() < 3)
		begin(&f, 1, true);
	else
		begin(&f, 2, true);
	for (unsigned int i = 0; i < 20000; i++)
		(void)read_one(&f, i / 100 % f.b.d->nqueues, false);
	assert_int_equal(f.b.d->chains, f.requests);
	end(&f);
}

/* As for a snapshot: who goes on with the memory has to be notified again. */
static void drained_it_asks_again(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		struct fixture f;

		begin_quiet(&f, round & 1);
		f.b.d->ops->drain(f.b.d);
		blk_put(&f.b, 0, 0, BLK_T_IN, 0, LEN);
		assert_true(is_wanted(&f, 0));
		usleep(300);
		assert_int_not_equal(blk_used(&f.b, 0), f.b.avail[0]);
		virtio_notify(f.b.d, 0);
		assert_true(is_used(&f, 0));
		(void)read_one(&f, 0, false);
		end(&f);
	}
}

/* It ends when no request comes, without anybody's help. */
static void idle_it_asks_again(void **state)
{
	struct fixture f;
	uint64_t since;

	(void)state;
	begin_quiet(&f, false);
	since = clock_mono_ns();
	while (!is_wanted(&f, 0)) {
		if (clock_mono_ns() - since > LIMIT_NS)
			fail_msg("it looks for ever");
		usleep(100);
	}
	end(&f);
}

/* After a reset nobody looks, and nothing is written to guest RAM. */
static void reset_ends_it(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		struct fixture f;

		begin_quiet(&f, round & 1);
		blk_put(&f.b, 0, 0, BLK_T_IN, 0, LEN);
		virtio_set_status(f.b.d, 0);
		blk_header(&f.b, 0, 0, 0, 0);
		memset(blk_ptr(&f.b, blk_used_at(0), 6 + 8 * BLK_SIZE), 0x77, 6 + 8 * BLK_SIZE);
		usleep(300);
		assert_int_equal(blk_status(&f.b, 0, 0), 0xff);
		assert_int_equal(blk_used(&f.b, 0), 0x7777);
		blk_begin(&f.b, f.event_idx ? VIRTIO_F_EVENT_IDX : 0);
		assert_true(read_one(&f, 0, false));
		end(&f);
	}
}

/* With as many vCPUs as processors the thread would run instead of one of them. */
static void leaves_processors_to_vcpus(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, processors(), true);
	for (unsigned int i = 0; i < 3000; i++)
		assert_true(read_one(&f, 0, false));
	end(&f);
}

/* --pin leaves a vCPU's thread one processor; the polling thread still has the others. */
static void pinned_vcpus_leave_processors(void **state)
{
	cpu_set_t all, one;
	struct fixture f;

	(void)state;
	if (processors() < 2)
		SKIP("this host has one processor");
	begin(&f, 1, true);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	read_until_quiet(&f);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(needs_no_notifications),
		TEST(looks_into_many_queues),
		TEST(drained_it_asks_again),
		TEST(idle_it_asks_again),
		TEST(reset_ends_it),
		TEST(leaves_processors_to_vcpus),
		TEST(pinned_vcpus_leave_processors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
