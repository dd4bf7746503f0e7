/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: the system calls that each kind of thread may make, in one table.
 *
 * tests/e2e/sandbox.py records the calls of threads in runs of many kinds. It lists an entry that
 * no run uses together with its reason. The table is constant; any thread may read it.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_CALLS_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_CALLS_H

#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_KIND(kind) (UINT32_C(1) << (kind))

/* Conditions on the arguments of a call. */
enum sandbox_rule {
	SANDBOX_ANY,
	SANDBOX_REQUEST, /* ioctl(2): the second argument is `value` */
	SANDBOX_OURSELF, /* the first argument is this process: tgkill(2) */
	SANDBOX_NO_EXEC, /* the third argument has no PROT_EXEC: mmap(2), mprotect(2) */
	SANDBOX_FIRST,	 /* the first argument is `value`: socket(2) */
	SANDBOX_SELF,	 /* the first argument is 0, the calling thread: sched_setaffinity(2) */
	SANDBOX_SECOND,	 /* the second argument is `value`: fcntl(2) */
	SANDBOX_SETFL,	 /* fcntl(2): F_SETFL without O_ASYNC, which sends signals */
	SANDBOX_NO_WAIT, /* the third argument is WNOHANG: wait4(2) */
	SANDBOX_COUNT,	 /* perf_event_open(2): counts the calling thread only */
	SANDBOX_FAILS,	 /* the call is not carried out, and fails with EACCES */
	SANDBOX_NO_PATH, /* the second argument, a path, is NULL: utimensat(2) */
};

/* The runs in which an entry is in effect. */
enum sandbox_when {
	SANDBOX_ALWAYS,
	SANDBOX_QEMU,	  /* QEMU runs the guest: sandbox_plan.signals */
	SANDBOX_GDB,	  /* a machine behind a gdbstub: sandbox_plan.gdb */
	SANDBOX_REBOOTS,  /* a reset boots the guest again: sandbox_plan.reboots */
	SANDBOX_COUNTERS, /* vCPUs open counters again: sandbox_plan.counters */
	SANDBOX_SERVED,	  /* a disk is read through a socket: sandbox_plan.served */
	SANDBOX_WHEN_MAX,
};

struct sandbox_call {
	const char *name;
	int number; /* __NR_* of x86-64 */
	enum sandbox_rule rule;
	uint32_t value;
	const char *value_name; /* name of `value`; NULL: none */
	uint32_t kinds;		/* SANDBOX_KIND() of each kind of thread */
	enum sandbox_when when;
};

/* The table ends with an entry without a name. */
extern const struct sandbox_call sandbox_calls[];

/* Returns whether this kind of thread has a list. A thread of another kind cannot be started. */
bool sandbox_has_list(enum thread_kind kind);

#endif
