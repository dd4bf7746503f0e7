/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs: a root file system for the guest, packed into an initramfs in memory.
 *
 * From a directory, a tar or cpio archive, single files of the host, or several of them.
 * No rights are needed: devices and owners exist in the archive alone. What comes from a
 * directory belongs to root in the guest, what comes from an archive to whom that says.
 * Nothing of the host is changed.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_ROOTFS_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_ROOTFS_H

#include "base/file.h"
#include "profile/record/rootfs/cpio_write.h"

#include <stdbool.h>

/* The boot protocol's place for it ends at 2 GiB. */
#define ROOTFS_MAX_BYTES (UINT64_C(2040) << 20)
#define ROOTFS_MAX_ENTRIES 2000000u
#define ROOTFS_MAX_DEPTH 200u
#define ROOTFS_LINK_MAX 4095u

struct rootfs {
	struct cpio_writer cpio;
	int fd;	     /* memfd */
	void *names; /* tsearch() tree of what is there, of struct rootfs_name */
	void *links; /* ... and of files with several names, of struct rootfs_link */
	uint32_t next_ino;
	uint64_t entries, files;
	uint64_t left_out;    /* files that could not be read, or are of a kind without meaning */
	char first_left[256]; /* one of them, and why */
};

int rootfs_init(struct rootfs *r, struct err *e);
void rootfs_deinit(struct rootfs *r);

/* What a function below adds replaces what has its name. Names are absolute or relative to the root. */

/* Everything below a directory, within its file system; mount points become empty directories. */
int rootfs_add_directory(struct rootfs *r, const char *dir, struct err *e);
/* One file of the host, links followed; mode 0: its own. */
int rootfs_add_file(struct rootfs *r, const char *name, const char *host_path, uint32_t mode,
		    struct err *e);
/* Bytes. */
int rootfs_add_bytes(struct rootfs *r, const char *name, uint32_t mode, const void *data,
		     size_t len, struct err *e);
/* A directory or a device, with what is missing above it; one that is there stays. */
int rootfs_add_node(struct rootfs *r, const char *name, uint32_t mode, uint32_t major,
		    uint32_t minor, struct err *e);
bool rootfs_has(const struct rootfs *r, const char *name);

/* The archive, complete; r takes nothing more. The caller closes out. */
int rootfs_finish(struct rootfs *r, struct file_map *out, struct err *e);

/* For files of this room: an entry with its name checked and what is missing above it made. */
int rootfs_entry(struct rootfs *r, struct cpio_entry *entry, struct err *e);
void rootfs_leave_out(struct rootfs *r, const char *name, const char *why);

#endif
