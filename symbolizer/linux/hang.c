/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/hang.h"

#include "base/cleanup.h"

#include <string.h>

/* No member of the table has a larger offset. */
#define MAX_OFFSET (1u << 20)

struct hang_row {
	const char *structure, *path;
};

static const struct hang_row rows[LINUX_HANG_MEMBERS] = {
#define HANG_ROW(name, structure, path) { structure, path },
	LINUX_HANG_TABLE(HANG_ROW)
#undef HANG_ROW
};

static int64_t enumerator(const struct types *t, const char *name)
{
	int64_t v;

	return t->enumerator(t->ctx, name, &v) || v < 0 ? -1 : v;
}

static uint32_t size_of(const struct types *t, const char *structure)
{
	uint64_t v;

	return t->size(t->ctx, structure, &v) || v > MAX_OFFSET ? 0 : (uint32_t)v;
}

void linux_hang_layout(struct linux_hang_layout *out, const struct types *types)
{
	memset(out, 0, sizeof(*out));
	out->running = out->in_flight = -1;
	out->free_pages = out->oneshot = out->oom_kill = -1;
	out->scans[0] = out->scans[1] = out->steals[0] = out->steals[1] = -1;
	for (size_t i = 0; i < LINUX_HANG_MEMBERS; i++) {
		struct type_member m;

		out->off[i] = LINUX_HANG_NONE;
		if (!types || types->member(types->ctx, rows[i].structure, rows[i].path, &m) ||
		    m.bit_count || m.off > MAX_OFFSET)
			continue;
		out->off[i] = m.off;
		out->len[i] = m.size;
	}
	if (!types)
		return;
	out->pool_size = size_of(types, "worker_pool");
	out->zone_size = size_of(types, "zone");
	out->running = enumerator(types, "SYSTEM_RUNNING");
	out->in_flight = enumerator(types, "MQ_RQ_IN_FLIGHT");
	out->free_pages = enumerator(types, "NR_FREE_PAGES");
	out->scans[0] = enumerator(types, "PGSCAN_DIRECT");
	out->scans[1] = enumerator(types, "PGSCAN_KSWAPD");
	out->steals[0] = enumerator(types, "PGSTEAL_DIRECT");
	out->steals[1] = enumerator(types, "PGSTEAL_KSWAPD");
	out->oom_kill = enumerator(types, "OOM_KILL");
	out->oneshot = enumerator(types, "CLOCK_EVT_STATE_ONESHOT");
}

bool linux_hang_read(const struct linux_hang_layout *l, const struct memory *m, uint64_t at,
		     enum linux_hang_member member, uint64_t *out)
{
	uint64_t v = 0;
	uint32_t len = l->len[member];

	if (!linux_hang_has(l, member) || !(at >> 63))
		return false;
	/* Of a longer member the first word is read, as of an atomic_t or another structure. */
	len = len >= 8 ? 8 : len >= 4 ? 4 : len >= 2 ? 2 : 1;
	if (!memory_read(m, MEMORY_KERNEL, at + l->off[member], &v, len))
		return false;
	*out = v;
	return true;
}
