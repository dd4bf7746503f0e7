/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_panic: how a guest came down: the panic of its Linux kernel, as its memory shows it at the end of a run, and
 * the registers and stack of a vCPU.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_PANIC_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_PANIC_H

#include "base/buf.h"
#include "profile/record/summary/summary.h"

#include <stdbool.h>
#include <stdio.h>

struct facts_out;

struct summary_panic {
	bool seen;	/* the kernel panicked */
	char text[256]; /* its reason; "" if the kernel's log has none */
	struct buf
		log; /* lines of the kernel's log about it, each with LF: its stack, if the log has that */
	bool log_has_stack;
	unsigned int before;   /* panics of kernels that ran before the last one */
	char before_text[256]; /* the reason of the last of those; "" if it is not known */
	bool stack_seen; /* the last sample was taken in panic(): summary.last has the stack */
};

/* "guest_panic" as JSON. */
void summary_panic(const struct facts_out *o, const struct summary_panic *p);

/* Prints the reason, the log's lines and, if they have no stack, that of the last sample. */
void summary_panic_print(const struct summary *s, FILE *out);

#endif
