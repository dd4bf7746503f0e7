/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_exec: `kvmprof run --rootfs/--exec/--share` within a run: files, console, exit status.
 */
#ifndef KVMPROF_PROFILE_RUN_EXEC_H
#define KVMPROF_PROFILE_RUN_EXEC_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/exec_console.h"
#include "profile/exec_files.h"
#include "profile/exec_share.h"

#include <stdio.h>

struct run;
struct vm;
struct vm_config;

/* All zero is "nothing of this". */
struct run_exec {
	struct exec_files files;
	struct exec_console console;
	struct exec_share share[EXEC_SHARES_MAX];
	struct buf cmdline; /* for the kernel, with its NUL */
};

/* After the image is known: pack what is asked for, into r->initrd. */
int run_exec_open(struct run *r, struct err *e);
void run_exec_close(struct run_exec *x);

/* Words for the kernel's command line; NULL: none. */
const char *run_exec_cmdline(const struct run_exec *x);
/* Our part of the console is kept out of it. */
void run_exec_configure(struct run *r, struct vm_config *cfg);

/*
 * The machine has ended: the guest's status, 0 to 255, or -1 when it told none. -EINVAL and
 * the like with e set when a command was to run and did not come to its end, by nobody's wish.
 */
int run_exec_status(const struct vm *vm);
int run_exec_verdict(const struct run *r, struct err *e);

#endif
