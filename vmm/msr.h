/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * msr: reads and writes one MSR of a vCPU through its KVM descriptor. Called on the vCPU's thread,
 * or while the vCPU does not run.
 */
#ifndef KVMPROF_VMM_MSR_H
#define KVMPROF_VMM_MSR_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <sys/ioctl.h>

/* SDM vol. 4, table 2-2. */
#define MSR_IA32_TSC 0x10u
#define MSR_LSTAR 0xc0000082u
#define MSR_SFMASK 0xc0000084u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define MSR_TSC_AUX 0xc0000103u

/*
 * Reads the MSR m->index into m->data. Returns false, with *m unchanged, if KVM does not have it.
 */
static inline bool msr_read(int fd, struct kvm_msr_entry *m)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} one = { .head.nmsrs = 1, .entry.index = m->index };

	if (ioctl(fd, KVM_GET_MSRS, &one) != 1)
		return false;
	m->data = one.entry.data;
	return true;
}

/* Writes m->data to the MSR m->index. Returns false if KVM refuses. */
static inline bool msr_write(int fd, const struct kvm_msr_entry *m)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} one = { .head.nmsrs = 1, .entry = *m };

	return ioctl(fd, KVM_SET_MSRS, &one) == 1;
}

#endif
