/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program: the lists of calls.h as a program of classic BPF for seccomp(2),
 * Documentation/userspace-api/seccomp_filter.rst.
 *
 *     the architecture is x86-64, and the number none of x32's     else: the process is killed
 *     the number is ioctl's                                        its requests, KVM_RUN first
 *     a binary search among ranges of numbers                      allow, trap, or the number's
 *                                                                  conditions
 *
 * A program is made in some microseconds at run time. Its shape matters twice: each VM exit runs
 * it, and when it is loaded the kernel follows it for each number (kernel/seccomp.c,
 * seccomp_cache_prepare()), with all jumps that depend on the number only. Calls that are found to
 * be allowed never run it again.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_PROGRAM_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_PROGRAM_H

#include "base/thread.h"
#include "profile/record/sandbox/calls.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/* Jumps reach at most 255 instructions; a test makes the program of each kind. */
#define PROGRAM_MAX 512u

struct program {
	unsigned short len;
	struct sock_filter code[PROGRAM_MAX];
};

struct program_config {
	/* by enum sandbox_when: which entries of the table are in effect */
	bool when[SANDBOX_WHEN_MAX];
	uint32_t pid;  /* this process, for SANDBOX_OURSELF */
	uint64_t pass; /* calls that return to this address are all allowed; 0: none */
};

/*
 * Makes the program of a kind of thread. A call in its list is allowed, or fails as the list
 * requires; every other one traps (SECCOMP_RET_TRAP). Returns 0, or -E2BIG if a jump would be too
 * long. Works on its arguments only; any thread.
 */
int program_make(enum thread_kind kind, const struct program_config *config, struct program *out);

#endif
