/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tick: what the PIT is told of the vCPU that gets its interrupts (dev/pit.h, struct pit_load). */
#ifndef KVMPROF_VMM_PVM_TICK_H
#define KVMPROF_VMM_PVM_TICK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * vm: a struct vm. Is vCPU 0's thread running or waiting for a processor (true), or does it
 * sleep, halted (false)? *cpu_ns: the processor time that it has had; only set for true.
 * Any thread.
 */
bool tick_vcpu_runs(void *vm, uint64_t *cpu_ns);

#endif
