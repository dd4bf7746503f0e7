/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * texts: a set of strings in which equal strings have one copy, so that they can be compared by
 * pointer.
 *
 * All zero is an empty set. Not thread-safe: the caller serialises calls on one set.
 */
#ifndef KVMPROF_BASE_TEXTS_H
#define KVMPROF_BASE_TEXTS_H

#include "base/table.h"

/* The maximum number of strings. */
#define TEXTS_MAX (16u << 20)

struct texts {
	struct table all; /* elements are char * */
};

/* Frees all strings. */
void texts_deinit(struct texts *t);

/*
 * Returns the set's copy of text, which is the same for equal strings and valid until
 * texts_deinit(). Returns NULL if out of memory or beyond TEXTS_MAX strings.
 */
const char *texts_add(struct texts *t, const char *text);

#endif
