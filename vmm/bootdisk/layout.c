/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/layout.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/library.h"
#include "vmm/bootdisk/fs.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* The functions of libblkid that are used. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(blkid_do_fullprobe) \
	X(blkid_do_safeprobe) \
	X(blkid_free_probe) \
	X(blkid_new_probe) \
	X(blkid_partition_get_name) \
	X(blkid_partition_get_partno) \
	X(blkid_partition_get_size) \
	X(blkid_partition_get_start) \
	X(blkid_partition_get_type) \
	X(blkid_partition_get_type_string) \
	X(blkid_partition_get_uuid) \
	X(blkid_partition_is_extended) \
	X(blkid_partlist_get_partition) \
	X(blkid_partlist_get_table) \
	X(blkid_partlist_numof_partitions) \
	X(blkid_parttable_get_type) \
	X(blkid_probe_enable_partitions) \
	X(blkid_probe_enable_superblocks) \
	X(blkid_probe_get_partitions) \
	X(blkid_probe_get_size) \
	X(blkid_probe_lookup_value) \
	X(blkid_probe_set_device) \
	X(blkid_probe_set_partitions_flags) \
	X(blkid_probe_set_superblocks_flags)
/* clang-format on */

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };
/* Only the main thread reads disks. */
static struct {
	FUNCTIONS(LIBRARY_MEMBER)
} blkid;

/* Unit of libblkid's numbers, whatever the disk's sector size. */
#define BLKID_SECTOR 512u

static void layout_copy(char *to, const char *from)
{
	snprintf(to, DISK_LAYOUT_TEXT, "%s", from ? from : "");
}

static void free_probe(blkid_probe *p)
{
	if (*p)
		blkid.blkid_free_probe(*p);
}

static void copy_value(char *to, blkid_probe p, const char *name)
{
	const char *value = NULL;

	if (blkid.blkid_probe_lookup_value(p, name, &value, NULL) == 0)
		layout_copy(to, value);
}

/*
 * Finds the file system in the partition's bytes; none if several kinds of superblocks are found.
 */
static int find_fs(struct disk_part *part, int fd)
{
	__attribute__((cleanup(free_probe))) blkid_probe p = blkid.blkid_new_probe();

	if (!p || blkid.blkid_probe_set_device(p, fd, (blkid_loff_t)part->off,
					       (blkid_loff_t)part->len) != 0)
		return -ENOMEM;
	blkid.blkid_probe_enable_superblocks(p, 1);
	blkid.blkid_probe_set_superblocks_flags(p, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
							   BLKID_SUBLKS_UUID);
	if (blkid.blkid_do_safeprobe(p) != 0)
		return 0;
	copy_value(part->fs, p, "TYPE");
	copy_value(part->label, p, "LABEL");
	copy_value(part->uuid, p, "UUID");
	return 0;
}

static void take_partition(struct disk_layout *l, blkid_partition from, uint64_t size)
{
	uint64_t start = (uint64_t)blkid.blkid_partition_get_start(from);
	uint64_t sectors = (uint64_t)blkid.blkid_partition_get_size(from);
	struct disk_part *to = &l->part[l->n];
	const char *type = blkid.blkid_partition_get_type_string(from);

	/* libblkid also lists the logical partitions of an extended one. */
	if (blkid.blkid_partition_is_extended(from))
		return;
	if (l->n == DISK_LAYOUT_MAX_PARTS || start >= size / BLKID_SECTOR || !sectors) {
		l->left_out++;
		return;
	}
	if (sectors > size / BLKID_SECTOR - start) /* a truncated copy */
		sectors = size / BLKID_SECTOR - start;
	memset(to, 0, sizeof(*to));
	to->number = (unsigned int)blkid.blkid_partition_get_partno(from);
	to->off = start * BLKID_SECTOR;
	to->len = sectors * BLKID_SECTOR;
	layout_copy(to->name, blkid.blkid_partition_get_name(from));
	layout_copy(to->partuuid, blkid.blkid_partition_get_uuid(from));
	if (type)
		layout_copy(to->type, type);
	else
		snprintf(to->type, sizeof(to->type), "0x%02x",
			 blkid.blkid_partition_get_type(from));
	l->n++;
}

static void take_table(struct disk_layout *l, blkid_probe p, uint64_t size)
{
	blkid_partlist list = blkid.blkid_probe_get_partitions(p);
	blkid_parttable table = list ? blkid.blkid_partlist_get_table(list) : NULL;
	int n = list ? blkid.blkid_partlist_numof_partitions(list) : 0;

	if (!table || n <= 0)
		return;
	for (int i = 0; i < n; i++)
		take_partition(l, blkid.blkid_partlist_get_partition(list, i), size);
	if (l->n)
		layout_copy(l->table, blkid.blkid_parttable_get_type(table));
}

/*
 * libblkid reads descriptors only. For a disk whose bytes no file has it gets a file in memory with
 * holes, which has the places where tables and superblocks are.
 */
#define EDGE (UINT64_C(1) << 20) /* bytes from the ends of a disk or a partition */
#define MBR_TABLE 446u
#define MBR_ENTRIES 4u
#define MBR_ENTRY 16u
#define EBR_MAX DISK_LAYOUT_MAX_PARTS

struct layout_copy {
	const struct disk_reader *disk; /* NULL: fd is the disk's own file */
	int fd;
};

