/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code_watch: when one of the guest's lists of code (modules, code made at run time) is looked at,
 * and whether it has changed since it was read.
 *
 * A cheap hash of the list tells, now and then, and soon when a sample lies where no known code is.
 * Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_CODE_WATCH_H
#define KVMPROF_PROFILE_RECORD_GUEST_CODE_WATCH_H

#include "symbolizer/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

#define CODE_WATCH_CHECK_NS 100000000u /* from one look to the next */
#define CODE_WATCH_RETRY_NS 2000000u   /* the same, for a sample in unknown code */

/* GUEST_IP_IN_IMAGE: in the kernel's own text, where no other code is. */
enum guest_ip { GUEST_IP_IN_IMAGE, GUEST_IP_ELSEWHERE };

struct code_watch {
	uint64_t looked_ns; /* 0: never */
	uint64_t hash;	    /* of the list that was read */
	bool read;
};

/* What a list gave when it was read. */
struct code_watch_known {
	const struct unwind_region *region; /* sorted */
	size_t n;
};

/* Whether to look, for a sample at ip; true: this look is counted. */
bool code_watch_is_due(struct code_watch *w, const struct code_watch_known *known, uint64_t ip,
		       enum guest_ip where, uint64_t time_ns);

static inline bool code_watch_has_changed(const struct code_watch *w, uint64_t hash)
{
	return !w->read || w->hash != hash;
}

static inline void code_watch_set_read(struct code_watch *w, uint64_t hash)
{
	w->read = true;
	w->hash = hash;
}

#endif
