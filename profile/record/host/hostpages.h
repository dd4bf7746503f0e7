/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hostpages: what backs guest memory on the host: page size and NUMA node.
 *
 * Asked for 2 MiB at a time and remembered for HOSTPAGES_REFRESH_NS, as the host makes
 * and breaks huge pages while the guest runs. Page sizes: /proc/PID/pagemap has the
 * frames and /proc/kpageflags says which are parts of huge pages, to root; for others
 * /proc/PID/smaps can only say that a mapping has no huge page at all. Nodes: move_pages(2)
 * without a destination, in batches of a block. (Documentation/admin-guide/mm/pagemap.rst;
 * include/uapi/linux/kernel-page-flags.h; Linux 6.1.) One thread, never a vCPU's.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOSTPAGES_H
#define KVMPROF_PROFILE_RECORD_HOST_HOSTPAGES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOSTPAGES_REFRESH_NS 1000000000u
#define HOSTPAGES_MAX_BLOCKS 16384u /* 32 GiB; beyond it all are forgotten */

struct hostpage {
	uint8_t shift; /* log2 of the page's bytes; 0: not known, and `why` says why */
	uint8_t why;   /* enum mem_host */
	int16_t node;  /* MEM_NO_NODE: not known */
};

struct hostpages;

/*
 * pid: whose pages; 0: this process's. Files of /proc that can't be opened are no error: answers
 * are "not known" then.
 */
int hostpages_create(struct hostpages **out, pid_t pid, struct err *e);
void hostpages_destroy(struct hostpages *h);

/* hva: in a mapping of that process, which stays until destroy. */
void hostpages_look(struct hostpages *h, uint64_t hva, uint64_t now_ns, struct hostpage *out);

#endif
