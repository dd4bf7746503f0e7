/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fat: reads files of a FAT12, FAT16 or FAT32 file system.
 *
 * EFI system partitions and many boot partitions are FAT. Everything read from the file system is
 * checked against its size: a cluster chain longer than the number of clusters is reported as
 * damaged, and directories and names are limited. A struct fat owns nothing
 * and is constant after fat_open(); threads may share it if its read function allows that.
 *
 * Sources: Microsoft Extensible Firmware Initiative FAT32 File System Specification 1.03 ("the
 * specification" below; it covers all three, and long names).
 */
#ifndef KVMPROF_VMM_BOOTDISK_FAT_H
#define KVMPROF_VMM_BOOTDISK_FAT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAT_MAX_DIR (2u << 20) /* bytes of a directory: 65536 entries, the specification's limit */
#define FAT_MAX_DEPTH 32u      /* components of a path */
#define FAT_MAX_NAME 768u      /* bytes of a name in UTF-8: 255 units of UTF-16 */

/* Reads len bytes at offset off of the file system. Returns 0 or -errno. */
typedef int fat_read_fn(void *ctx, uint64_t off, void *dst, size_t len);

struct fat {
	fat_read_fn *read;
	void *ctx;
	unsigned int bits;     /* bits of an entry of the table: 12, 16 or 32 */
	uint32_t cluster_len;  /* bytes */
	uint32_t clusters;     /* number of clusters; the first one is number 2 */
	uint64_t table_off;    /* byte offset of the first FAT */
	uint64_t root_off;     /* byte offset of the root directory of FAT12 and FAT16 */
	uint32_t root_len;     /* bytes; FAT32: 0 */
	uint32_t root_cluster; /* FAT32 */
	uint64_t data_off;     /* byte offset of cluster 2 */
};

struct fat_node {
	bool dir;
	uint32_t cluster; /* first cluster; 0: root of FAT12 and FAT16, or an empty file */
	uint32_t len;	  /* bytes of a file */
};

/*
 * Reads the header of a file system of len bytes. Returns 0, -EINVAL if it is not a FAT file
 * system or inconsistent, or -errno of read(), with *e set.
 */
int fat_open(struct fat *f, fat_read_fn *read, void *ctx, uint64_t len, struct err *e);

/*
 * Finds a file or directory. path has '/' between names, which are compared ignoring case. Returns
 * 0, -ENOENT, -ENOTDIR, -EINVAL, or another -errno, with *e set.
 */
int fat_find(const struct fat *f, const char *path, struct fat_node *out, struct err *e);

/*
 * Calls fn for each name in a directory except "." and "..". If fn does not return 0, the listing
 * ends and returns that value. Returns 0 at the end, or -errno with *e set.
 */
typedef int fat_list_fn(void *ctx, const char *name, const struct fat_node *node);
int fat_list(const struct fat *f, const struct fat_node *dir, fat_list_fn *fn, void *ctx,
	     struct err *e);

/*
 * Appends a file's bytes to *out. Returns 0, -EFBIG if it has more than max bytes, or another
 * -errno, with *e set.
 */
int fat_read_file(const struct fat *f, const struct fat_node *node, size_t max, struct buf *out,
		  struct err *e);
/* Appends up to len bytes from offset off; fewer at the end of the file. Returns 0 or -errno. */
int fat_read_part(const struct fat *f, const struct fat_node *node, uint64_t off, size_t len,
		  struct buf *out, struct err *e);

#endif
