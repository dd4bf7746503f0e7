// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The call trees of the demo kernel. Only leaves spend time. main.c has a table with the stack of
 * each leaf, which must match the functions here.
 *
 *   flat_spin                                    depth 1
 *   tree_enter_*, tree_top, tree_left/right, ..  two leaves below common nodes
 *   share_from_a/b, shared_leaf                  one leaf, two callers
 *   deep_01 .. deep_20                           depth 20
 *   recurse_enter, recurse x 12, recurse_leaf    recursion of known depth
 *   irqoff_outer, irqoff_leaf                    interrupts off
 *   idle_wait                                    halted
 *   ports_write, ports_a/b, ports_leaf           one port write after the other, on request
 */
#include "demo.h"

#define RECURSE_DEPTH 12

#define LEAF(name)                          \
	demo_function u64 name(u64 budget); \
	demo_function u64 name(u64 budget)  \
	{                                   \
		return spin(budget);        \
	}

#define NODE(name, callee)                  \
	demo_function u64 name(u64 budget); \
	demo_function u64 name(u64 budget)  \
	{                                   \
		u64 spent = callee(budget); \
                                            \
		demo_keep(spent);           \
		return spent;               \
	}

LEAF(flat_spin)

LEAF(left_leaf)
LEAF(right_leaf)
NODE(tree_left, left_leaf)
NODE(tree_right, right_leaf)

demo_function u64 tree_top(int right, u64 budget);
demo_function u64 tree_top(int right, u64 budget)
{
	u64 spent = right ? tree_right(budget) : tree_left(budget);

	demo_keep(spent);
	return spent;
}

demo_function u64 tree_enter_left(u64 budget)
{
	u64 spent = tree_top(0, budget);

	demo_keep(spent);
	return spent;
}

demo_function u64 tree_enter_right(u64 budget)
{
	u64 spent = tree_top(1, budget);

	demo_keep(spent);
	return spent;
}

LEAF(shared_leaf)
NODE(share_from_a, shared_leaf)
NODE(share_from_b, shared_leaf)

LEAF(deep_20)
NODE(deep_19, deep_20)
NODE(deep_18, deep_19)
NODE(deep_17, deep_18)
NODE(deep_16, deep_17)
NODE(deep_15, deep_16)
NODE(deep_14, deep_15)
NODE(deep_13, deep_14)
NODE(deep_12, deep_13)
NODE(deep_11, deep_12)
NODE(deep_10, deep_11)
NODE(deep_09, deep_10)
NODE(deep_08, deep_09)
NODE(deep_07, deep_08)
NODE(deep_06, deep_07)
NODE(deep_05, deep_06)
NODE(deep_04, deep_05)
NODE(deep_03, deep_04)
NODE(deep_02, deep_03)
NODE(deep_01, deep_02)

LEAF(recurse_leaf)

demo_function u64 recurse(unsigned int depth, u64 budget);
demo_function u64 recurse(unsigned int depth, u64 budget)
{
	u64 spent = depth > 1 ? recurse(depth - 1, budget) : recurse_leaf(budget);

	demo_keep(spent);
	return spent;
}

demo_function u64 recurse_enter(u64 budget)
{
	u64 spent = recurse(RECURSE_DEPTH, budget);

	demo_keep(spent);
	return spent;
}

u64 irqoff_saw_if;

demo_function u64 irqoff_leaf(u64 budget);
demo_function u64 irqoff_leaf(u64 budget)
{
	u64 flags, spent = spin(budget);

	/* After the work: an interrupt meanwhile would have passed here. */
	__asm__ volatile("pushfq; popq %0" : "=r"(flags));
	irqoff_saw_if |= flags & 0x200;
	return spent;
}

demo_function u64 irqoff_outer(u64 budget)
{
	u64 spent;

	__asm__ volatile("cli" : : : "memory");
	spent = irqoff_leaf(budget);
	__asm__ volatile("sti" : : : "memory");
	return spent;
}

/*
 * Halts until the budget is used up. A halt ends with the next IRQ 0, so this may overrun by one of
 * its periods.
 */
demo_function u64 idle_wait(u64 budget)
{
	u64 start = rdtsc(), spent;

	demo_frame();
	do {
		__asm__ volatile("hlt" : : : "memory");
		spent = rdtsc() - start;
	} while (spent < budget);
	return spent;
}

demo_function void crash_now(int divide);
demo_function void crash_now(int divide)
{
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) none = { 0, 0 };

	demo_frame();
	if (divide) {
		u32 zero = 0;

		demo_keep(zero);
		__asm__ volatile("divl %0" : : "r"(zero), "a"(1), "d"(0));
	}
	/* #UD, no gate for it: #GP, #DF, shutdown */
	__asm__ volatile("lidt %0; ud2" : : "m"(none));
}

demo_function void crash_middle(int divide);
demo_function void crash_middle(int divide)
{
	crash_now(divide);
	demo_keep(divide);
}

demo_function void crash_outer(int divide)
{
	crash_middle(divide);
	demo_keep(divide);
}

/* -- port writes: as many VM exits on a machine whose VMM has the port's device ---------- */

#define PORT_POST 0x80 /* the port of the BIOS's progress codes; writes have no effect */

demo_function void ports_leaf(u64 count);
demo_function void ports_leaf(u64 count)
{
	demo_frame();
	for (u64 i = 0; i < count; i++)
		outb(PORT_POST, (u8)i);
}

demo_function u64 ports_a(u64 count);
demo_function u64 ports_a(u64 count)
{
	ports_leaf(count);
	demo_keep(count);
	return count;
}

demo_function u64 ports_b(u64 count);
demo_function u64 ports_b(u64 count)
{
	ports_leaf(count);
	demo_keep(count);
	return count;
}

/* Writes a quarter of them on one path, the rest on the other. */
demo_function void ports_write(u64 count)
{
	u64 done = ports_a(count / 4);

	done += ports_b(count - done);
	demo_keep(done);
}
