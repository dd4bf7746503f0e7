/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rootfs: a root file system for the guest, packed into an initramfs in memory.
 *
 * It is made from a directory, a tar or cpio archive, single files of the host, or several of them.
 * No privileges are needed: devices and owners exist only in the archive. Files from a directory
 * belong to root in the guest, those from an archive to the owner that it names. Nothing on the
 * host is changed.
 *
 * All functions are called by the main thread. Those that return int return 0 or -errno with the
 * reason in *e.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_ROOTFS_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_ROOTFS_H

#include "base/file.h"
#include "profile/record/rootfs/cpio_write.h"

#include <stdbool.h>

/* The boot protocol allows initial RAM disks below 2 GiB only. */
#define ROOTFS_MAX_BYTES (UINT64_C(2040) << 20)
#define ROOTFS_MAX_ENTRIES 2000000u
#define ROOTFS_MAX_DEPTH 200u
#define ROOTFS_LINK_MAX 4095u

struct rootfs {
	struct cpio_writer cpio;
	int fd;	     /* memfd */
	void *names; /* tsearch() tree of struct rootfs_name: the names that exist */
	void *links; /* tsearch() tree of struct rootfs_link: files with several names */
	uint32_t next_ino;
	uint64_t entries, files;
	/* files that could not be read, or whose type has no meaning in the guest */
	uint64_t left_out;
	char first_left[256]; /* one of them, with the reason */
};

/* Creates an empty archive. The caller frees it with rootfs_deinit() if this succeeded. */
int rootfs_init(struct rootfs *r, struct err *e);
/* Frees all of *r. The map from rootfs_finish() stays valid. */
void rootfs_deinit(struct rootfs *r);

/*
 * An entry that a function below adds replaces an earlier one with the same name. Names are
 * absolute or relative to the root.
 */

/*
 * Adds the content of a directory within its file system; mount points become empty directories.
 * Unreadable files are counted and left out.
 */
int rootfs_add_directory(struct rootfs *r, const char *dir, struct err *e);
/* Adds a file of the host, following symbolic links, with the given mode; mode 0: its own. */
int rootfs_add_file(struct rootfs *r, const char *name, const char *host_path, uint32_t mode,
		    struct err *e);
/* Adds a file with these bytes. */
int rootfs_add_bytes(struct rootfs *r, const char *name, uint32_t mode, const void *data,
		     size_t len, struct err *e);
/*
 * Adds a directory or a device, with the missing directories above it. An existing one is
 * unchanged.
 */
int rootfs_add_node(struct rootfs *r, const char *name, uint32_t mode, uint32_t major,
		    uint32_t minor, struct err *e);
/* Returns whether an entry of this name exists. */
bool rootfs_has(const struct rootfs *r, const char *name);

/*
 * Completes the archive and maps it to *out, which the caller closes with file_map_close(). Nothing
 * can be added afterwards.
 */
int rootfs_finish(struct rootfs *r, struct file_map *out, struct err *e);

/*
 * For other files of this folder: rootfs_entry() begins an entry, after it has checked its name and
 * added the missing directories above it. rootfs_count_skipped() counts a file that is left out.
 */
int rootfs_entry(struct rootfs *r, struct cpio_entry *entry, struct err *e);
void rootfs_count_skipped(struct rootfs *r, const char *name, const char *why);

#endif
