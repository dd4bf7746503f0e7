/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config: what a machine of our own is made of.
 *
 * vm_create() copies a struct vm_config. What its pointers lead to is the caller's, and outlives the machine.
 */
#ifndef KVMPROF_VMM_CONFIG_H
#define KVMPROF_VMM_CONFIG_H

#include "base/capture_plan.h"
#include "base/event.h"
#include "vmm/dev/net_link.h"
#include "vmm/gmem_alloc.h"
#include "vmm/image/way.h"
#include "base/limits.h"
#include "vmm/disk_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By what the guest finds virtio devices. */
enum vm_transport {
	VM_VIRTIO_PCI = 0, /* modern, MSI-X */
	VM_VIRTIO_MMIO,	   /* for kernels without PCI; the command line names them */
};

/* A directory of the host, which the guest mounts by its tag. */
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
	/* Not NULL: the machine comes out of it (snapshot_configure()), no image is loaded. */
	const struct snapshot *snapshot;
	const struct kvm_host *host;
	const struct quirks *quirks;
	const struct boot_image *image;
	enum boot_way boot;
	/* As in struct boot_config (boot/load.h). */
	uint64_t entry;
	const char *image_name;
	const struct boot_module *module;
	unsigned int nmodules;
	const char *cmdline;
	const uint8_t *initrd;
	size_t initrd_len;
	uint64_t mem_size; /* bytes */
	enum gmem_pages pages;
	bool bind_memory; /* to numa_node */
	unsigned int numa_node;
	const int *pin; /* host CPU of each vCPU; NULL: any */
	unsigned int vcpus;
	enum vm_transport transport;
	struct vm_disk disk[VM_MAX_DISKS]; /* vda, vdb, ... */
	unsigned int ndisks;
	struct vm_share share[VM_MAX_SHARES];
	unsigned int nshares;
	/*
	 * In a share's own process, in vm_create(), before it opens the directory: gives up rights, or
	 * -errno with e set. May be NULL.
	 */
	int (*bind_share)(void *ctx, struct p9_share *share, struct err *e);
	/* That process has ended while the machine runs: `how`, as words behind "it ". Any thread; may be NULL. */
	void (*share_ended)(void *ctx, const char *tag, const char *how);
	/* The process of a network `user` has these two in the same way. */
	int (*bind_network)(void *ctx, struct err *e);
	void (*network_ended)(void *ctx, const char *how);
	void *share_ctx;       /* of all four */
	struct net_config net; /* net0 */
	bool rng;	       /* a virtio-rng */
	bool virtio_console;   /* hvc0, which goes where the serial line goes */
	bool reboots; /* a reset of the guest starts it anew: vm_boot_again(); else it ends the machine */
	bool slow_tick; /* VMM-side PIT with a floor on its period (interpreting hosts) */
	struct vm_event event[VM_MAX_EVENTS];
	unsigned int nevents; /* 0: no sampling */
	bool idle_start;      /* take no samples before vm_collect() */
	struct vm_breakpoint breakpoint[VM_MAX_BREAKPOINTS];
	unsigned int nbreakpoints;
	void (*reached)(void *ctx, unsigned int breakpoint); /* on the vCPU's thread, of `once` */
	void *reached_ctx;
	/*
	 * While nothing is collected take samples with reason SAMPLE_LOOK all the same
	 * until vm_set_slide(): it is they that tell where the kernel is.
	 */
	bool look_for_kernel;
	struct capture_plan plan;
	size_t ring_size;			  /* bytes for each vCPU */
	void (*console)(void *ctx, uint8_t byte); /* on the vCPU thread that writes */
	void *console_ctx;
	/*
	 * In vm_start(), on its caller's thread, when all threads of the machine are there and no
	 * vCPU has run; may be NULL. Where it fails the guest never runs.
	 */
	int (*ready)(void *ctx, struct err *e);
	void *ready_ctx;
	/*
	 * On the thread of a vCPU: the first, before its system calls are filtered, and the last that it does; may be NULL.
	 */
	void (*vcpu_begins)(void *ctx, unsigned int vcpu);
	void (*vcpu_ends)(void *ctx, unsigned int vcpu);
	void *vcpu_ends_ctx;
};

/* Are there virtio devices in it? They need a local APIC, and with VM_VIRTIO_PCI a PCI bus. */
bool vm_has_virtio(const struct vm_config *cfg);

#endif
