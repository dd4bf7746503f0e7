/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/pit.h"
#include "vmm/layout.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/dev_fixture.h"

#define MS UINT64_C(1000000)

static struct pit pit;

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	nanosleep(&ts, NULL);
}

/* True when it came within ten seconds: far beyond what any load explains. */
static bool wait_rises(unsigned int n)
{
	uint64_t end = monotonic() + 10000 * MS;

	while (seen.rises < n && monotonic() < end)
		sleep_ns(MS / 5);
	return seen.rises >= n;
}

static void pit_program(unsigned int ch, unsigned int mode, uint16_t count)
{
	outb(0x43, (uint8_t)(ch << 6 | 0x30 | mode << 1));
	outb((uint16_t)(0x40 + ch), (uint8_t)count);
	outb((uint16_t)(0x40 + ch), (uint8_t)(count >> 8));
}

static uint16_t pit_read(unsigned int ch)
{
	uint16_t v = inb((uint16_t)(0x40 + ch));

	return (uint16_t)(v | inb((uint16_t)(0x40 + ch)) << 8);
}

static int with_pit(void **state)
{
	struct err e = { 0 };

	clean(state);
	return pit_init(&pit, &bus, irq_line, (struct pit_load){ 0 }, 20 * MS, &e) ||
	       pit_start(&pit, &e);
}

static int without_pit(void **state)
{
	(void)state;
	pit_deinit(&pit);
	return 0;
}

/* Runs between idle, armed and stopped in any order; a lost wake-up would hang here. */
static void pit_lifecycle(void **state)
{
	struct err e = { 0 };

	(void)state;
	for (int i = 0; i < 50; i++) {
		clean(state);
		assert_int_equal(pit_init(&pit, &bus, irq_line, (struct pit_load){ 0 }, MS, &e), 0);
		assert_false(pit.running);
		assert_int_equal(pit_start(&pit, &e), 0);
		if (i % 3 == 1)
			pit_program(0, 2, 60000);
		if (i % 3 == 2)
			pit_program(0, 0, 1);
		pit_deinit(&pit);
	}
	/* never started */
	clean(state);
	assert_int_equal(pit_init(&pit, &bus, irq_line, (struct pit_load){ 0 }, MS, &e), 0);
	pit_deinit(&pit);
	/* the ports are taken: an error, not a second timer */
	clean(state);
	assert_int_equal(pit_init(&pit, &bus, irq_line, (struct pit_load){ 0 }, MS, &e), 0);
	{
		struct pit other;

		assert_int_equal(pit_init(&other, &bus, irq_line, (struct pit_load){ 0 }, MS, &e),
				 -EBUSY);
		assert_non_null(strstr(e.text, "PIT"));
		assert_false(other.running);
	}
	pit_deinit(&pit);
}

static void pit_count_latch(void **state)
{
	uint16_t a, b;

	(void)state;
	pit_program(2, 2, 0xffff);
	outb(0x43, 0x80);
	a = pit.ch[2].latch;
	sleep_ns(2 * MS); /* the count moves on, the latch does not */
	assert_int_equal(pit_read(2), a);
	b = pit_read(2); /* unlatched again: true time */
	assert_int_not_equal(a, b);

	/* A second latch command before the first was read is ignored (8254, "Counter Latch"). */
	outb(0x43, 0x80);
	a = pit.ch[2].latch;
	sleep_ns(2 * MS);
	assert_int_equal(inb(0x42), a & 0xff);
	outb(0x43, 0x80);
	assert_int_equal(inb(0x42), a >> 8);

	/* one-byte access */
	outb(0x43, 0x94);
	outb(0x42, 0x80);
	assert_int_equal(pit.ch[2].reload, 0x80);
	outb(0x43, 0xa4);
	outb(0x42, 0x80);
	assert_int_equal(pit.ch[2].reload, 0x8000);
	assert_true(inb(0x42) <= 0x80);
}

static void pit_counts_down_with_true_time(void **state)
{
	uint64_t t0, t1, t2, t3, ticks, least, most;
	uint16_t a, b;

	(void)state;
	/* retry when the host took the CPU for so long that the counter wrapped */
	do {
		pit_program(2, 0, 0xffff);
		t0 = monotonic();
		outb(0x43, 0x80);
		a = pit_read(2);
		t1 = monotonic();
		sleep_ns(5 * MS);
		t2 = monotonic();
		outb(0x43, 0x80);
		b = pit_read(2);
		t3 = monotonic();
	} while (t3 - t0 > 50 * MS);
	ticks = (uint16_t)(a - b);
	least = (t2 - t1) * PIT_HZ / 1000000000;
	most = (t3 - t0) * PIT_HZ / 1000000000;
	assert_in_range(ticks, least - 2, most + 2);
}

static void pit_read_back(void **state)
{
	uint16_t want0, want2;

	(void)state;
	pit_program(0, 2, 0x8000);
	pit_program(2, 2, 0x4000);
	outb(0x43, 0xc0 | 0x10 | 1 << 1 | 1 << 3); /* counts of channels 0 and 2 */
	assert_true(pit.ch[0].latched);
	assert_false(pit.ch[1].latched);
	assert_true(pit.ch[2].latched);
	want0 = pit.ch[0].latch;
	want2 = pit.ch[2].latch;
	assert_in_range(want0, 1, 0x8000);
	assert_in_range(want2, 1, 0x4000);
	sleep_ns(MS);
	assert_int_equal(pit_read(2), want2);
	assert_int_equal(pit_read(0), want0);
	assert_false(pit.ch[0].latched);
	outb(0x43, 0xc0 | 0x20 | 1 << 1); /* counts not wanted */
	assert_false(pit.ch[0].latched);
}

