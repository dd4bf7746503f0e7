/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * texts: equal texts, kept once, so that they can be told apart by their pointers.
 *
 * All zero is an empty set. One thread.
 */
#ifndef KVMPROF_BASE_TEXTS_H
#define KVMPROF_BASE_TEXTS_H

#include "base/table.h"

#define TEXTS_MAX (16u << 20)

struct texts {
	struct table all; /* of char * */
};

void texts_deinit(struct texts *t);

/* A copy that lives until deinit, the same for equal texts. NULL: no memory, or too many. */
const char *texts_add(struct texts *t, const char *text);

#endif
