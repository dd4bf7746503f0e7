/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_leb: reads numbers of variable length (DWARF 5, 7.6). A number that does not fit in 64 bits,
 * or does not end within the cursor, sets c->bad. Only for files in this folder. Pure functions;
 * any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_LEB_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_LEB_H

#include "base/cursor.h"

#define CFI_LEB_MAX 10u /* bytes: 64 bits by 7 each */

/* Reads the bits of a number; *shift receives their count, *last the last byte. */
static inline uint64_t cfi_leb(struct cursor *c, unsigned int *shift, uint8_t *last)
{
	uint64_t v = 0;

	*shift = 0;
	for (unsigned int i = 0; i < CFI_LEB_MAX; i++) {
		*last = cursor_u8(c);
		v |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
		if (!(*last & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

/* Reads an unsigned number. Returns 0 with c->bad set on error. */
static inline uint64_t cfi_uleb(struct cursor *c)
{
	unsigned int shift;
	uint8_t last;

	return cfi_leb(c, &shift, &last);
}

/* Reads a signed number, in the same way. */
static inline int64_t cfi_sleb(struct cursor *c)
{
	unsigned int shift;
	uint8_t last;
	uint64_t v = cfi_leb(c, &shift, &last);

	if (!c->bad && (last & 0x40) && shift < 64)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

#endif
