/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_devices: what on the host a saved machine's devices stand on: images of disks,
 * shared directories, the network. A snapshot's section "devices":
 *
 *	u32 n, then n times a disk: path, serial number, u8 read-only, u64 size, u64 stamp,
 *	u32 check (struct disk_identity)
 *	u32 n, then n times a share: directory, tag, u8 read-only
 *	u8 enum net_kind, u8 flags (1 host_loopback, 2 restricted), interface
 *	u32 n, then n times a forward: u8 udp, u16 port of the host, u16 port of the guest
 *
 * Texts are u16 length and bytes without a NUL. What was written to the disk of index N is
 * the section "overlay.N" (dev/disk_state.h).
 */
#ifndef KVMPROF_VMM_SNAPSHOT_SNAPSHOT_DEVICES_H
#define KVMPROF_VMM_SNAPSHOT_SNAPSHOT_DEVICES_H

#include "vmm/snapshot/snapshot.h"
#include "vmm/dev/disk.h"
#include "base/limits.h"
#include "vmm/dev/net_link.h"

#include <limits.h>

struct vm_config;

#define SNAPSHOT_DEVICES "devices"
#define SNAPSHOT_DEVICES_VERSION 2u
#define SNAPSHOT_OVERLAY_VERSION 1u
#define SNAPSHOT_SERIAL_MAX 20u
#define SNAPSHOT_TAG_MAX 31u
#define SNAPSHOT_TAP_MAX 15u

struct snapshot_disk {
	char path[PATH_MAX]; /* absolute, of the host that saved it */
	char serial[SNAPSHOT_SERIAL_MAX + 1];
	bool read_only;
	struct disk_identity id;
};

struct snapshot_share {
	char dir[PATH_MAX], tag[SNAPSHOT_TAG_MAX + 1];
	bool read_only;
};

struct snapshot_devices {
	struct snapshot_disk disk[VM_MAX_DISKS];
	struct snapshot_share share[VM_MAX_SHARES];
	unsigned int ndisks, nshares;
	struct net_config net; /* tap points to the next one */
	char tap[SNAPSHOT_TAP_MAX + 1];
};

/* -EINVAL, -ENOENT, -ENOTSUP. */
int snapshot_devices(const struct snapshot *s, struct snapshot_devices *out, struct err *e);
/* Shares and network of the machine; it borrows from d. Disks are the caller's to open. */
void snapshot_devices_configure(const struct snapshot_devices *d, struct vm_config *cfg);
/*
 * Is an image, which may be at another place now, the one that the disk of this index had?
 * -ESTALE with what differs. from: of the snapshot, for the message.
 */
int snapshot_disk_check(const struct snapshot_disk *was, unsigned int i, const struct disk *now,
			const char *from, struct err *e);

/* For snapshot_vm.c. -ENOTSUP with the reason when one of them can't be kept. */
int snapshot_devices_save(const struct vm_config *cfg, struct buf *out, struct err *e);
int snapshot_devices_parse(struct snapshot_devices *out, struct cursor *in, struct err *e);
/* What was written to a disk, as a mapping: file_map_close(). */
int snapshot_overlay_save(const struct disk *d, struct file_map *out, struct err *e);
int snapshot_overlays_restore(const struct snapshot *s, const struct vm_config *cfg, struct err *e);

#endif
