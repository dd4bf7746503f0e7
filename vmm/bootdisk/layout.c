/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/layout.h"

#include "base/cleanup.h"
#include "base/library.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

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

int layout_read(struct disk_layout *l, const char *path, struct err *e)
{
	__attribute__((cleanup(free_probe))) blkid_probe p = NULL;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint64_t size;
	int ret;

	memset(l, 0, sizeof(*l));
	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	ret = layout_load(e);
	if (ret)
		return ret;
	p = blkid.blkid_new_probe();
	if (!p || blkid.blkid_probe_set_device(p, fd, 0, 0) != 0)
		return err_set(e, EINVAL, "%s: libblkid can't read it", path);
	size = (uint64_t)blkid.blkid_probe_get_size(p);
	/*
	 * A file system at the first byte takes precedence over a table: a FAT's boot sector can
	 * be mistaken for an MBR, but not the reverse.
	 */
	l->part[0].len = size;
	if (find_fs(&l->part[0], fd) < 0)
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
	for (unsigned int i = 0; i < l->n; i++)
		if (find_fs(&l->part[i], fd) < 0)
			return err_set(e, ENOMEM, "%s: out of memory", path);
	return 0;
}
