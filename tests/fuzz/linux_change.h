/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes the guest of tests/unit/linux_mm_fixture.h as a fuzz target's input states: u16 place, u8
 * operation, u8 value, and so on. Place and value are in units of 8-byte words and 256-byte pages,
 * so that pointers are easily changed to others.
 */
#ifndef KVMPROF_TESTS_LINUX_CHANGE_H
#define KVMPROF_TESTS_LINUX_CHANGE_H

#include "base/cursor.h"
#include "tests/unit/linux_mm_fixture.h"

static void linux_change(struct lm *g, struct cursor *c)
{
	while (cursor_left(c) >= 4) {
		uint32_t place = cursor_u16(c);
		uint8_t what = cursor_u8(c), v = cursor_u8(c), *at;
		uint64_t word;

		/* The upper places are the struct pages. */
		if (place * 8 < g->used)
			at = g->arena + place * 8;
		else
			at = g->pages + place * 8 % sizeof(g->pages);
		memcpy(&word, at, 8);
		switch (what % 8) {
		case 0:
			word = v;
			break;
		case 1:
			word ^= UINT64_C(1) << (v & 63);
			break;
		case 2:
			word += v;
			break;
		case 3:
			word -= v;
			break;
		case 4:
			word += (uint64_t)v * 256;
			break;
		case 5:
			word -= (uint64_t)v * 256;
			break;
		case 6:
			word = LM_DIRECT + (uint64_t)v * 256 + what / 8;
			break;
		default:
			word = UINT64_MAX - v;
			break;
		}
		memcpy(at, &word, 8);
	}
}

#endif
