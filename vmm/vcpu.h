/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vcpu: the thread of one vCPU, which runs it until the machine ends. arg is the struct vcpu. */
#ifndef KVMPROF_VMM_VCPU_H
#define KVMPROF_VMM_VCPU_H

struct vcpu;

/*
 * Opens files and counters. Called by thread_start_early() on the new thread, before its system
 * calls are filtered.
 */
void vcpu_early(void *arg);
/* Runs the vCPU; the main function of its thread. Returns NULL. */
void *vcpu_main(void *arg);
/*
 * Installs the process-wide handler of VCPU_KICK_SIGNAL and SIGIO. Called before vCPU threads
 * start.
 */
void vcpu_install_handler(void);

#endif
