/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kvm: /dev/kvm and what it offers.
 *
 * Source: Documentation/virt/kvm/api.rst (Linux 6.1).
 */
#ifndef KVMPROF_VMM_KVM_H
#define KVMPROF_VMM_KVM_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Linux 6.11 (Documentation/virt/kvm/api.rst, 8.42 and "kvm_run"); older headers lack them. */
#ifndef KVM_CAP_X86_GUEST_MODE
#define KVM_CAP_X86_GUEST_MODE 238
#define KVM_RUN_X86_GUEST_MODE (1 << 2)
#endif

struct kvm_host {
	int fd;			/* /dev/kvm */
	size_t run_size;	/* bytes of the kvm_run mapping of a vCPU */
	int api;		/* KVM_GET_API_VERSION, 12 */
	unsigned int sync_regs; /* KVM_CAP_SYNC_REGS mask; 0: registers need ioctls */
	unsigned int max_vcpus;
	bool immediate_exit, irqchip, pit2, user_memory, tss_addr, mp_state;
	bool guest_debug, emulation_exit, stats_fd, tsc_khz, tsc_deadline;
	bool nested_flag; /* KVM_CAP_X86_GUEST_MODE: kvm_run says when a nested guest runs */
};

/*
 * Open the device and read the capabilities. Errors say how to mend them:
 * -ENOENT (no KVM in this kernel or no virtualization), -EACCES (not in group
 * kvm), -EPROTO (API version is not 12).
 */
int kvm_host_open(struct kvm_host *h, struct err *e);
void kvm_host_close(struct kvm_host *h);

/* A new machine: its descriptor, or -errno. A signal, also a stop, interrupts this request. */
int kvm_vm_create(const struct kvm_host *h);

/* Returns a descriptor of KVM's statistics of a vCPU (kvmstats.h), -ENOTSUP, or -errno of KVM. */
int kvm_stats_fd(const struct kvm_host *h, int vcpu_fd);

/* The rate of a guest's TSC, by one of its vCPUs; 0: KVM does not tell. */
uint32_t kvm_tsc_khz(const struct kvm_host *h, int vcpu_fd);

/* What a capture path cannot do without; 0 or -ENOTSUP with the missing one named. */
int kvm_host_require(const struct kvm_host *h, struct err *e);

/* Closes a VM that is not needed any more, on a thread of its own: KVM waits for grace periods of the kernel there, several ms. */
struct kvm_closer {
	int vm, vcpu; /* descriptors; -1: none, or closed */
	pthread_t thread;
	bool started;
};

/* Starts to close both descriptors. Where no thread can be started, kvm_closer_finish() closes them. */
void kvm_closer_start(struct kvm_closer *c);
/* Returns when they are closed; closes them itself if kvm_closer_start() was not called. */
void kvm_closer_finish(struct kvm_closer *c);

#endif
