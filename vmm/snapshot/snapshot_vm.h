/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_vm: saves and restores the parts of a machine in their order.
 *
 * Only for files in vmm/. Called by the main thread, or by the thread that resets the machine,
 * while all vCPUs are paused or have not run.
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

/* Facts that are needed before the machine is created. */
struct snapshot_machine {
	uint64_t mem_size;
	uint64_t boot_low, boot_high; /* as in struct vm */
	uint32_t vcpus;
	bool slow_tick; /* the timer is that of pit.h instead of KVM's */
	/* As in struct vm_config. */
	uint32_t transport;
	bool rng, virtio_console;
};
/* Parses the section "machine". Returns 0, or -EINVAL if it is damaged. */
int snapshot_machine_parse(struct snapshot_machine *out, struct cursor *in, struct err *e);

/*
 * The state of a machine before its first instruction, stored in this process; a reset restores
 * it.
 */
struct snapshot_boot;

/*
 * Stores the machine's state. Of memory, it copies the pages that are not zero. Returns 0, or
 * -errno with *e set. The caller frees *out with snapshot_boot_free().
 */
int snapshot_boot_save(struct snapshot_boot **out, struct vm *vm, struct err *e);
/*
 * Restores the state of a machine whose vCPUs are paused. Requests to devices that are under way
 * end first. The guest's clock continues. Returns 0, or -errno with *e set; the machine is then
 * unusable.
 */
int snapshot_boot_restore(const struct snapshot_boot *b, struct vm *vm, struct err *e);
void snapshot_boot_free(struct snapshot_boot *b); /* Frees b; NULL is accepted. */

/*
 * Restores the state of s into a machine that was created with snapshot_configure() and has not
 * run. Returns 0, or -errno with *e set; the machine is then unusable.
 */
int snapshot_restore(struct vm *vm, const struct snapshot *s, struct err *e);

#endif
