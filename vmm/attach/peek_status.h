/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek_status: the results of an attempt to sample a vCPU by BPF. The BPF program includes this
 * file, too.
 */
#ifndef KVMPROF_VMM_ATTACH_PEEK_STATUS_H
#define KVMPROF_VMM_ATTACH_PEEK_STATUS_H

enum peek_status {
	PEEK_NONE = 0,	/* the program has not run */
	PEEK_ELSEWHERE, /* the thread was not on that processor */
	PEEK_WAITING,	/* the thread waits for a processor: try again when it has one */
	PEEK_NO_VCPU,	/* its descriptor is no longer a vCPU of that number and process */
	PEEK_OUTSIDE,	/* the guest was not running, so memory has no exact registers */
	PEEK_UNCACHED,	/* this KVM does not keep the registers in memory */
	PEEK_KERNEL,	/* not in ring 3 */
	PEEK_ABSENT,	/* memory that the sample needs could not be read */
	PEEK_TAKEN,
	PEEK_STATUSES,
};

#endif
