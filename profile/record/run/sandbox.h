/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_sandbox: which files and rights a run still needs once its machine is made, as a plan for
 * profile/record/sandbox. Main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SANDBOX_H
#define KVMPROF_PROFILE_RECORD_RUN_SANDBOX_H

#include "base/err.h"
#include "profile/record/sandbox/sandbox.h"
#include "vmm/attach/attach.h"

struct p9_share;
struct run;
struct vm_config;

/* What the devices and counters of a machine that is about to be made need; shares have processes of their own. */
void run_sandbox_machine(struct sandbox_plan *p, const struct vm_config *cfg);

/*
 * The machine is made, the profile's file is open, and there is no thread but this one: give the rest
 * up, and start the console's thread. Before pipeline_start() and vm_start().
 */
int run_sandbox_begin(struct run *r, struct err *e);

/* vm_config.bind_share: in the process of a share. */
int run_sandbox_share(void *run, struct p9_share *share, struct err *e);

/* vm_config.bind_network: in the process of the guest's network. */
int run_sandbox_network(void *run, struct err *e);

/* attach_config.bind: of the process that traces; ctx is the struct run. */
int run_sandbox_tracer(void *ctx, enum attach_bind when, struct err *e);

/* Another process's machine is started: binds this thread, and those that were started before run_sandbox_begin(). */
int run_sandbox_attached(struct run *r, struct err *e);

/* vm_config.ready: this thread's own part. */
int run_sandbox_ready(void *ctx, struct err *e);

#endif
