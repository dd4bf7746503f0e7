/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset_names: names the frames of a set under construction. Called by the thread that builds
 * the set.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_NAMES_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_NAMES_H

#include "profile/analyse/stacks/stackset_build.h"

/*
 * Returns a copy of s without control characters; the set owns it. Returns NULL if out of memory.
 */
const char *stackset_clean(struct stackset_build *b, const char *s);

/* Compare two items of a table (table.h). */
bool stackset_equal_func(const void *a, const void *b, const void *ctx);
bool stackset_equal_frame(const void *a, const void *b, const void *ctx);
bool stackset_equal_addr(const void *a, const void *b, const void *ctx);

/*
 * Store in *out the index of the named frame for an address, or of the frame for the state of a
 * vCPU's thread. Return 0 or -ENOMEM.
 */
int stackset_frame_of(struct stackset_build *b, struct names_view view,
		      const struct perfdata_frame *f, uint32_t *out);
int stackset_where(struct stackset_build *b, enum sample_where where, uint32_t *out);

#endif
