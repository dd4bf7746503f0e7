/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/code_watch.h"

bool code_watch_is_due(struct code_watch *w, const struct code_watch_known *known, uint64_t ip,
		       enum guest_ip where, uint64_t time_ns)
{
	/* Samples of several vCPUs may be a little out of order. */
	uint64_t age = time_ns > w->looked_ns ? time_ns - w->looked_ns : 0;

	if (w->looked_ns &&
	    (age < CODE_WATCH_RETRY_NS ||
	     (age < CODE_WATCH_CHECK_NS &&
	      (where == GUEST_IP_IN_IMAGE || unwind_region_at(known->region, known->n, ip)))))
		return false;
	w->looked_ns = time_ns;
	return true;
}
