/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_sandbox: determines which files and rights a run still needs once its machine is created, as
 * a plan for profile/record/sandbox.
 *
 * Functions that return int return 0 or -errno with the reason in *e. They are called by the main
 * thread unless their comment says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SANDBOX_H
#define KVMPROF_PROFILE_RECORD_RUN_SANDBOX_H

#include "base/err.h"
#include "profile/record/sandbox/sandbox.h"
#include "vmm/attach/attach.h"

struct p9_share;
struct run;
struct vm_config;

/*
 * Adds what the devices and counters of a machine that is about to be created need; shares have
 * processes of their own.
 */
void run_sandbox_machine(struct sandbox_plan *p, const struct vm_config *cfg);

/*
 * Gives up all other rights, and starts the console's thread. To be called when the machine is
 * created, the profile's file is open, and this is the only thread; before pipeline_start() and
 * vm_start().
 */
int run_sandbox_begin(struct run *r, struct err *e);

/* Confines the process of a share; it is called there, as vm_config.bind_share. */
int run_sandbox_share(void *run, struct p9_share *share, struct err *e);

/* Confines the process of the guest's network; it is called there, as vm_config.bind_network. */
int run_sandbox_network(void *run, struct err *e);

/*
 * Confines the tracing process; it is called there, as attach_config.bind. ctx is the struct run.
 */
int run_sandbox_tracer(void *ctx, enum attach_bind when, struct err *e);

/*
 * Confines this thread, and those that were started before run_sandbox_begin(), when another
 * process's machine is attached to.
 */
int run_sandbox_attached(struct run *r, struct err *e);

/* Confines the main thread as vm_config.ready; ctx is the struct run. */
int run_sandbox_ready(void *ctx, struct err *e);

#endif
