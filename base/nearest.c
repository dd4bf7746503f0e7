/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * Computes the edit distance row by row: row[i] is for i letters of a. Two rows back are needed for
 * swapped neighbours.
 */
static unsigned int nearest_edits(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned int rows[3][NEAREST_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];

	for (unsigned int k = 0; k <= nb; k++)
		last[k] = k;
	for (unsigned int i = 1; i <= na; i++) {
		unsigned int *spare = before;

		now[0] = i;
		for (unsigned int k = 1; k <= nb; k++) {
			now[k] = least(least(last[k] + 1, now[k - 1] + 1),
				       last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

void nearest_add(struct nearest *n, const char *word)
{
	size_t typed = strlen(n->typed), len = strlen(word);
	unsigned int edits;

	if (!typed || typed > NEAREST_MAX || len > NEAREST_MAX)
		return;
	edits = nearest_edits(n->typed, typed, word, len);
	if (n->best && edits >= n->edits)
		return;
	n->best = word;
	n->edits = edits;
}

const char *nearest_word(const struct nearest *n)
{
	size_t len = n->best ? strlen(n->best) : 0;
	bool near = n->edits <= (len > 3 ? len / 3 : 1) && len > 1;

	return n->best && near ? n->best : NULL;
}
