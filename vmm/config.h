/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config: the parts of a machine that kvmprof runs itself.
 *
 * vm_create() copies a struct vm_config. The objects that its pointers refer to are borrowed: the
 * caller keeps them until the machine is destroyed.
 */
#ifndef KVMPROF_VMM_CONFIG_H
#define KVMPROF_VMM_CONFIG_H

#include "base/capture_plan.h"
#include "base/event.h"
#include "vmm/dev/net_link.h"
#include "vmm/gmem_alloc.h"
#include "vmm/image/protocol.h"
#include "base/limits.h"
#include "vmm/disk_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The way in which the guest finds its virtio devices. */
enum vm_transport {
	VM_VIRTIO_PCI = 0, /* modern virtio-pci with MSI-X */
	VM_VIRTIO_MMIO,	   /* for kernels without PCI; the kernel command line lists the devices */
};

/* A directory of the host that the guest mounts by its tag. */
struct p9_share; /* vmm/dev/p9.h */

struct vm_share {
	const char *dir, *tag;
	bool read_only;
};

struct boot_image;
struct boot_module;
struct kvm_host;
struct quirks;
struct snapshot;
struct snapshot_blob;
struct snapshot_file;

struct vm_config {
	/* If set, the machine is restored from it (snapshot_configure()) and no image is loaded. */
	const struct snapshot *snapshot;
	const struct kvm_host *host;
	const struct quirks *quirks;
	const struct boot_image *image;
	enum boot_protocol boot;
	/* As in struct boot_config (boot/load.h), up to initrd_len. */
	uint64_t entry;
	const char *image_name;
	const struct boot_module *module;
	unsigned int nmodules;
	const char *cmdline;
	const uint8_t *initrd;
	size_t initrd_len;
	uint64_t mem_size; /* bytes */
	enum gmem_pages pages;
	bool bind_memory; /* allocate guest memory on numa_node only */
	unsigned int numa_node;
	const int *pin; /* host CPU of each vCPU; NULL: any */
	unsigned int vcpus;
	enum vm_transport transport;
	struct vm_disk disk[VM_MAX_DISKS]; /* the guest's vda, vdb, ... */
	unsigned int ndisks;
	struct vm_share share[VM_MAX_SHARES];
	unsigned int nshares;
	/*
	 * Called in the process of a share, during vm_create(), before it opens the directory, to
	 * give up rights. Returns 0, or -errno with *e recorded. May be NULL.
	 */
	int (*bind_share)(void *ctx, struct p9_share *share, struct err *e);
	/*
	 * Called when that process ends while the machine runs. `how` is text that follows "it ".
	 * Any thread; may be NULL.
	 */
	void (*share_ended)(void *ctx, const char *tag, const char *how);
	/* Both functions for the process of a network of kind `user`. */
	int (*bind_network)(void *ctx, struct err *e);
	void (*network_ended)(void *ctx, const char *how);
	void *share_ctx;       /* argument of these four functions */
	struct net_config net; /* the network card net0 */
	bool rng;	       /* add a virtio-rng device */
	bool virtio_console;   /* add a virtio console hvc0, whose output goes to `console`, too */
	/* A guest reset restarts the machine (vm_boot_again()) instead of ending it. */
	bool reboots;
	/* Emulate the PIT in the VMM with a minimum period (hosts that interpret ring 0). */
	bool slow_tick;
	struct vm_event event[VM_MAX_EVENTS];
	unsigned int nevents; /* 0: no sampling */
	bool idle_start;      /* take no samples before vm_collect() */
	struct vm_breakpoint breakpoint[VM_MAX_BREAKPOINTS];
	unsigned int nbreakpoints;
	/* On the vCPU's thread, for breakpoints with `once`. */
	void (*reached)(void *ctx, unsigned int breakpoint);
	void *reached_ctx;
	/*
	 * While no samples are collected, still take samples with reason SAMPLE_LOOK until
	 * vm_set_slide(): they show where the kernel is.
	 */
	bool look_for_kernel;
	struct capture_plan plan;
	size_t ring_size;			  /* bytes of the ring of each vCPU */
	void (*console)(void *ctx, uint8_t byte); /* called on the vCPU thread that writes */
	void *console_ctx;
	/*
	 * Called in vm_start() on its caller's thread, when all threads of the machine exist and no
	 * vCPU has run. If it returns -errno, the guest never runs. May be NULL.
	 */
	int (*ready)(void *ctx, struct err *e);
	void *ready_ctx;
	/*
	 * Called on a vCPU's thread: vcpu_begins() before its system calls are filtered,
	 * vcpu_ends() as the last action of the thread. May be NULL.
	 */
	void (*vcpu_begins)(void *ctx, unsigned int vcpu);
	void (*vcpu_ends)(void *ctx, unsigned int vcpu);
	void *vcpu_ends_ctx;
};

/*
 * Returns whether the machine has virtio devices. They need a local APIC, and with VM_VIRTIO_PCI a
 * PCI bus.
 */
bool vm_has_virtio(const struct vm_config *cfg);

#endif
