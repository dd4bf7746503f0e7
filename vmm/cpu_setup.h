/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_setup: sets the state of a vCPU before its first instruction: CPUID, special registers, local
 * APIC.
 *
 * The thread that creates the machine calls these functions. They return 0, or -errno with *e
 * recorded.
 */
#ifndef KVMPROF_VMM_CPU_SETUP_H
#define KVMPROF_VMM_CPU_SETUP_H

#include "base/err.h"

struct boot_entry;
struct kvm_cpuid2;
struct vcpu;
struct vm;

/* Sets CPUID (from the shared table), MSRs and local APIC of a vCPU. */
int cpu_setup_vcpu(struct vcpu *v, const struct kvm_cpuid2 *cpuid, struct err *e);
/* Builds the CPUID table for the guest in *out, which the caller frees with free(). */
int cpu_setup_cpuid(const struct vm *vm, struct kvm_cpuid2 **out, struct err *e);
/* Sets the registers of vCPU 0 to start at the kernel's entry point. */
int cpu_setup_entry(struct vcpu *v, const struct boot_entry *entry, struct err *e);

#endif
