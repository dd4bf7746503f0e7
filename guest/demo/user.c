// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ring-3 part of the demo kernel. The linker script puts this file's code
 * at a low address with user pages behind it: it must not refer to anything
 * outside itself, nor have data.
 */
#include "demo.h"
#include "pages.h"

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

/* Entered by enter_user as if called from address 0; ends in the int 0x80
 * gate, which takes the result from rax and does not come back. */
demo_function void user_main(u64 which, u64 budget)
{
	u64 spent;

	if (which == USER_LONG)
		spent = user_middle(budget);
	else if (which == USER_PAGES || which == USER_PAGES_NO_1G)
		spent = pages_user(budget, which == USER_PAGES ? PAGES_1G : PAGES_2M);
	else
		spent = user_leaf_short(budget);
	__asm__ volatile("int $0x80" : : "a"(spent) : "memory");
	for (;;)
		;
}
