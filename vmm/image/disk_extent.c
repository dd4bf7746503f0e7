/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/disk_extent.h"

#include "base/cleanup.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u
/* QEMU block/qcow2.h: QCOW_MAX_L1_SIZE bytes, clusters of 512 bytes to 2 MiB. */
#define QCOW2_MAX_L1 (32u << 20)
#define QCOW2_MIN_BITS 9u
#define QCOW2_MAX_BITS 21u
#define QCOW2_OFFSET UINT64_C(0x00fffffffffffe00)
#define QCOW2_COMPRESSED (UINT64_C(1) << 62)
#define QCOW2_EXTENDED_L2 16u /* bit 4 of the incompatible features */
#define QCOW2_EXTERNAL_DATA 4u
/* QEMU block/vmdk.c: at most 512 * 1024 * 1024 bytes of grain directory; entries here. */
#define VMDK_MAX_DIRECTORY (1u << 20)
#define VMDK_MAX_TABLE 4096u

/* Keeps the lowest offset that is not in the file; 0: none yet. */
static void note(uint64_t *missing, const struct disk_extent_file *f, uint64_t off)
{
	if (off >= f->size && (!*missing || off < *missing))
		*missing = off;
}

/* Reads a table; NULL: it is not in the file, or out of memory. The caller frees it. */
static void *read_table(const struct disk_extent_file *f, uint64_t off, size_t len)
{
	void *table = malloc(len ? len : 1);

	if (table && f->read(f->ctx, off, table, len)) {
		free(table);
		table = NULL;
	}
	return table;
}

/* -- qcow2 ------------------------------------------------------------------------------------- */

struct qcow2 {
	unsigned int bits;   /* log2 of the cluster size */
	unsigned int stride; /* 64-bit words of an L2 entry */
	bool external;	     /* the data are in another file */
};

static void qcow2_l2(const struct disk_extent_file *f, const struct qcow2 *q, uint64_t off,
		     uint64_t *missing)
{
	size_t len = (size_t)1 << q->bits;
	cleanup_free uint64_t *table = NULL;

	note(missing, f, off);
	table = read_table(f, off, len);
	for (size_t i = 0; table && i < len / 8; i += q->stride) {
		uint64_t x = be64toh(table[i]);

		if (x & QCOW2_COMPRESSED)
			note(missing, f, x & ((UINT64_C(1) << (62 - (q->bits - 8))) - 1));
		else if (!q->external)
			note(missing, f, x & QCOW2_OFFSET);
	}
}

static uint64_t qcow2_missing(const struct disk_extent_file *f)
{
	uint8_t head[104] = { 0 };
	cleanup_free uint64_t *l1 = NULL;
	struct qcow2 q = { .stride = 1 };
	uint64_t missing = 0, at, features = 0;
	uint32_t bits, n, version;

	if (f->read(f->ctx, 0, head, f->size < sizeof(head) ? (size_t)f->size : sizeof(head)))
		return 0;
	memcpy(&version, head + 4, 4);
	memcpy(&bits, head + 20, 4);
	memcpy(&n, head + 36, 4);
	memcpy(&at, head + 40, 8);
	if (be32toh(version) > 2)
		memcpy(&features, head + 72, 8);
	features = be64toh(features);
	q.bits = be32toh(bits);
	n = be32toh(n);
	at = be64toh(at);
	if (q.bits < QCOW2_MIN_BITS || q.bits > QCOW2_MAX_BITS || n > QCOW2_MAX_L1 / 8)
		return 0;
	q.external = features & QCOW2_EXTERNAL_DATA;
	q.stride = features & QCOW2_EXTENDED_L2 ? 2 : 1;
	note(&missing, f, at);
	l1 = read_table(f, at, (size_t)n * 8);
	/* No two entries of a valid image have the same table. */
	for (uint64_t i = 0, left = f->size >> q.bits; l1 && i < n && left; i++)
		if (be64toh(l1[i]) & QCOW2_OFFSET && left--)
			qcow2_l2(f, &q, be64toh(l1[i]) & QCOW2_OFFSET, &missing);
	return missing;
}

/* -- VMDK and VDI ------------------------------------------------------------------------------ */

/* "Hosted Sparse Extent Header"; sectors. */
struct vmdk_head {
	uint32_t magic, version, flags;
	uint64_t capacity, grain, descriptor, descriptor_len;
	uint32_t entries; /* of a grain table */
	uint64_t backup, directory;
} __attribute__((packed));

static uint64_t vmdk_missing(const struct disk_extent_file *f)
{
	cleanup_free uint32_t *directory = NULL;
	struct vmdk_head h;
	uint64_t missing = 0, n;

	/* One whose directory is at its end is checked by QEMU. */
	if (f->read(f->ctx, 0, &h, sizeof(h)) || memcmp(&h.magic, "KDMV", 4) != 0 ||
	    h.directory >= UINT64_MAX / SECTOR || !h.grain || !h.entries ||
	    h.entries > VMDK_MAX_TABLE)
		return 0;
	n = h.capacity / h.grain / h.entries + 1;
	if (n > VMDK_MAX_DIRECTORY)
		return 0;
	note(&missing, f, h.directory * SECTOR);
	directory = read_table(f, h.directory * SECTOR, (size_t)n * 4);
	for (uint64_t i = 0, left = f->size / (h.entries * 4); directory && i < n && left; i++) {
		cleanup_free uint32_t *table = NULL;

		if (!directory[i])
			continue;
		left--;
		note(&missing, f, (uint64_t)directory[i] * SECTOR);
		table = read_table(f, (uint64_t)directory[i] * SECTOR, (size_t)h.entries * 4);
		for (uint32_t k = 0; table && k < h.entries; k++)
			note(&missing, f, (uint64_t)table[k] * SECTOR);
	}
	return missing;
}

/* VirtualBox VDICore.h, VDIHEADER1: blocks lie behind each other from the offset of data on. */
static uint64_t vdi_missing(const struct disk_extent_file *f)
{
	uint32_t data, block, extra, used;
	uint8_t head[0x188];
	uint64_t end;

	if (f->read(f->ctx, 0, head, sizeof(head)))
		return 0;
	memcpy(&data, head + 0x158, 4);
	memcpy(&block, head + 0x178, 4);
	memcpy(&extra, head + 0x17c, 4);
	memcpy(&used, head + 0x184, 4);
	end = data + (uint64_t)used * ((uint64_t)block + extra);
	return used && end > f->size ? f->size : 0;
}

uint64_t disk_extent_missing(const struct disk_extent_file *f, const char *format)
{
	return !strcmp(format, "qcow2")	 ? qcow2_missing(f)
	       : !strcmp(format, "vmdk") ? vmdk_missing(f)
	       : !strcmp(format, "vdi")	 ? vdi_missing(f)
					 : 0;
}
