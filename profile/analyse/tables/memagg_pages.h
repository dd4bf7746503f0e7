/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memagg_pages: which pages accesses went to, and what huge pages would change.
 *
 * An estimate from what samples saw, under the assumption that each 2 MiB range of
 * addresses whose pages are of 4 KiB could be one page: its memory is contiguous to the
 * guest then. For memagg alone.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_MEMAGG_PAGES_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_MEMAGG_PAGES_H

#include "profile/analyse/tables/memagg.h"
#include "base/table.h"

struct memagg_pages {
	struct table page;
};

void memagg_pages_init(struct memagg_pages *p);
void memagg_pages_deinit(struct memagg_pages *p);
/* space: of the process, 0 the kernel's. ref is mapped RAM. */
int memagg_pages_add(struct memagg_pages *p, uint32_t space, const struct mem_ref *ref,
		     uint64_t weight, struct err *e);
/* Fills in m->huge and m->reach. */
int memagg_pages_finish(struct memagg_pages *p, struct memagg *m, struct err *e);

#endif
