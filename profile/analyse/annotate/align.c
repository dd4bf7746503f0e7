/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/align.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(uint64_t hash, const char *s)
{
	while (*s)
		hash = table_mix(hash, (unsigned char)*s++);
	return table_mix(hash, 0x100);
}

/* Returns the number that represents an instruction; equal instructions have equal numbers. */
static uint64_t key_of(const struct annotate *a, const struct disasm_insn *i)
{
	uint64_t hash = hash_text(i->kind, i->mnemonic);
	char target[ANNOTATE_TARGET];

	if (!i->has_target)
		return hash_text(hash, i->operands);
	/* A jump inside of the function: its distance may have changed. */
	if (i->target >= a->in->addr && i->target - a->in->addr < a->in->len)
		return hash;
	annotate_target(a, i, target);
	return hash_text(hash, target);
}

static uint64_t *keys_of(const struct annotate *a)
{
	uint64_t *key = calloc(a->nrows + 1, sizeof(*key));

	for (size_t i = 0; key && i < a->nrows; i++)
		key[i] = key_of(a, &a->row[i].insn);
	return key;
}

/* The rows that were not paired at the beginning or at the end. */
struct middle {
	const uint64_t *base, *head;
	size_t nbase, nhead;
	uint32_t *length; /* of the longest common subsequence from (i, k) on */
};

static uint32_t *length_at(const struct middle *m, size_t i, size_t k)
{
	return &m->length[i * (m->nhead + 1) + k];
}

static int measure(struct middle *m)
{
	m->length = calloc((m->nbase + 1) * (m->nhead + 1), sizeof(*m->length));
	if (!m->length)
		return -ENOMEM;
	for (size_t i = m->nbase; i-- > 0;) {
		for (size_t k = m->nhead; k-- > 0;) {
			uint32_t down = *length_at(m, i + 1, k), right = *length_at(m, i, k + 1);

			*length_at(m, i, k) = m->base[i] == m->head[k]
						      ? *length_at(m, i + 1, k + 1) + 1
					      : down > right ? down
							     : right;
		}
	}
	return 0;
}

int annotate_align(const struct annotate *base, const struct annotate *head,
		   struct annotate_pair **out, size_t *n, struct err *e)
{
	cleanup_free uint64_t *b = keys_of(base), *h = keys_of(head);
	struct annotate_pair *pair = calloc(base->nrows + head->nrows + 1, sizeof(*pair));
	size_t same = 0, tail = 0, at = 0, i = 0, k = 0;
	struct middle m = { 0 };

	if (!b || !h || !pair) {
		free(pair);
		return err_nomem(e);
	}
	for (; same < base->nrows && same < head->nrows && b[same] == h[same]; same++)
		pair[at++] = (struct annotate_pair){ same, same };
	while (tail < base->nrows - same && tail < head->nrows - same &&
	       b[base->nrows - 1 - tail] == h[head->nrows - 1 - tail])
		tail++;
	m.base = b + same;
	m.head = h + same;
	m.nbase = base->nrows - same - tail;
	m.nhead = head->nrows - same - tail;
	if (m.nbase && m.nhead && m.nhead <= ANNOTATE_ALIGN_MOST / m.nbase && measure(&m) < 0) {
		free(pair);
		return err_nomem(e);
	}
	while (i < m.nbase || k < m.nhead) {
		struct annotate_pair p = { same + i, same + k };
		bool both = m.length && i < m.nbase && k < m.nhead && m.base[i] == m.head[k];
		bool down = !both && i < m.nbase &&
			    (k == m.nhead || !m.length ||
			     *length_at(&m, i + 1, k) >= *length_at(&m, i, k + 1));

		p.base = both || down ? p.base : ANNOTATE_NO_ROW;
		p.head = both || !down ? p.head : ANNOTATE_NO_ROW;
		i += both || down;
		k += both || !down;
		pair[at++] = p;
	}
	for (size_t t = tail; t > 0; t--)
		pair[at++] = (struct annotate_pair){ base->nrows - t, head->nrows - t };
	free(m.length);
	*out = pair;
	*n = at;
	return 0;
}
