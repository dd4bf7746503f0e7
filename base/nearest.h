/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nearest: which of some words a mistyped one was meant to be.
 *
 *	struct nearest n = { .typed = "rnu" };
 *	for (...)
 *		nearest_add(&n, word[i]);
 *	if (nearest_word(&n))
 *		... did you mean ...
 *
 * Pure functions on the caller's structure; any thread.
 */
#ifndef KVMPROF_BASE_NEAREST_H
#define KVMPROF_BASE_NEAREST_H

#define NEAREST_MAX 48u /* bytes of a word; longer ones are never near */

struct nearest {
	const char *typed;
	const char *best; /* borrowed; NULL: none so far */
	unsigned int edits;
};

/*
 * A word that could have been meant. Of two that are as near the first one stays. A letter that was
 * left out, added, replaced, or swapped with its neighbour is one edit.
 */
void nearest_add(struct nearest *n, const char *word);

/* The nearest word; NULL when even that takes more edits than one in three of its letters. */
const char *nearest_word(const struct nearest *n);

#endif
