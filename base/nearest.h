/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nearest: finds the word that a mistyped one was probably meant to be.
 *
 * 	struct nearest n = { .typed = "rnu" };
 * 	for (...)
 * 		nearest_add(&n, word[i]);
 * 	if (nearest_word(&n))
 * 		... did you mean ...
 *
 * Not thread-safe: the caller serialises calls on one struct nearest. Nothing is allocated.
 */
#ifndef KVMPROF_BASE_NEAREST_H
#define KVMPROF_BASE_NEAREST_H

#define NEAREST_MAX 48u /* maximum bytes of a word; longer words never match */

struct nearest {
	/* The mistyped word, borrowed. */
	const char *typed;
	const char *best; /* best match so far, borrowed; NULL: none */
	/* Edits between `typed` and `best`. */
	unsigned int edits;
};

/*
 * Compares the typed word with a candidate, which must stay valid until nearest_word(). Of two
 * equally near words the first one is kept. A letter that is missing, added, replaced, or swapped
 * with its neighbour counts as one edit.
 */
void nearest_add(struct nearest *n, const char *word);

/* Returns the nearest word, or NULL if it needs more edits than one in three of its letters. */
const char *nearest_word(const struct nearest *n);

#endif
