/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/cpuid.h"

/* CPUID leaves and bits, SDM vol. 2 table 3-8. */
#define L1_ECX_POPCNT (1u << 23)
#define L1_ECX_RDRAND (1u << 30)
#define L7_EBX_BMI1 (1u << 3)
#define L7_EBX_BMI2 (1u << 8)
#define L7_EBX_ERMS (1u << 9)
#define L7_EBX_RDSEED (1u << 18)
#define L7_EBX_SMAP (1u << 20)
#define L7_ECX_UMIP (1u << 2)
#define L7_EDX_FSRM (1u << 4)
#define LX1_ECX_LZCNT (1u << 5)

/* KVM_CPUID_FEATURES, Documentation/virt/kvm/x86/cpuid.rst. */
#define KVM_CPUID_FEATURES_LEAF 0x40000001u
/*
 * Those that live in shared memory and need no hypercall: clocksource, nop_io_delay,
 * clocksource2, steal_time, clocksource_stable. Not among them what was never seen to work
 * where hypercalls hang: asynchronous page faults, EOIs and TLB flushes by shared memory.
 */
#define KVM_FEATURES_SAFE (1u << 0 | 1u << 1 | 1u << 3 | 1u << 5 | 1u << 24)

/* A leaf that is not there reads as zeros. */
static void cpuid_drop_leaf(struct kvm_cpuid2 *c, uint32_t function)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < c->nent; i++)
		if (c->entries[i].function != function)
			c->entries[kept++] = c->entries[i];
	c->nent = kept;
}

void cpuid_mask(const struct quirks *q, struct kvm_cpuid2 *c)
{
	for (unsigned int i = 0; i < c->nent; i++) {
		struct kvm_cpuid_entry2 *l = &c->entries[i];

		switch (l->function) {
		case 1:
			if (q->refuses_insns)
				l->ecx &= ~(L1_ECX_POPCNT | L1_ECX_RDRAND);
			break;
		case 7:
			if (l->index == 0 && q->refuses_insns) {
				l->ebx &= ~(L7_EBX_ERMS | L7_EBX_SMAP | L7_EBX_RDSEED);
				l->ecx &= ~L7_ECX_UMIP;
				l->edx &= ~L7_EDX_FSRM;
			}
			/* BMI2 with BMI1: compilers and Linux's zstd take them for one. */
			if (l->index == 0 && q->zero_counts_wrong)
				l->ebx &= ~(L7_EBX_BMI1 | L7_EBX_BMI2);
			break;
		case 0x80000001:
			if (q->zero_counts_wrong)
				l->ecx &= ~LX1_ECX_LZCNT;
			break;
		case KVM_CPUID_FEATURES_LEAF:
			if (q->hypercalls_hang)
				l->eax &= KVM_FEATURES_SAFE;
			break;
		}
	}
	if (q->cpuid_leaks)
		cpuid_drop_leaf(c, 7);
}
