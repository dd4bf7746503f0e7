// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mode=where [ports=P halted=H]: for seconds=N spends P percent (30) of the time at a device's
 * port, H percent (20) halted, the rest in ring 3; then prints the real shares, in percent of the
 * time between "demo: start" and the first of these lines:
 *
 *   where ports|halted|user|other|stolen <percent>
 *
 * "other" is ring 0 between two slices. Time that the host took away while the guest had work is
 * "stolen", and in none of the others: a gap that its own work cannot explain. Waiting for a
 * processor after a wake-up counts as halted. The shares are of the time that is not stolen.
 */
#include "demo.h"

/* The scratch register of the first serial line: a device register without effects. */
#define PORT_SCRATCH 0x3ff
/* An access takes tens of us where ring 0 is interpreted, a tick's handler as much. */
#define GAP_US 300u
#define SLICE_MS 4u

enum { PORTS, HALTED, USER, ACTS };

static u64 gap, stolen;

demo_function void where_port(void);
demo_function void where_port(void)
{
	outb(PORT_SCRATCH, 0x55);
	demo_frame();
}

demo_function u64 where_ports(u64 budget);
demo_function u64 where_ports(u64 budget)
{
	u64 start = rdtsc(), now = start, was;

	demo_frame();
	do {
		was = now;
		where_port();
		now = rdtsc();
		if (now - was > gap)
			stolen += now - was;
	} while (now - start < budget);
	return now - start;
}

static u64 act(u32 what, u64 budget)
{
	union user_box *box = user_box();
	u64 spent, before = stolen;

	switch (what) {
	case PORTS:
		spent = where_ports(budget);
		return spent - (stolen - before);
	case HALTED:
		return idle_wait(1); /* to the next tick */
	default:
		box->where.gap = gap;
		box->where.stolen = 0;
		spent = enter_user(USER_WHERE, budget);
		stolen += box->where.stolen;
		return spent - box->where.stolen;
	}
}

static void tell(const char *name, u64 part, u64 whole)
{
	put_string("where ");
	put_string(name);
	put_string(" ");
	put_percent(part, whole);
	put_string("\n");
}

void where_run(const char *line, u64 khz, u64 seconds)
{
	u64 share[ACTS] = { option_number(line, "ports=", 30), option_number(line, "halted=", 20) };
	u64 spent[ACTS] = { 0 }, start, now, other, total;

	if (share[PORTS] + share[HALTED] > 99)
		share[PORTS] = share[HALTED] = 33;
	share[USER] = 100 - share[PORTS] - share[HALTED];
	gap = khz * GAP_US / 1000;
	stolen = 0;
	put_string("demo: start\n");
	start = now = rdtsc();
	while (now - start < khz * 1000 * seconds) {
		u32 next = USER;

		/* Chooses the slice whose share is behind. */
		for (u32 i = 0; i < USER; i++)
			if (spent[i] * 100 < (now - start - stolen) * share[i])
				next = i;
		spent[next] += act(next, khz * SLICE_MS);
		now = rdtsc();
	}
	total = now - start;
	other = total - stolen;
	for (u32 i = 0; i < ACTS; i++)
		other -= spent[i];
	tell("ports", spent[PORTS], total);
	tell("halted", spent[HALTED], total);
	tell("user", spent[USER], total);
	tell("other", other, total);
	tell("stolen", stolen, total);
}