static void pit_periodic_with_floor(void **state)
{
	uint64_t from, elapsed;
	unsigned int n;

	(void)state;
	from = monotonic();
	pit_program(0, 2, 1193); /* 1 ms; the floor is 20 ms */
	assert_true(wait_rises(4));
	n = seen.rises;
	elapsed = monotonic() - from;
	assert_true(elapsed >= n * 20 * MS - MS);
	assert_int_equal(seen.irq, IRQ_TIMER);
	/* the counter still runs at the rate that the guest asked for */
	assert_true(pit_read(0) <= 1193);

	/* a new mode word stops it until it is loaded */
	outb(0x43, 0x34);
	n = seen.rises;
	sleep_ns(45 * MS);
	assert_int_equal(seen.rises, n);
	assert_int_equal(seen.falls, n); /* each was an edge */

	/* slower than the floor: the guest's own period */
	from = monotonic();
	pit_program(0, 3, 59659); /* 50 ms */
	assert_true(wait_rises(n + 2));
	assert_true(monotonic() - from >= 99 * MS);
}

static void pit_one_shot(void **state)
{
	(void)state;
	for (unsigned int mode = 0; mode <= 4; mode += 4) {
		unsigned int n = seen.rises;
		uint64_t from = monotonic();

		pit_program(0, mode, 5966); /* 5 ms: below the floor, but none was before it */
		assert_true(wait_rises(n + 1));
		assert_true(monotonic() - from >= 4900000);
		/* the next one comes as soon as the floor lets it, and once */
		pit_program(0, mode, 5966);
		assert_true(wait_rises(n + 2));
		assert_true(monotonic() - from >= 24900000);
		n++;
		sleep_ns(30 * MS);
		assert_int_equal(seen.rises, n + 1);
		/* loading it again arms it again, as the kernel's tick device does */
		outb(0x40, 100);
		sleep_ns(3 * MS);
		assert_int_equal(seen.rises, n + 1); /* half a count */
		outb(0x40, 0);
		assert_true(wait_rises(n + 2));
	}
}

/* The processor time of the guest: `cpu_percent` of the time since `cpu_from`. */
static bool guest_runs;
static uint64_t cpu_from, cpu_percent;

static bool runs(void *ctx, uint64_t *cpu_ns)
{
	assert_ptr_equal(ctx, &guest_runs);
	*cpu_ns = (monotonic() - cpu_from) * cpu_percent / 100;
	return guest_runs;
}

/* Floor 20 ms. */
static void pit_waits_for_the_guest_to_run(void **state)
{
	struct err e = { 0 };
	uint64_t from;

	(void)state;
	clean(state);
	assert_int_equal(pit_init(&pit, &bus, irq_line, (struct pit_load){ runs, &guest_runs },
				  20 * MS, &e),
			 0);
	assert_int_equal(pit_start(&pit, &e), 0);
	guest_runs = true;
	cpu_from = monotonic();
	cpu_percent = 20;
	from = monotonic();
	pit_program(0, 2, 1193);
	assert_true(wait_rises(3)); /* two times 20 ms of a fifth of a processor between them */
	assert_true(monotonic() - from >= 190 * MS);
	/* asleep: nothing to wait for */
	guest_runs = false;
	assert_true(wait_rises(seen.rises + 1));
	from = monotonic();
	assert_true(wait_rises(seen.rises + 3));
	assert_true(monotonic() - from >= 39 * MS);
	assert_int_equal(pit.put_off, 0);
	/* a guest that gets nothing at all is interrupted in the end: after 20 times 20 ms */
	guest_runs = true;
	cpu_percent = 0;
	from = monotonic();
	assert_true(wait_rises(seen.rises + 2));
	assert_true(monotonic() - from >= 390 * MS);
	pit_deinit(&pit);
}

static void pit_channel_2_and_port_61(void **state)
{
	uint64_t from, end;

	(void)state;
	assert_int_equal(inb(0x61) & 0x21, 0);
	outb(0x61, 0x01);
	assert_int_equal(inb(0x61) & 0x21, 0x01);
	/* how a TSC is calibrated: mode 0, then wait until the output rises */
	from = monotonic();
	pit_program(2, 0, 11932); /* 10 ms */
	if (monotonic() - from < 5 * MS)
		assert_int_equal(inb(0x61) & 0x20, 0);
	end = from + 10000 * MS;
	while (!(inb(0x61) & 0x20) && monotonic() < end)
		sleep_ns(MS / 10);
	assert_int_equal(inb(0x61) & 0x20, 0x20);
	assert_true(monotonic() - from >= 9900000);
	/* the rise of the gate starts it again */
	outb(0x61, 0x00);
	assert_int_equal(inb(0x61) & 0x01, 0);
	from = monotonic();
	outb(0x61, 0x01);
	assert_true(!(inb(0x61) & 0x20) || monotonic() - from >= 9900000);
	assert_int_equal(seen.rises, 0); /* channel 2 has no interrupt */

	/* the refresh toggle moves: delay loops of old wait for it */
	{
		uint8_t was = inb(0x61) & 0x10;

		end = monotonic() + 10000 * MS;
		while ((inb(0x61) & 0x10) == was && monotonic() < end)
			;
		assert_true(monotonic() < end);
	}
}

int main(void)
{
#define PIT_TEST(f) cmocka_unit_test_setup_teardown(f, with_pit, without_pit)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pit_lifecycle),
		PIT_TEST(pit_count_latch),
		PIT_TEST(pit_counts_down_with_true_time),
		PIT_TEST(pit_read_back),
		PIT_TEST(pit_periodic_with_floor),
		PIT_TEST(pit_one_shot),
		PIT_TEST(pit_channel_2_and_port_61),
		cmocka_unit_test(pit_waits_for_the_guest_to_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
