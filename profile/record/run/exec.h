/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_exec: `kvmprof run --rootfs/--exec/--share` within a run: files, console, exit status.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_EXEC_H
#define KVMPROF_PROFILE_RECORD_RUN_EXEC_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/record/rootfs/exec_console.h"
#include "profile/record/rootfs/exec_files.h"

#include <stdbool.h>
#include <stdio.h>

struct run_options;
struct snapshot_facts;
struct run_source;
struct vm;
struct vm_config;
struct vm_result;

/* All zero is "nothing of this". */
struct run_exec {
	struct exec_files files;
	struct exec_console console;
	struct exec_share share[EXEC_SHARES_MAX];
	struct buf cmdline; /* for the kernel, with its NUL */
	bool command;	    /* there is one, and its exit status is ours */
	struct vm *vm;	    /* which its message ends; NULL: not there yet */
};

/* After the image is known: pack what is asked for, into s->initrd. s may borrow from x then. */
int run_exec_open(struct run_exec *x, const struct run_options *opt, struct run_source *s,
		  struct err *e);
/* Each file that a guest has open through a share is one of ours. */
void run_exec_allow_files(void);
void run_exec_close(struct run_exec *x);

/* Words for the kernel's command line; NULL: none. */
const char *run_exec_cmdline(const struct run_exec *x);
/* Shares; our part of the console is kept out of it. saved: of the snapshot, all zero without. */
void run_exec_configure(struct run_exec *x, const struct exec_options *o,
			const struct snapshot_facts *saved, struct vm_config *cfg);

/*
 * The machine has ended: the exit status that this gives a run which is fine otherwise. That
 * of the guest; 1 with e set when the command did not come to its end; 124 when time was up
 * before, as timeout(1) has it, and 130 for Ctrl-C, as shells; 0 else.
 */
int run_exec_status(const struct run_exec *x, const struct vm_result *res, struct err *e);

#endif
