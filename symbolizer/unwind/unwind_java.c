/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of HotSpot's interpreter, which is code made at run time itself.
 *
 * It does not call a method: it pushes the address at which it wants to go on and jumps. What is
 * there takes rsp from the frame at once, and clears the place that had it (src/hotspot/cpu/x86,
 * TemplateInterpreterGenerator::generate_return_entry_for; frame_x86.hpp):
 *
 *	up to 17 or so	mov -0x10(%rbp), %rsp			movq $0, -0x10(%rbp)
 *	since then	mov -0x10(%rbp), %rcx
 *			lea (%rbp,%rcx,8), %rsp			movq $0, -0x10(%rbp)
 *
 * So rbp is the address of its frame there. Below it is the caller's rsp, which is not the end of
 * the frame: the method's locals lie between them, and what adapts a call of compiled code.
 */
#include "symbolizer/unwind/walk.h"

#include <string.h>

/* Locals and an adapter's arguments: 65535 of the former at most, 255 of the latter. */
#define JAVA_MAX_LOCALS (65536u * 8 + 4096)

bool walk_java_return(const struct walk *w, uint64_t ret)
{
	static const uint8_t
		moves[] = { 0x48, 0x8b, 0x65, 0xf0, 0x48, 0xc7, 0x45, 0xf0, 0, 0, 0, 0 },
		scales[] = { 0x48, 0x8b, 0x4d, 0xf0, 0x48, 0x8d, 0x64, 0xcd, 0x00,
			     0x48, 0xc7, 0x45, 0xf0, 0,	   0,	 0,    0 };
	uint8_t p[sizeof(scales)];

	return w->program && w->u->read_text(w->u->ctx, ret, p, sizeof(p)) == sizeof(p) &&
	       (!memcmp(p, moves, sizeof(moves)) || !memcmp(p, scales, sizeof(scales)));
}

bool walk_java_sender(const struct walk *w, uint64_t fp, bool calls, uint64_t *rsp)
{
	uint64_t below
		[2]; /* what it comes back to from a method, 0 outside of calls; the caller's rsp */

	if (fp % 8 || walk_read(w, fp - 16, below, sizeof(below)) < 0 || !below[0] == calls)
		return false;
	if (below[1] % 8 || below[1] < fp + 16 || below[1] - fp > JAVA_MAX_LOCALS)
		return false;
	*rsp = below[1];
	return true;
}
