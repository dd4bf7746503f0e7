/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_panic: the part of the summary about a guest that crashed: the panic of its Linux kernel,
 * as its memory shows it at the end of a run, and the registers and stack of a vCPU. Called by the
 * thread that writes the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_PANIC_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_PANIC_H

#include "base/buf.h"
#include "profile/record/summary/summary.h"

#include <stdbool.h>
#include <stdio.h>

struct facts_out;

/* Filled in by run_panic_find() (profile/record/run/panic.h); the owner frees `log`. */
struct summary_panic {
	bool seen;	/* the kernel panicked */
	char text[256]; /* reason of the panic; "" if the kernel's log has none */
	/* lines of the kernel's log about it, each with LF: its stack, if the log has that */
	struct buf log;
	bool log_has_stack;
	unsigned int before;   /* panics of kernels that ran before the last one */
	char before_text[256]; /* the reason of the last of those; "" if unknown */
	/* the last sample was taken in panic(): summary.last has the stack */
	bool stack_seen;
};

/* Hangs of the guest that a run with --on-hang has noticed (profile/record/run/alarm.h). */
struct summary_hang {
	unsigned int count;
	char text[1024]; /* verdict on the last one */
	char cause[32];	 /* name of its cause in docs/why.md; "": it is not known */
};

/* Writes "guest_hang", as JSON. */
void summary_hang(const struct facts_out *o, const struct summary_hang *h);

/* Writes "guest_panic", as JSON. */
void summary_panic(const struct facts_out *o, const struct summary_panic *p);

/* Prints the reason, the log's lines and, if they contain no stack, that of the last sample. */
void summary_panic_print(const struct summary *s, FILE *out);

#endif
