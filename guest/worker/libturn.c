/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One of two libraries that are loaded in turn. They differ only in their names, so that both get
 * the same addresses. TURN: turn_one or turn_two.
 */
#include "worker.h"

unsigned long TURN(unsigned long rounds);

worker_function unsigned long TURN(unsigned long rounds)
{
	unsigned long x = 1;

	keep_frame();
	while (rounds--)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	return x;
}
