// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ring-3 part of the demo kernel. The linker script places the code of this file at a low
 * address in user pages, so the file must not refer to anything outside of it and has no data.
 */
#include "demo.h"
#include "pages.h"
#include "selfcheck.h"

demo_function u64 user_leaf_long(u64 budget);
demo_function u64 user_leaf_long(u64 budget)
{
	return spin(budget);
}

demo_function u64 user_middle(u64 budget);
demo_function u64 user_middle(u64 budget)
{
	u64 spent = user_leaf_long(budget);

	demo_keep(spent);
	return spent;
}

demo_function u64 user_leaf_short(u64 budget);
demo_function u64 user_leaf_short(u64 budget)
{
	return spin(budget);
}

/*
 * Spends phase i of each round, up to an absolute time: even after a late phase the next one ends
 * on time.
 */
#define PHASE(i)                                     \
	demo_function u64 user_phase_##i(u64 until); \
	demo_function u64 user_phase_##i(u64 until)  \
	{                                            \
		u64 now;                             \
                                                     \
		demo_frame();                        \
		do                                   \
			now = rdtsc();               \
		while ((long)(now - until) < 0);     \
		return now;                          \
	}

PHASE(0)
PHASE(1)
PHASE(2)
PHASE(3)
PHASE(4)
PHASE(5)
PHASE(6)
PHASE(7)

demo_function u64 user_where(u64 budget);
demo_function u64 user_where(u64 budget)
{
	union user_box *box = user_box();
	u64 start = rdtsc(), now = start, was;

	demo_frame();
	do {
		was = now;
		now = rdtsc();
		if (now - was > box->where.gap)
			box->where.stolen += now - was;
	} while (now - start < budget);
	return now - start;
}

demo_function u64 user_phases(void);
demo_function u64 user_phases(void)
{
	union user_box *box = user_box();
	u64 until, was, now, start;

	demo_frame();
	start = until = now = rdtsc();
	while (now - start < box->phases.end) {
#define TURN(i)                      \
	was = now;                   \
	until += box->phases.step;   \
	now = user_phase_##i(until); \
	box->phases.spent[i] += now - was;
		TURN(0)
		TURN(1)
		TURN(2)
		TURN(3)
		TURN(4)
		TURN(5)
		TURN(6)
		TURN(7)
	}
	return now - start;
}

/* Reads the clock all the time, and records each gap in which it was not running. */
demo_function u64 user_gaps(void);
demo_function u64 user_gaps(void)
{
	union user_box *box = user_box();
	u64 last = rdtsc(), now;

	demo_frame();
	while (!box->gaps.stop) {
		now = rdtsc();
		if (now - last > box->gaps.threshold) {
			u64 n = box->gaps.n;

			box->gaps.gap[n % 512].kind = (u32)box->gaps.kind;
			box->gaps.gap[n % 512].cycles = (u32)(now - last);
			box->gaps.n = n + 1;
		}
		last = now;
		box->gaps.tsc = now;
		box->gaps.iterations++;
	}
	return last;
}

demo_function u64 user_descend(u64 depth);
demo_function u64 user_descend(u64 depth)
{
	u64 spent = depth > 1 ? user_descend(depth - 1) : user_gaps();

	demo_keep(spent);
	return spent;
}

/* Entered by enter_user as if called from address 0; ends in the int 0x80
 * gate, which takes the result from rax and does not come back. */
demo_function void user_main(u64 which, u64 budget)
{
	u64 spent;

	if (which == USER_WHERE)
		spent = user_where(budget);
	else if (which == USER_LONG)
		spent = user_middle(budget);
	else if (which == USER_PAGES || which == USER_PAGES_NO_1G)
		spent = pages_user(budget, which == USER_PAGES ? PAGES_1G : PAGES_2M);
	else if (which == USER_PHASES)
		spent = user_phases();
	else if (which == USER_GAPS)
		spent = user_descend(budget);
	else if (which == USER_SELFCHECK)
		spent = selfcheck_user((struct selfcheck *)user_box());
	else
		spent = user_leaf_short(budget);
	__asm__ volatile("int $0x80" : : "a"(spent) : "memory");
	for (;;)
		;
}
