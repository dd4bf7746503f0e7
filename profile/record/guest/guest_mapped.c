/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/guest_mapped.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

void guest_mapped_deinit(struct guest_mapped *m)
{
	linux_vmas_deinit(&m->vmas);
	free(m->mark);
	*m = (struct guest_mapped){ 0 };
}

/* Never 0. */
static uint64_t path_hash(const struct linux_mm_layout *l, const struct memory *memory,
			  uint64_t file)
{
	char path[LINUX_PATH_MAX];

	linux_file_path(l, memory, file, path);
	return hash_text(HASH_START, path) | 1;
}

static void identify(struct guest_mark *mark, const struct linux_mm_layout *l,
		     const struct memory *memory, uint64_t file)
{
	memset(&mark->file, 0, sizeof(mark->file));
	mark->path = 0;
	if (!file)
		return;
	linux_file_identify(l, memory, file, &mark->file);
	if (l->inode_ino == LINUX_NO_MEMBER)
		mark->path = path_hash(l, memory, file);
}

enum linux_why guest_mapped_read(struct guest_mapped *m, const struct linux_mm_layout *l,
				 const struct memory *memory, uint64_t mm, uint64_t now_ns)
{
	enum linux_why why;

	/* Before: a change while they are read is one that is seen later. */
	m->counted = linux_mm_changes(l, memory, mm, &m->changes);
	why = linux_mm_vmas(l, memory, mm, LINUX_VM_EXEC, &m->vmas);
	if (ARRAY_FIT(m->mark, m->vmas.n, m->cap)) {
		m->vmas.n = 0;
		return LINUX_NO_MEMORY;
	}
	for (size_t i = 0; i < m->vmas.n; i++) {
		m->mark[i] = (struct guest_mark){ .checked_ns = now_ns };
		identify(&m->mark[i], l, memory, m->vmas.v[i].file);
	}
	return why;
}

bool guest_mapped_append(struct guest_mapped *m, const struct guest_mapped *old)
{
	struct linux_vmas *to = &m->vmas;
	uint64_t end = to->n ? to->v[to->n - 1].end : 0;
	size_t i = 0, n;

	while (i < old->vmas.n && old->vmas.v[i].start < end)
		i++;
	n = old->vmas.n - i;
	if (ARRAY_FIT(m->mark, to->n + n, m->cap) || ARRAY_FIT(to->v, to->n + n, to->cap))
		return false;
	if (n) {
		memcpy(to->v + to->n, old->vmas.v + i, n * sizeof(*to->v));
		memcpy(m->mark + to->n, old->mark + i, n * sizeof(*m->mark));
	}
	to->n += n;
	return true;
}

static bool is_same_file(const struct guest_mark *a, const struct guest_mark *b)
{
	return a->path == b->path && !memcmp(&a->file, &b->file, sizeof(a->file));
}

bool guest_mapped_agree(const struct guest_mapped *a, size_t i, const struct guest_mapped *b,
			size_t k)
{
	const struct linux_vma *v = &a->vmas.v[i], *w = &b->vmas.v[k];

	if (!v->file || !w->file)
		return !v->file && !w->file;
	return v->start - v->file_off == w->start - w->file_off &&
	       is_same_file(&a->mark[i], &b->mark[k]);
}

bool guest_mapped_unchanged(const struct guest_mapped *m, const struct linux_mm_layout *l,
			    const struct memory *memory, uint64_t mm)
{
	uint32_t changes;

	return m->counted && linux_mm_changes(l, memory, mm, &changes) && changes == m->changes;
}

bool guest_mapped_holds(const struct guest_mapped *m, const struct linux_mm_layout *l,
			const struct memory *memory, uint64_t mm, const struct linux_vma *v)
{
	struct guest_mark now = { 0 };
	struct linux_vma w;

	/* Any address of it; it may have been cut or joined with its neighbour since. */
	if (linux_mm_lookup(l, memory, mm, v->start, &w) != LINUX_OK || w.start != v->start ||
	    w.end != v->end || !(w.flags & LINUX_VM_EXEC) || !w.file != !v->file ||
	    w.file_off != v->file_off)
		return false;
	identify(&now, l, memory, w.file);
	return is_same_file(&now, guest_mapped_mark(m, v));
}
