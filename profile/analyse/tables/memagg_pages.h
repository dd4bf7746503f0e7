/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memagg_pages: the pages with accesses, and the effect of huge pages. Only for memagg.c; called by
 * the thread that builds the object.
 *
 * The result is an estimate from the samples, under the assumption that each 2 MiB range of
 * addresses with 4 KiB pages could be one page: its memory is contiguous to the guest then.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_MEMAGG_PAGES_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_MEMAGG_PAGES_H

#include "profile/analyse/tables/memagg.h"
#include "base/table.h"

struct memagg_pages {
	struct table page;
};

/* Initialises an empty collection; memagg_pages_deinit() frees it. */
void memagg_pages_init(struct memagg_pages *p);
void memagg_pages_deinit(struct memagg_pages *p);
/*
 * Adds an access to mapped RAM. space is the process's address space, 0 for the kernel's. Returns 0
 * or -ENOMEM.
 */
int memagg_pages_add(struct memagg_pages *p, uint32_t space, const struct mem_ref *ref,
		     uint64_t weight, struct err *e);
/* Sets m->huge and m->reach. Returns 0 or -ENOMEM. */
int memagg_pages_finish(struct memagg_pages *p, struct memagg *m, struct err *e);

#endif
