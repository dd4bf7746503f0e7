/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_vm: the parts of a machine in the order in which they are saved and restored.
 *
 * Not for includers outside vmm/.
 */
#ifndef KVMPROF_VMM_SNAPSHOT_SNAPSHOT_VM_H
#define KVMPROF_VMM_SNAPSHOT_SNAPSHOT_VM_H

#include "vmm/snapshot/snapshot.h"
#include "vmm/snapshot/snapshot_devices.h"

#define SNAPSHOT_MACHINE_VERSION 3u
#define SNAPSHOT_IRQCHIP_VERSION 1u
#define SNAPSHOT_PIT2_VERSION 1u
#define SNAPSHOT_CLOCK_VERSION 1u
#define SNAPSHOT_TSC_VERSION 1u
#define SNAPSHOT_VIRTIO_VERSION 1u

/* What is to be known before there is a machine. */
struct snapshot_machine {
	uint64_t mem_size;
	uint64_t boot_low, boot_high; /* as in struct vm */
	uint32_t vcpus;
	bool slow_tick; /* the timer is ours (pit.h), not KVM's */
	/* As in struct vm_config. */
	uint32_t transport;
	bool rng, virtio_console;
};
int snapshot_machine_parse(struct snapshot_machine *out, struct cursor *in, struct err *e);

/* A machine that was created as the snapshot says, and has not run, becomes it. */
int snapshot_restore(struct vm *vm, const struct snapshot *s, struct err *e);

/*
 * snapshot_tsc.c: u8 1, u64 the host's counter, u64 the offset of each vCPU; or u8 0 where KVM
 * has none. Restored before the vCPUs, which then leave their counters alone (vm->tsc_set).
 */
int snapshot_tsc_save(void *machine, struct buf *out, struct err *e);
int snapshot_tsc_restore(void *machine, struct cursor *in, struct err *e);

/* snapshot_host.c: what has to be the same where it is restored, a line of text for each. */
int snapshot_host_save(const struct kvm_host *h, const struct quirks *q, struct buf *out,
		       struct err *e);
#define SNAPSHOT_HOST_VERSION 1u

#endif
