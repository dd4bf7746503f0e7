/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_exec: the files, console and exit status of `kvmprof run --rootfs/--exec/--share`. All
 * functions are called by the main thread.
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

/* All zero: none of these options is used. */
struct run_exec {
	struct exec_files files;
	struct exec_console console;
	struct exec_share share[EXEC_SHARES_MAX];
	struct buf cmdline; /* for the kernel, with a terminating NUL */
	bool command;	    /* there is a command, whose exit status becomes the run's */
	struct vm *vm;	    /* the machine that the command's message ends; NULL: not created yet */
};

/*
 * Packs the requested files into s->initrd, once the image is known. *s may then borrow from *x.
 * Returns 0 or -errno with the reason in *e; run_exec_close() is necessary in either case.
 */
int run_exec_open(struct run_exec *x, const struct run_options *opt, struct run_source *s,
		  struct err *e);
/*
 * Raises this process's limit of open files, because each file that a guest has open through a
 * share is open here.
 */
void run_exec_allow_files(void);
/* Frees what *x owns, after the source of the run. */
void run_exec_close(struct run_exec *x);

/* Returns words for the kernel's command line, owned by *x, or NULL for none. */
const char *run_exec_cmdline(const struct run_exec *x);
/*
 * Adds the shares to *cfg, and filters the command's message from the console. saved: the facts of
 * the snapshot; all zero without one. *x must outlive the machine.
 */
void run_exec_configure(struct run_exec *x, const struct exec_options *o,
			const struct snapshot_facts *saved, struct vm_config *cfg);

/*
 * Returns the exit status that the machine's end gives a run without other failures: the guest
 * command's; 1, with the reason in *e, if the command did not finish; 124 if the time limit ended
 * it, as timeout(1) does; 130 for Ctrl-C, as shells do; else 0.
 */
int run_exec_status(const struct run_exec *x, const struct vm_result *res, struct err *e);

#endif