/* Copies the bytes from off on, as far as they exist. Returns 0 or -errno. */
static int layout_fill(const struct layout_copy *c, uint64_t off, uint64_t len)
{
	cleanup_free uint8_t *bytes = NULL;
	int ret;

	if (!c->disk || off >= c->disk->size)
		return 0;
	if (len > c->disk->size - off)
		len = c->disk->size - off;
	bytes = malloc((size_t)len);
	if (!bytes)
		return -ENOMEM;
	ret = c->disk->read(c->disk->disk, off, bytes, (size_t)len);
	if (!ret && pwrite(c->fd, bytes, (size_t)len, (off_t)off) != (ssize_t)len)
		ret = -EIO;
	return ret;
}

static int layout_fill_edges(const struct layout_copy *c, uint64_t off, uint64_t len)
{
	int ret = layout_fill(c, off, len < EDGE ? len : EDGE);

	return ret || len <= EDGE ? ret : layout_fill(c, off + len - EDGE, EDGE);
}

static bool is_extended(uint8_t type)
{
	return type == 0x05 || type == 0x0f || type == 0x85;
}

static uint32_t mbr_start(const uint8_t *entry)
{
	uint32_t start;

	memcpy(&start, entry + 8, sizeof(start));
	return start;
}

/* Copies the chain of tables of an extended partition, whose first table is at sector `base`. */
static int layout_fill_chain(const struct layout_copy *c, uint64_t base)
{
	uint64_t at = base;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < EBR_MAX; i++) {
		uint8_t table[BLKID_SECTOR] = { 0 };
		const uint8_t *next = table + MBR_TABLE + MBR_ENTRY;

		ret = layout_fill(c, at * BLKID_SECTOR, BLKID_SECTOR);
		if (ret || pread(c->fd, table, sizeof(table), (off_t)(at * BLKID_SECTOR)) <= 0 ||
		    !is_extended(next[4]))
			break;
		at = base + mbr_start(next);
	}
	return ret;
}

/* Copies all places in which a partition table may be. */
static int layout_fill_tables(const struct layout_copy *c)
{
	uint8_t table[BLKID_SECTOR] = { 0 };
	int ret = layout_fill_edges(c, 0, c->disk->size);

	if (!ret && pread(c->fd, table, sizeof(table), 0) < 0)
		ret = -errno;
	for (unsigned int i = 0; !ret && i < MBR_ENTRIES; i++) {
		const uint8_t *p = table + MBR_TABLE + i * MBR_ENTRY;

		if (is_extended(p[4]))
			ret = layout_fill_chain(c, mbr_start(p));
		else if (p[4]) /* it may have a BSD's table */
			ret = layout_fill(c, (uint64_t)mbr_start(p) * BLKID_SECTOR, EDGE);
	}
	return ret;
}

/* Opens what libblkid reads. Returns 0, or -errno with *e recorded. The caller closes c->fd. */
static int layout_open(struct layout_copy *c, const struct disk_reader *disk, const char *path,
		       struct err *e)
{
	int ret;

	if (!disk->size) {
		c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		return c->fd < 0 ? err_set(e, errno, "%s: cannot open: %s", path, strerror(errno))
				 : 0;
	}
	c->disk = disk;
	ret = file_in_memory("layout", disk->size, &c->fd, e);
	if (ret)
		return ret;
	ret = layout_fill_tables(c);
	return ret ? err_set(e, -ret, "%s: cannot read: %s", path, strerror(-ret)) : 0;
}

static int layout_load(struct err *e)
{
	const struct library want = {
		.soname = "libblkid.so.1",
		.what = "the partitions of a disk can't be read",
		.hint = "install libblkid1",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};

	return library_load(&want, (void **)&blkid, e);
}

static int layout_probe(struct disk_layout *l, const struct layout_copy *c, const char *path,
			struct err *e)
{
	__attribute__((cleanup(free_probe))) blkid_probe p = blkid.blkid_new_probe();
	uint64_t size;

	if (!p || blkid.blkid_probe_set_device(p, c->fd, 0, 0) != 0)
		return err_set(e, EINVAL, "%s: libblkid can't read it", path);
	size = (uint64_t)blkid.blkid_probe_get_size(p);
	/*
	 * A file system at the first byte takes precedence over a table: a FAT's boot sector can
	 * be mistaken for an MBR, but not the reverse.
	 */
	l->part[0].len = size;
	if (find_fs(&l->part[0], c->fd) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	if (*l->part[0].fs) {
		l->n = 1;
		return 0;
	}
	memset(l, 0, sizeof(*l));
	blkid.blkid_probe_enable_superblocks(p, 0);
	blkid.blkid_probe_enable_partitions(p, 1);
	blkid.blkid_probe_set_partitions_flags(p, BLKID_PARTS_ENTRY_DETAILS);
	if (blkid.blkid_do_fullprobe(p) == 0)
		take_table(l, p, size);
	if (!l->n)
		return err_set(e, EINVAL,
			       "%s: a disk without partitions and without a file system: `file -s "
			       "%s` may know more",
			       path, path);
	for (unsigned int i = 0; i < l->n; i++) {
		int ret = layout_fill_edges(c, l->part[i].off, l->part[i].len);

		if (ret)
			return err_set(e, -ret, "%s: cannot read: %s", path, strerror(-ret));
		if (find_fs(&l->part[i], c->fd) < 0)
			return err_set(e, ENOMEM, "%s: out of memory", path);
	}
	return 0;
}

int layout_read(struct disk_layout *l, const struct disk_reader *disk, const char *path,
		struct err *e)
{
	struct layout_copy c = { .fd = -1 };
	int ret;

	memset(l, 0, sizeof(*l));
	ret = layout_open(&c, disk, path, e);
	ret = ret ? ret : layout_load(e);
	ret = ret ? ret : layout_probe(l, &c, path, e);
	if (c.fd >= 0)
		close(c.fd);
	return ret;
}
