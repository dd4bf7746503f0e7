// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The modes of the demo kernel other than its shares:
 *
 *   mode=lockstep period_ns=N  ring 3 goes through eight functions, an eighth of N each,
 *                              for seconds=N; then "phase <i> <TSC cycles>" for each
 *   mode=gaps                  ring 3 notes when it does not run, 20 calls deep, until the
 *                              host ends it: tests/bench/bench_cost.c
 *   mode=selfcheck [spoil=N]   keeps known values in all registers for seconds=N and checks
 *                              whether they are still there: selfcheck.h
 *   mode=pvclock               prints the times that KVM reports, over seconds=N: pvclock.c
 *   mode=nested                runs a guest of its own half of the time: nested.c
 *   mode=serial                writes lines to the console, with some work in between
 *   mode=flood [bytes=N]       writes N bytes to the console as fast as it can, or for seconds=N:
 *                              "flood: start", lines of 64 bytes with their number, then
 *                              "flood: end"
 *   mode=where                 known shares of its time in ring 3, at a port, halted: where.c
 *   mode=halt                  halts until the host ends it, without a timer
 *   mode=ticks                 takes no interrupts for ten periods of the timer, then prints
 *                              "late ticks <N>": how many come within two periods
 *
 * The first two measure times that are too short for an interpreted ring 0, so they run in ring 3.
 */
#include "demo.h"
#include "selfcheck.h"

/* demo.lds and start.S: the virtual and physical address of the user's pages */
#define USER_VA 0x400000ul
#define USER_PA 0x1200000ul

#define DEPTH 20u

static void run_lockstep(const char *line, u64 khz, u64 seconds)
{
	union user_box *box = user_box();
	u64 period_ns = option_number(line, "period_ns=", 1000000);

	box->phases.end = khz * 1000 * seconds;
	box->phases.step = period_ns * khz / NR_PHASES / 1000000;
	for (u32 i = 0; i < NR_PHASES; i++)
		box->phases.spent[i] = 0;
	put_string("demo: start\n");
	enter_user(USER_PHASES, 0);
	for (u32 i = 0; i < NR_PHASES; i++) {
		put_string("phase ");
		put_number(i);
		put_string(" ");
		put_number(box->phases.spent[i]);
		put_string("\n");
	}
}

static void run_gaps(void)
{
	union user_box *box = user_box();

	box->gaps.stop = box->gaps.n = box->gaps.iterations = 0;
	box->gaps.threshold = ~0ul;
	box->gaps.magic = GAPS_MAGIC;
	put_string("gaps at ");
	put_number((u64)box - USER_VA + USER_PA);
	put_string("\n");
	enter_user(USER_GAPS, DEPTH);
}

demo_function void serial_writer(void);
demo_function void serial_writer(void)
{
	put_string("serial 0123456789abcdefghijklmnopqrstuvwxyz\n");
	demo_frame();
}

static void run_serial(u64 khz, u64 seconds)
{
	u64 start = rdtsc();

	put_string("demo: start\n");
	while (rdtsc() - start < khz * 1000 * seconds) {
		serial_writer();
		flat_spin(khz * 2);
	}
}

#define COM1 0x3f8
#define FLOOD_LINE 64u
#define FLOOD_LINES 16u

static void flood_number(char *line, u64 n)
{
	for (int i = 0; i < 8; i++)
		line[13 - i] = "0123456789abcdef"[n >> 4 * i & 15];
}

/* Writes with a string instruction: one exit for many bytes, if KVM does that. */
static void flood_write(const char *p, u64 n)
{
	demo_frame();
	__asm__ volatile("rep outsb" : "+S"(p), "+c"(n) : "d"(COM1) : "memory");
}

static void run_flood(const char *line, u64 khz, u64 seconds)
{
	static char text[FLOOD_LINES * FLOOD_LINE];
	u64 start = rdtsc(), bytes = option_number(line, "bytes=", 0), lines = 0;

	for (u32 i = 0; i < sizeof(text); i++)
		text[i] = i % FLOOD_LINE == FLOOD_LINE - 1 ? '\n' : '.';
	for (u32 i = 0; i < FLOOD_LINES; i++)
		for (u32 k = 0; k < 6; k++)
			text[i * FLOOD_LINE + k] = "flood "[k];
	put_string("flood: start\n");
	while (bytes ? lines * FLOOD_LINE < bytes : rdtsc() - start < khz * 1000 * seconds) {
		for (u32 i = 0; i < FLOOD_LINES; i++)
			flood_number(text + i * FLOOD_LINE, lines++);
		flood_write(text, sizeof(text));
	}
	put_string("flood: end\n");
}

static void run_ticks(u64 khz)
{
	u64 period = khz * 1000 / IRQ0_HZ, before;

	/* Waits until the middle between two ticks. */
	for (before = irq0_count; irq0_count == before;)
		;
	flat_spin(period / 2);
	__asm__ volatile("cli" ::: "memory");
	before = irq0_count;
	flat_spin(10 * period);
	__asm__ volatile("sti" ::: "memory");
	flat_spin(2 * period);
	put_string("late ticks ");
	put_number(irq0_count - before);
	put_string("\n");
}

demo_function void halt_leaf(void);
demo_function void halt_leaf(void)
{
	demo_frame();
	for (;;)
		__asm__ volatile("cli; hlt" : : : "memory");
}

static void run_halt(void)
{
	put_string("demo: start\n");
	halt_leaf();
}

int mode_run(const char *line, u64 khz, u64 seconds)
{
	if (option_is(line, "mode=", "lockstep"))
		run_lockstep(line, khz, seconds);
	else if (option_is(line, "mode=", "gaps"))
		run_gaps();
	else if (option_is(line, "mode=", "selfcheck"))
		selfcheck_run(line, khz, seconds);
	else if (option_is(line, "mode=", "pvclock"))
		pvclock_run(khz, seconds);
	else if (option_is(line, "mode=", "serial"))
		run_serial(khz, seconds);
	else if (option_is(line, "mode=", "flood"))
		run_flood(line, khz, seconds);
	else if (option_is(line, "mode=", "nested"))
		nested_run(khz, seconds);
	else if (option_is(line, "mode=", "where"))
		where_run(line, khz, seconds);
	else if (option_is(line, "mode=", "halt"))
		run_halt();
	else if (option_is(line, "mode=", "ticks"))
		run_ticks(khz);
	else
		return 0;
	return 1;
}
