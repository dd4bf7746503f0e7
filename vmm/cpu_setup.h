/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_setup: what a vCPU is before its first instruction: CPUID, special registers, local APIC. */
#ifndef KVMPROF_VMM_CPU_SETUP_H
#define KVMPROF_VMM_CPU_SETUP_H

#include "base/err.h"

struct boot_entry;
struct kvm_cpuid2;
struct vcpu;
struct vm;

int cpu_setup_vcpu(struct vcpu *v, const struct kvm_cpuid2 *cpuid, struct err *e);
/* Stores what the guest's CPUID shall say in *out, which the caller frees. */
int cpu_setup_cpuid(const struct vm *vm, struct kvm_cpuid2 **out, struct err *e);
/* Put vCPU 0 at the kernel's entry point. */
int cpu_setup_entry(struct vcpu *v, const struct boot_entry *entry, struct err *e);

#endif
