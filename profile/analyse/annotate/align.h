/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_align: finds which instructions of two versions of a function are the same.
 *
 * Instructions are the same if they have the same text; of one that refers to an address only the
 * name of the function there counts, because addresses change with each build. The longest common
 * subsequence of both versions becomes pairs. Beyond ANNOTATE_ALIGN_MOST comparisons the middle of
 * the functions is not examined and has no pairs. No I/O; any thread may call the function.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_ALIGN_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_ALIGN_H

#include "profile/analyse/annotate/annotate.h"

#define ANNOTATE_ALIGN_MOST (32u << 20)
#define ANNOTATE_NO_ROW SIZE_MAX

/* A row of each version; ANNOTATE_NO_ROW: that version does not have the instruction. */
struct annotate_pair {
	size_t base, head;
};

/*
 * Stores the rows of both versions in order, each once, in *out, which the caller frees with free(),
 * and their number in *n. Returns 0 or -ENOMEM.
 */
int annotate_align(const struct annotate *base, const struct annotate *head,
		   struct annotate_pair **out, size_t *n, struct err *e);

#endif
