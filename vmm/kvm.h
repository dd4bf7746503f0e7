/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kvm: /dev/kvm and its capabilities.
 *
 * Source: Documentation/virt/kvm/api.rst (Linux 6.1). The main thread calls these functions, unless
 * stated otherwise.
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
	int fd;			/* /dev/kvm; owned */
	size_t run_size;	/* bytes of the kvm_run mapping of a vCPU */
	int api;		/* KVM_GET_API_VERSION, 12 */
	unsigned int sync_regs; /* KVM_CAP_SYNC_REGS mask; 0: registers need ioctls */
	unsigned int max_vcpus;
	bool immediate_exit, irqchip, pit2, user_memory, tss_addr, mp_state;
	bool guest_debug, emulation_exit, stats_fd, tsc_khz, tsc_deadline;
	bool nested_flag; /* KVM_CAP_X86_GUEST_MODE: kvm_run reports when a nested guest runs */
};

/*
 * Opens the device and reads its capabilities. Returns 0, or -errno with advice in *e: -ENOENT (no
 * KVM in this kernel or no virtualization), -EACCES (not in group kvm), -EPROTO (the API version is
 * not 12), or another error of open(2). kvm_host_close() closes it.
 */
int kvm_host_open(struct kvm_host *h, struct err *e);
void kvm_host_close(struct kvm_host *h);

/*
 * Creates a machine. Returns its descriptor, which the caller closes, or -errno. Repeats the
 * request if a signal interrupts it.
 */
int kvm_vm_create(const struct kvm_host *h);

/*
 * Returns a descriptor of KVM's statistics of a vCPU (kvmstats.h), which the caller closes;
 * -ENOTSUP, or -errno of KVM.
 */
int kvm_stats_fd(const struct kvm_host *h, int vcpu_fd);

/*
 * Returns the TSC frequency of a guest in kHz, read from one of its vCPUs; 0: KVM does not report
 * it.
 */
uint32_t kvm_tsc_khz(const struct kvm_host *h, int vcpu_fd);

/*
 * Checks the capabilities that sampling needs. Returns 0, or -ENOTSUP with the missing one named in
 * *e.
 */
int kvm_host_require(const struct kvm_host *h, struct err *e);

/*
 * Closes a VM that is no longer needed on a thread of its own, because closing waits for several ms
 * for grace periods of the kernel.
 */
struct kvm_closer {
	int vm, vcpu; /* descriptors; -1: none, or closed */
	pthread_t thread;
	bool started;
};

/*
 * Starts a thread that closes both descriptors. If it cannot be started, kvm_closer_finish() closes
 * them. *c must stay valid until then.
 */
void kvm_closer_start(struct kvm_closer *c);
/* Waits until they are closed, or closes them itself if no thread was started. */
void kvm_closer_finish(struct kvm_closer *c);

#endif
