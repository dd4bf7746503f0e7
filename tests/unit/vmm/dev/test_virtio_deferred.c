/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drivers with several vCPUs: one adds to a queue for ever that another notifies of, one resets what fails. */
#include "tests/unit/virtio_fixture.h"

#include "base/clock.h"
#include "vmm/dev/virtio_console.h"
#include "vmm/dev/virtio_deferred.h"
#include "vmm/dev/virtio_rng.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* Chains that are added, unless somebody says that it is enough: to serve all is to serve any number. */
#define ENDLESS 20000u
#define ROUNDS 20000u
#define ROUNDS_LEAST 100u
#define ROUNDS_NS UINT64_C(3000000000)
#define NO_MORE UINT_MAX
#define WAIT_MS 20000u

static uint16_t *ring16(unsigned int q, uint64_t off)
{
	return (uint16_t *)(void *)(fix_ram + fix_rings(q) + off);
}

static uint16_t used_index(unsigned int q)
{
	return __atomic_load_n(ring16(q, FIX_USED + 2), __ATOMIC_ACQUIRE);
}

/* The other vCPU, which is always in time: each chain that comes back is available again. */
static atomic_uint added;
static atomic_bool enough;

static void add_another(void *transport, unsigned int q)
{
	(void)transport;
	if (q == UINT32_MAX || atomic_load(&enough) || added >= ENDLESS)
		return;
	__atomic_store_n(ring16(q, FIX_AVAIL + 2), (uint16_t)(atomic_fetch_add(&added, 1) + 1),
			 __ATOMIC_RELEASE);
}

/* All entries of the ring name descriptor 0. */
static void begin(struct virtio *d, unsigned int q, uint16_t flags)
{
	fix_start(d, 0);
	fix_put(q, 0, FIX_DATA, 1, flags, 0);
	atomic_store(&enough, false);
	atomic_store(&added, 0);
	d->interrupt = add_another;
	add_another(NULL, q);
}

static void check_kick_returns(struct virtio *d, unsigned int q, uint16_t flags)
{
	struct err e;

	/* Without its thread: what the notification itself serves. */
	begin(d, q, flags);
	virtio_notify(d, q);
	assert_in_range(used_index(q), 1, ENDLESS - 1);

	/* With it nothing is left. */
	assert_int_equal(d->ops->start(d, &e), 0);
	begin(d, q, flags);
	virtio_notify(d, q);
	for (unsigned int i = 0; i < WAIT_MS && used_index(q) != ENDLESS; i++)
		usleep(1000);
	assert_int_equal(used_index(q), ENDLESS);

	/* A reset ends the thread's work. */
	begin(d, q, flags);
	virtio_notify(d, q);
	virtio_set_status(d, 0);
	memset(fix_ram + fix_rings(q) + FIX_USED, 0x77, 6 + 8 * FIX_SIZE);
	usleep(1000);
	assert_int_equal(used_index(q), 0x7777);
	assert_int_equal(d->bad, 0);
	d->ops->destroy(d);
}

static void rng_notification_returns(void **state)
{
	struct virtio *d;
	struct err e;

	(void)state;
	assert_int_equal(virtio_rng_new(&d, &fix_mem, &e), 0);
	check_kick_returns(d, 0, FIX_WRITE);
}

static void drop(void *ctx, uint8_t byte)
{
	(void)byte;
	atomic_fetch_add((atomic_uint *)ctx, 1);
}

static void console_notification_returns(void **state)
{
	atomic_uint bytes = 0;
	struct virtio *d;
	struct err e;

	(void)state;
	assert_int_equal(virtio_console_new(&d, &fix_mem, drop, &bytes, &e), 0);
	check_kick_returns(d, 1, 0);
	assert_int_not_equal(bytes, 0);
}

/* -- a device that fails while its status is written ---------------------------------- */

struct failer {
	struct virtio *d;
	atomic_uint round, done;
};

/* Both at once, if they can; and the other one may have no processor. */
static void wait_for_round(atomic_uint *at, unsigned int round)
{
	for (unsigned int n = 0; atomic_load(at) < round; n++)
		if (n > 1000)
			sched_yield();
}

/* From round to round on: the other side may say that there are no more. */
static void *fail_each_round(void *arg)
{
	struct failer *f = arg;

	for (unsigned int round = 1;; round++) {
		wait_for_round(&f->round, round);
		if (atomic_load(&f->round) == NO_MORE)
			break;
		virtio_fail(f->d);
		atomic_store(&f->done, round);
	}
	return NULL;
}

static void failure_is_not_overwritten(void **state)
{
	const uint8_t begun = 3 | VIRTIO_FEATURES_OK;
	struct failer f = { 0 };
	uint64_t end = clock_mono_ns() + ROUNDS_NS;
	unsigned int lost = 0;
	pthread_t t;
	struct err e;

	(void)state;
	assert_int_equal(virtio_rng_new(&f.d, &fix_mem, &e), 0);
	assert_int_equal(pthread_create(&t, NULL, fail_each_round, &f), 0);
	/* On a busy host each turn of the other thread may take a time slice of everybody else. */
	for (unsigned int round = 1;
	     round <= ROUNDS && (round <= ROUNDS_LEAST || clock_mono_ns() < end); round++) {
		virtio_set_status(f.d, 0);
		virtio_features_write(f.d, 1, VIRTIO_F_VERSION_1 >> 32);
		virtio_set_status(f.d, begun);
		atomic_store(&f.round, round);
		virtio_set_status(f.d, begun | VIRTIO_DRIVER_OK);
		wait_for_round(&f.done, round);
		lost += !(atomic_load(&f.d->status) & VIRTIO_NEEDS_RESET);
	}
	atomic_store(&f.round, NO_MORE);
	pthread_join(t, NULL);
	assert_int_equal(lost, 0);
	f.d->ops->destroy(f.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rng_notification_returns),
		cmocka_unit_test(console_notification_returns),
		cmocka_unit_test(failure_is_not_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
