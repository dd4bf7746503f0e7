/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fat: files of a FAT12, FAT16 or FAT32 file system, read only.
 *
 * EFI system partitions and many boot partitions are FAT. All that comes from the file
 * system is checked against its size: cluster chains that are longer than it has clusters
 * are cut off as damaged, directories and names have caps.
 *
 * Sources: Microsoft Extensible Firmware Initiative FAT32 File System Specification 1.03
 * ("the specification" below; it covers all three, and long names).
 */
#ifndef KVMPROF_VMM_BOOTDISK_FAT_H
#define KVMPROF_VMM_BOOTDISK_FAT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAT_MAX_DIR (2u << 20) /* bytes of a directory: 65536 entries, as the specification says */
#define FAT_MAX_DEPTH 32u      /* components of a path */
#define FAT_MAX_NAME 768u      /* bytes of a name in UTF-8: 255 units of UTF-16 */

/* len bytes at off of the file system: 0 or -errno. */
typedef int fat_read_fn(void *ctx, uint64_t off, void *dst, size_t len);

struct fat {
	fat_read_fn *read;
	void *ctx;
	unsigned int bits; /* 12, 16, 32: of an entry of the table */
	uint32_t cluster_len;
	uint32_t clusters;     /* numbered from 2 on */
	uint64_t table_off;    /* the first FAT */
	uint64_t root_off;     /* of the root directory of FAT12 and FAT16 */
	uint32_t root_len;     /* bytes; FAT32: 0 */
	uint32_t root_cluster; /* FAT32 */
	uint64_t data_off;     /* of cluster 2 */
};

struct fat_node {
	bool dir;
	uint32_t cluster; /* the first; 0: the root of FAT12 and FAT16, or an empty file */
	uint32_t len;	  /* bytes of a file */
};

/* len: bytes of the file system. -EINVAL: it is none, or makes no sense. */
int fat_open(struct fat *f, fat_read_fn *read, void *ctx, uint64_t len, struct err *e);

/* path with '/' between names, which are compared without case. -ENOENT, -ENOTDIR, -EINVAL. */
int fat_find(const struct fat *f, const char *path, struct fat_node *out, struct err *e);

/* Each name in a directory but "." and ".."; another value than 0 ends it and is returned. */
typedef int fat_list_fn(void *ctx, const char *name, const struct fat_node *node);
int fat_list(const struct fat *f, const struct fat_node *dir, fat_list_fn *fn, void *ctx,
	     struct err *e);

/* A file's bytes, appended to *out. -EFBIG: more than max. */
int fat_read_file(const struct fat *f, const struct fat_node *node, size_t max, struct buf *out,
		  struct err *e);
/* The same for up to len bytes from off on, fewer where it ends before. */
int fat_read_part(const struct fat *f, const struct fat_node *node, uint64_t off, size_t len,
		  struct buf *out, struct err *e);

#endif
