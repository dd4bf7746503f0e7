/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hostpages: how the host backs guest memory: page size and NUMA node.
 *
 * Queried for 2 MiB at a time and cached for HOSTPAGES_REFRESH_NS, as the host makes and splits
 * huge pages while the guest runs. Page sizes: /proc/PID/pagemap has the frames, and
 * /proc/kpageflags shows root which ones are parts of huge pages; for other users /proc/PID/smaps
 * only shows that a mapping has no huge page at all. Nodes: move_pages(2) without a destination, in
 * batches of a block. (Documentation/admin-guide/mm/pagemap.rst;
 * include/uapi/linux/kernel-page-flags.h; Linux 6.1.)
 *
 * Not thread-safe: one thread uses an object, never a vCPU's.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOSTPAGES_H
#define KVMPROF_PROFILE_RECORD_HOST_HOSTPAGES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOSTPAGES_REFRESH_NS 1000000000u
#define HOSTPAGES_MAX_BLOCKS 16384u /* 32 GiB; beyond it all are discarded */

struct hostpage {
	uint8_t shift; /* log2 of the page's bytes; 0: unknown, for the reason in `why` */
	uint8_t why;   /* enum mem_host */
	int16_t node;  /* MEM_NO_NODE: unknown */
};

struct hostpages;

/*
 * Creates a cache for process pid; 0: this process. Files of /proc that cannot be opened are no
 * error: the results are then unknown. Returns 0 or -ENOMEM. The caller frees *out with
 * hostpages_destroy(), which accepts NULL.
 */
int hostpages_create(struct hostpages **out, pid_t pid, struct err *e);
void hostpages_destroy(struct hostpages *h);

/*
 * Fills in *out for address hva of that process, in a mapping that stays until hostpages_destroy().
 * now_ns is CLOCK_MONOTONIC.
 */
void hostpages_find(struct hostpages *h, uint64_t hva, uint64_t now_ns, struct hostpage *out);

#endif
