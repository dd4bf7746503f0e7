/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_vm: the parts of a machine in the order in which they are saved and restored.
 *
 * Not for includers outside vmm/.
 */
#ifndef KVMPROF_VMM_SNAPSHOT_SNAPSHOT_VM_H
#define KVMPROF_VMM_SNAPSHOT_SNAPSHOT_VM_H

#include "vmm/snapshot/snapshot.h"

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

/* A machine before its first instruction, kept in this process: what a reset goes back to. */
struct snapshot_boot;

/* Keeps the machine as it is. Memory: a copy of the pages that a loader has written. Returns 0 or -errno; *out is the caller's. */
int snapshot_boot_keep(struct snapshot_boot **out, struct vm *vm, struct err *e);
/* Makes a machine whose vCPUs are paused what it was. Requests to devices that are under way end before that. */
int snapshot_boot_again(const struct snapshot_boot *b, struct vm *vm, struct err *e);
void snapshot_boot_free(struct snapshot_boot *b); /* NULL is fine */

/* A machine that was created as the snapshot says, and has not run, becomes it. */
int snapshot_restore(struct vm *vm, const struct snapshot *s, struct err *e);

#endif
