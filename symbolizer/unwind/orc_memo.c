/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/orc_memo.h"

#include <stdlib.h>

_Static_assert(ORC_MEMO_SLOTS == 1u << 16, "orc_memo_at() takes so many bits");

struct orc_memo *orc_memo_create(void)
{
	return calloc(1, sizeof(struct orc_memo));
}

void orc_memo_destroy(struct orc_memo *m)
{
	free(m);
}

void orc_memo_clear(struct orc_memo *m)
{
	for (unsigned int i = 0; m && i < ORC_MEMO_SLOTS; i++)
		if (m->slot[i].ret)
			m->slot[i].ret = 0;
}
