/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/spaces.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void spaces_deinit(struct spaces *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->space[i].map);
	free(s->space);
	idmap_deinit(&s->by_pid);
	*s = (struct spaces){ 0 };
}

static int no_memory(struct err *e)
{
	return err_set(e, ENOMEM, "out of memory for mappings");
}

uint32_t spaces_of(const struct spaces *s, uint32_t pid)
{
	uint32_t space = SPACE_NONE;

	idmap_get(&s->by_pid, pid, &space);
	return space;
}

/* Returns the index of the first mapping that ends after addr; n if there is none. */
static uint32_t first_behind(const struct space *sp, uint64_t addr)
{
	uint32_t lo = 0, hi = sp->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (sp->map[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct mapping *spaces_find(const struct spaces *s, uint32_t space, uint64_t addr)
{
	const struct space *sp;
	uint32_t i;

	if (space >= s->n)
		return NULL;
	sp = &s->space[space];
	i = first_behind(sp, addr);
	return i < sp->n && sp->map[i].addr <= addr ? &sp->map[i] : NULL;
}

/* -- changes --------------------------------------------------------------------------- */

static int reserve(struct spaces *s, struct space *sp, uint32_t more, struct err *e)
{
	if (s->maps + more > SPACES_MAX_MAPS)
		return -E2BIG;
	return ARRAY_FIT(sp->map, sp->n + more, sp->cap) ? no_memory(e) : 0;
}

static int new_space(struct spaces *s, uint32_t *out, struct err *e)
{
	/* The first space is SPACE_NONE. */
	size_t want = s->n ? 1 : 2;

	if (s->n >= SPACES_MAX)
		return -E2BIG;
	if (ARRAY_FIT(s->space, s->n + want, s->cap))
		return no_memory(e);
	memset(s->space + s->n, 0, want * sizeof(*s->space));
	s->n += want;
	*out = (uint32_t)s->n - 1;
	return 0;
}

/* Gives pid a space. SPACE_NONE counts no users. */
static int enter(struct spaces *s, uint32_t pid, uint32_t space, struct err *e)
{
	uint32_t old = spaces_of(s, pid);

	if (idmap_set(&s->by_pid, pid, space) < 0)
		return no_memory(e);
	if (old != SPACE_NONE)
		s->space[old].users--;
	if (space != SPACE_NONE)
		s->space[space].users++;
	return 0;
}

int spaces_fork(struct spaces *s, uint32_t pid, uint32_t ppid, struct err *e)
{
	return pid == ppid ? 0 : enter(s, pid, spaces_of(s, ppid), e);
}

int spaces_clear(struct spaces *s, uint32_t pid, struct err *e)
{
	return enter(s, pid, SPACE_NONE, e);
}

int spaces_clear_all(struct spaces *s, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < s->by_pid.pairs.n; i++)
		ret = spaces_clear(s, ((const struct idmap_pair *)s->by_pid.pairs.item)[i].key, e);
	return ret;
}

static void spaces_put(struct spaces *s, struct space *sp, const struct mapping *m)
{
	sp->map[sp->n++] = *m;
	s->maps++;
}

/* Creates a space like `old` with m on top: up to two pieces of a covered mapping remain. */
static int copy_with(struct spaces *s, uint32_t old, const struct mapping *m, uint32_t *out,
		     struct err *e)
{
	bool done = false;
	struct space *to;
	const struct space *from;
	int ret = new_space(s, out, e);

	if (ret)
		return ret;
	to = &s->space[*out];
	from = &s->space[old];
	ret = reserve(s, to, from->n + 2, e);
	for (uint32_t i = 0; !ret && i < from->n; i++) {
		struct mapping below = from->map[i], above = below;

		if (below.end > m->addr)
			below.end = m->addr;
		if (below.addr < below.end)
			spaces_put(s, to, &below);
		if (above.addr < m->end) {
			above.pgoff += m->end - above.addr;
			above.addr = m->end;
		}
		if (above.addr >= above.end)
			continue;
		if (!done)
			spaces_put(s, to, m);
		done = true;
		spaces_put(s, to, &above);
	}
	if (!ret && !done)
		spaces_put(s, to, m);
	return ret;
}

/*
 * Returns how many mappings from sp->map[at] on are parts of m, if m is one mapping that has grown;
 * 0 if m replaces another one.
 */
static uint32_t grown_over(const struct space *sp, uint32_t at, const struct mapping *m)
{
	uint32_t n = 0;

	for (; at + n < sp->n && sp->map[at + n].addr < m->end; n++) {
		const struct mapping *old = &sp->map[at + n];

		if (old->addr < m->addr || old->end > m->end || old->dso != m->dso ||
		    old->pgoff - old->addr != m->pgoff - m->addr)
			return 0;
	}
	return n;
}

/* Replaces `covered` mappings from `at` on by m. */
static int put_at(struct spaces *s, struct space *sp, uint32_t at, uint32_t covered,
		  const struct mapping *m, struct err *e)
{
	int ret = covered ? 0 : reserve(s, sp, 1, e);

	if (ret)
		return ret;
	memmove(sp->map + at + 1, sp->map + at + covered,
		(sp->n - at - covered) * sizeof(*sp->map));
	sp->map[at] = *m;
	sp->n = sp->n + 1 - covered;
	s->maps = s->maps + 1 - covered;
	return 0;
}

static int put_mapping(struct spaces *s, uint32_t pid, const struct mapping *m, struct err *e)
{
	uint32_t now = spaces_of(s, pid), at = 0, covered = 0, made;
	struct space *sp = now != SPACE_NONE ? &s->space[now] : NULL;
	bool free_place = true;
	int ret;

	if (sp) {
		at = first_behind(sp, m->addr);
		free_place = at == sp->n || sp->map[at].addr >= m->end;
		/* perf and kvmprof may report a mapping twice. */
		if (!free_place && !memcmp(&sp->map[at].addr, &m->addr, 24) &&
		    sp->map[at].dso == m->dso)
			return 0;
		covered = free_place ? 0 : grown_over(sp, at, m);
	}
	if (sp && (free_place || covered) && sp->users == 1)
		return put_at(s, sp, at, covered, m, e);
	if (!sp) {
		ret = new_space(s, &made, e);
		if (ret)
			return ret;
		ret = reserve(s, &s->space[made], 1, e);
		if (ret)
			return ret;
		spaces_put(s, &s->space[made], m);
	} else {
		ret = copy_with(s, now, m, &made, e);
		if (ret)
			return ret;
	}
	return enter(s, pid, made, e);
}

int spaces_map(struct spaces *s, uint32_t pid, const struct mapping *m, struct err *e)
{
	int ret = m->end > m->addr ? put_mapping(s, pid, m, e) : 0;

	if (ret != -E2BIG)
		return ret;
	s->left_out++;
	return spaces_clear(s, pid, e);
}
