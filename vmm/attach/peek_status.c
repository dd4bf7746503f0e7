/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/peek_status.h"

const char *peek_status_name(enum peek_status s)
{
	static const char *const name[PEEK_STATUSES] = {
		[PEEK_NONE] = "failed",		  [PEEK_ELSEWHERE] = "elsewhere",
		[PEEK_WAITING] = "waiting",	  [PEEK_NO_VCPU] = "no_vcpu",
		[PEEK_OUTSIDE] = "outside_guest", [PEEK_UNCACHED] = "uncached",
		[PEEK_KERNEL] = "kernel",	  [PEEK_ABSENT] = "absent",
		[PEEK_TAKEN] = "taken",
	};

	return s < PEEK_STATUSES ? name[s] : "?";
}
