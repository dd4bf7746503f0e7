// SPDX-License-Identifier: GPL-2.0-or-later
/* mode=selfcheck in ring 3: general, FPU and SSE registers, MXCSR, the FS base. */
#include "selfcheck.h"

static inline __attribute__((always_inline)) void fx_patterns(struct selfcheck *s)
{
	u8 *fx = (u8 *)s->fx_put;

	/* Otherwise valid: no pending exceptions, all of them masked. */
	__asm__ volatile("fninit\n\tfxsave64 %0" : "=m"(s->fx_put));
	fx[4] = 0xff; /* all FPU registers are in use */
	*(u32 *)(fx + SELFCHECK_FX_MXCSR) = 0x1fbf;
	for (u64 i = 0; i < 8; i++) {
		u8 *st = fx + SELFCHECK_FX_ST + 16 * i;

		*(u64 *)st = selfcheck_pattern(s->turns, 32 + i) | 1ul << 63;
		*(u16 *)(st + 8) = (u16)(0x3ff0 + s->turns % 16);
	}
	for (u64 i = 0; i < 32; i++)
		*(u64 *)(fx + SELFCHECK_FX_XMM + 8 * i) = selfcheck_pattern(s->turns, 64 + i);
}

demo_function void selfcheck_user_turn(struct selfcheck *s);
demo_function void selfcheck_user_turn(struct selfcheck *s)
{
	u64 fs;

	demo_frame();
	fx_patterns(s);
	selfcheck_turn(s);
	/*
	 * Skips the addresses of the last instruction and operand, which processors keep
	 * differently.
	 */
	for (u64 i = 0; i < SELFCHECK_FX_LEN / 8; i++)
		if (i != 1 && i != 2)
			selfcheck_differ(s, SELFCHECK_AT_FX + i, s->fx_put[i], s->fx_got[i]);
	/* The first word of the structure is put[0] of this turn. */
	__asm__ volatile("movq %%fs:0, %0" : "=r"(fs));
	selfcheck_differ(s, SELFCHECK_AT_FS, s->put[0], fs);
}

u64 selfcheck_user(struct selfcheck *s)
{
	u64 start = rdtsc(), now;

	demo_frame();
	do {
		selfcheck_user_turn(s);
		now = rdtsc();
	} while (now - start < s->end);
	return now - start;
}
