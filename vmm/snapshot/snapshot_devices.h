/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_devices: saves what a machine's devices use on the host: disk images, shared
 * directories, the network. It is the section "devices" of a snapshot:
 *
 *	u32 n, then n times a disk: path, serial number, u8 read-only, u64 size, u64 stamp,
 *		u32 check (struct disk_identity)
 *	u32 n, then n times a share: directory, tag, u8 read-only
 *	u8 enum net_kind, u8 flags (1 host_loopback, 2 restricted), interface
 *	u32 n, then n times a forward: u8 udp, u16 port of the host, u16 port of the guest
 *
 * Texts are a u16 length and bytes without a NUL. The section "overlay.N" contains what was
 * written to the disk of index N (dev/disk_state.h). Called by the main thread. All functions
 * return 0, or -errno with *e set, unless stated otherwise.
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
	char path[PATH_MAX]; /* absolute path on the host that saved it */
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
	struct net_config net; /* net.tap points to `tap` below, so the struct must not be copied */
	char tap[SNAPSHOT_TAP_MAX + 1];
};

/*
 * Parses the section of s into *out. Returns 0; -EINVAL if it is damaged, -ENOENT if it is
 * missing, or -ENOTSUP if it has another version.
 */
int snapshot_devices(const struct snapshot *s, struct snapshot_devices *out, struct err *e);
/*
 * Sets the machine's shares and network in *cfg, which borrows from d. The caller opens the disks.
 */
void snapshot_devices_configure(const struct snapshot_devices *d, struct vm_config *cfg);
/*
 * Checks that an image, which may have another path now, is the one that disk i had. Returns 0,
 * -ESTALE with the difference in *e, or another -errno if it cannot be read. from: path of the
 * snapshot, for the message.
 */
int snapshot_disk_check(const struct snapshot_disk *was, unsigned int i, const struct disk *now,
			const char *from, struct err *e);

/*
 * Appends the section's bytes to *out, for snapshot_vm.c. Returns 0, or -ENOTSUP with the reason
 * if one of the devices cannot be saved.
 */
int snapshot_devices_save(const struct vm_config *cfg, struct buf *out, struct err *e);
/* Parses the section's bytes. Returns 0, or -EINVAL if they are damaged. */
int snapshot_devices_parse(struct snapshot_devices *out, struct cursor *in, struct err *e);
/* Creates a mapping of what was written to a disk. The caller closes *out with file_map_close(). */
int snapshot_overlay_save(const struct disk *d, struct file_map *out, struct err *e);
/*
 * Restores what was written to each disk of cfg from the sections "overlay.N". -EINVAL if one is
 * damaged.
 */
int snapshot_overlays_restore(const struct snapshot *s, const struct vm_config *cfg, struct err *e);

#endif
