/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/stop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static struct exact_shared page;
static const struct exact_expected expected = { .least = 500, .next = 1000, .nplaces = 3 };

/* A sample as it is asked for. */
static void begin(void)
{
	memset(&page, 0, sizeof(page));
	page.at = 1000;
	page.count = 990;
	page.ahead = 40;
	page.regs.rip = 0x1234;
	page.regs.efer = 0xd01;
}

static int take(struct exact_stop *s)
{
	struct err e = { 0 };
	int ret = exact_stop_take(&page, &expected, s, &e);

	assert_int_equal(ret, -e.code);
	return ret;
}

static void what_can_be_is_copied(void **state)
{
	struct exact_stop s;

	(void)state;
	begin();
	assert_int_equal(take(&s), 0);
	assert_int_equal(s.kind, EXACT_STOP_SAMPLE);
	assert_int_equal(s.at, 1000);
	assert_int_equal(s.count, 990);
	assert_int_equal(s.ahead, 40);
	assert_int_equal(s.regs.rip, 0x1234);
	assert_int_equal(s.regs.efer, 0xd01);
	page.reached = 3;
	page.at = 700;
	assert_int_equal(take(&s), 0);
	assert_int_equal(s.kind, EXACT_STOP_PLACE);
	assert_int_equal(s.place, 2);
	page.off = EXACT_OFF;
	assert_int_equal(take(&s), 0);
	assert_int_equal(s.kind, EXACT_STOP_POWEROFF);
	page.off = EXACT_EXIT | 0xabu << EXACT_EXIT_SHIFT;
	assert_int_equal(take(&s), 0);
	assert_int_equal(s.kind, EXACT_STOP_EXIT);
	assert_int_equal(s.status, 0xab);
}

/* Each word that an index, a count or a distance comes from. */
static void what_cannot_be_is_refused(void **state)
{
	struct exact_stop s = { .at = 7 };

	(void)state;
#define REFUSED(member, value)               \
	begin();                             \
	page.member = (value);               \
	assert_int_equal(take(&s), -EPROTO); \
	assert_int_equal(s.at, 7)
	REFUSED(reached, 4);
	REFUSED(reached, EXACT_MAX_PLACES + 1);
	REFUSED(reached, UINT32_MAX);
	REFUSED(at, 999);
	REFUSED(at, 1001);
	REFUSED(at, UINT64_MAX);
	REFUSED(ahead, EXACT_MAX_AHEAD + 1);
	REFUSED(ahead, UINT64_MAX);
	REFUSED(off, 3);
	REFUSED(off, EXACT_OFF | 1u << EXACT_EXIT_SHIFT);
	REFUSED(off, EXACT_EXIT | 0x100u << EXACT_EXIT_SHIFT);
	REFUSED(off, UINT32_MAX);
#undef REFUSED
	/* A place before what was executed already, or behind the next sample. */
	begin();
	page.reached = 1;
	page.at = 499;
	assert_int_equal(take(&s), -EPROTO);
	page.at = 1001;
	assert_int_equal(take(&s), -EPROTO);
}

static void counts_have_bounds(void **state)
{
	const struct exact_expected last = { .least = 5, .next = UINT64_MAX };

	(void)state;
	begin();
	page.count = 0;
	assert_int_equal(exact_stop_count(&page, &expected), 500);
	page.count = UINT64_MAX;
	assert_int_equal(exact_stop_count(&page, &expected), 1000);
	assert_int_equal(exact_stop_count(&page, &last), EXACT_MAX_COUNT);
	page.count = 700;
	assert_int_equal(exact_stop_count(&page, &expected), 700);
}

static void errors_are_printable_and_end(void **state)
{
	struct exact_hello h;

	(void)state;
	memset(&page, 0x1b, sizeof(page));
	exact_stop_read_hello(&page, &h);
	assert_int_equal(strlen(h.error), sizeof(h.error) - 1);
	assert_int_equal(strspn(h.error, "?"), strlen(h.error));
	memset(&page, 0, sizeof(page));
	strcpy(page.error, "why");
	exact_stop_read_hello(&page, &h);
	assert_string_equal(h.error, "why");
}

static atomic_bool quit;

static void *flip(void *ctx)
{
	exact_page *p = &page;

	(void)ctx;
	while (!quit) {
		p->reached = 201;
		p->off = UINT32_MAX;
		p->ahead = UINT64_MAX;
		p->at = 0;
		p->reached = 1;
		p->off = 0;
		p->ahead = 0;
		p->at = 1000;
	}
	return NULL;
}

/* Whatever is taken while it changes holds for all that was checked. */
static void nothing_is_read_twice(void **state)
{
	unsigned int taken = 0, refused = 0;
	struct exact_stop s;
	pthread_t thread;

	(void)state;
	begin();
	assert_int_equal(pthread_create(&thread, NULL, flip, NULL), 0);
	while ((taken < 1000 || refused < 1000) && taken + refused < 20000000) {
		struct err e = { 0 };

		if (exact_stop_take(&page, &expected, &s, &e)) {
			refused++;
			continue;
		}
		taken++;
		assert_true(s.place < expected.nplaces);
		assert_true(s.ahead <= EXACT_MAX_AHEAD);
		assert_int_equal(s.at, 1000);
		assert_true(s.kind == EXACT_STOP_SAMPLE || s.kind == EXACT_STOP_PLACE);
	}
	atomic_store(&quit, true);
	pthread_join(thread, NULL);
	assert_true(refused > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_be_is_copied),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(counts_have_bounds),
		cmocka_unit_test(errors_are_printable_and_end),
		cmocka_unit_test(nothing_is_read_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
