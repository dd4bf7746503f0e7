/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: the system calls that each kind of thread may make, in one table.
 *
 * tests/e2e/sandbox.py gathers what threads call in runs of many kinds: an entry that no run uses
 * stands there with its reason.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_CALLS_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_CALLS_H

#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_KIND(kind) (UINT32_C(1) << (kind))

/* What the arguments of a call must be. */
enum sandbox_rule {
	SANDBOX_ANY,
	SANDBOX_REQUEST, /* ioctl(2): the second one is `value` */
	SANDBOX_OURSELF, /* the first one is this process: tgkill(2) */
	SANDBOX_NO_EXEC, /* the third one has no PROT_EXEC: mmap(2), mprotect(2) */
	SANDBOX_FIRST,	 /* the first one is `value`: socket(2) */
	SANDBOX_CODE,	 /* any, and only where vCPUs make code: sandbox_plan.makes_code */
	SANDBOX_QEMU,	 /* any, and only where QEMU runs the guest: sandbox_plan.signals */
};

struct sandbox_call {
	const char *name;
	int number; /* __NR_*, as libseccomp's SCMP_SYS() has it; negative: not on x86-64 */
	enum sandbox_rule rule;
	uint32_t value;
	const char *value_name; /* NULL: none */
	uint32_t kinds;		/* SANDBOX_KIND() of each */
};

/* Up to the one without a name. */
extern const struct sandbox_call sandbox_calls[];

/* Has this kind a list? The others are not filtered: threads that trace another process. */
bool sandbox_has_list(enum thread_kind kind);

#endif
