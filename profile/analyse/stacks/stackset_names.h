/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset_names: names the frames of a set while it is made.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_NAMES_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_NAMES_H

#include "profile/analyse/stacks/stackset_build.h"

/* The set's own copy, with nothing that a terminal would obey. NULL: no memory. */
const char *stackset_clean(struct stackset_build *b, const char *s);

/* Which of two items are the same (table.h). */
bool stackset_equal_func(const void *a, const void *b, const void *ctx);
bool stackset_equal_frame(const void *a, const void *b, const void *ctx);
bool stackset_equal_addr(const void *a, const void *b, const void *ctx);

/* The frame of an address, named; or one that says where a vCPU's thread was. 0 or -ENOMEM. */
int stackset_frame_of(struct stackset_build *b, struct names_view view,
		      const struct perfdata_frame *f, uint32_t *out);
int stackset_where(struct stackset_build *b, enum sample_where where, uint32_t *out);

#endif
