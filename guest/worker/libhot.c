/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library in which the worker spends its time: a chain of three calls, the innermost of which is
 * local, so that only .symtab names it.
 */
#include "worker.h"

static worker_function unsigned long lib_inner(unsigned long rounds)
{
	unsigned long x = 1;

	keep_frame();
	while (rounds--)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	return x;
}

worker_function unsigned long lib_middle(unsigned long rounds)
{
	unsigned long x = lib_inner(rounds);

	keep_frame();
	return x + 1;
}

worker_function unsigned long lib_outer(unsigned long rounds)
{
	unsigned long x = lib_middle(rounds);

	keep_frame();
	return x + 1;
}
