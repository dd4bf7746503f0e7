/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vcpu: the thread of one vCPU, which runs it until the machine ends. */
#ifndef KVMPROF_VMM_VCPU_H
#define KVMPROF_VMM_VCPU_H

struct vcpu;

/* Opens files and counters, as thread_start_early() calls it. */
void vcpu_early(void *arg);
void *vcpu_main(void *arg);
void vcpu_install_handler(void);

#endif
