/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/nvdimm.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "vmm/exact/sha256.h"
#include "vmm/dev/disk.h"
#include "vmm/dev/disk_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (1u << 20)

static int hash_image(struct nvdimm *n, const struct disk *d, struct err *e)
{
	cleanup_free uint8_t *piece = malloc(PIECE);
	struct sha256_ctx c;

	if (!piece)
		return err_nomem(e);
	sha256_begin(&c);
	for (uint64_t at = 0; at < n->image_size;) {
		uint64_t left = n->image_size - at;
		ssize_t got = pread(n->fd, piece, left < PIECE ? (size_t)left : PIECE, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_set(e, got ? errno : EIO, "%s: cannot read: %s", disk_path(d),
				       got ? strerror(errno) : "it has become shorter");
		sha256_add(&c, piece, (size_t)got);
		at += (uint64_t)got;
	}
	sha256_hex(&c, n->sha256);
	return 0;
}

/* Replaces n->fd by a copy of the image with zeros at its end. */
static int pad(struct nvdimm *n, const struct disk *d, struct err *e)
{
	off_t at = 0;
	int copy, ret = file_in_memory("disk", 0, &copy, e);

	if (ret)
		return ret;
	while ((uint64_t)at < n->image_size) {
		ssize_t got = sendfile(copy, n->fd, &at, (size_t)(n->image_size - (uint64_t)at));

		if (got <= 0 && !(got < 0 && errno == EINTR)) {
			close(copy);
			return err_set(e, got ? errno : EIO, "%s: cannot be copied: %s",
				       disk_path(d),
				       got ? strerror(errno) : "it has become shorter");
		}
	}
	close(n->fd);
	n->fd = copy;
	return ftruncate(copy, (off_t)n->size) ? err_set(e, errno, "%s: no memory for a copy: %s",
							 disk_path(d), strerror(errno))
					       : file_seal(copy, FILE_SEAL_ALL, "disk", e);
}

/* Copies a disk that is no file of raw bytes to one without a name. Returns it, or -errno. */
static int copy_out(struct disk *d, uint64_t size, struct err *e)
{
	cleanup_close int to = disk_unpack_file(disk_path(d), e);
	cleanup_free uint8_t *piece = malloc(PIECE);
	uint64_t end = disk_size(d);

	if (to < 0 || !piece)
		return to < 0 ? to : err_nomem(e);
	for (uint64_t at = 0; at < end; at += PIECE) {
		size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;
		struct iovec iov = { piece, len };
		int ret = disk_readv(d, at, &iov, 1);

		if (ret)
			return err_set(e, -ret, "%s: cannot read: %s", disk_path(d),
				       strerror(-ret));
		/* Zeros stay a hole. */
		if ((piece[0] || memcmp(piece, piece + 1, len - 1) != 0) &&
		    pwrite(to, piece, len, (off_t)at) != (ssize_t)len)
			return err_set(e, ENOSPC,
				       "%s: no room for a copy: TMPDIR names another "
				       "directory than /var/tmp",
				       disk_path(d));
	}
	if (ftruncate(to, (off_t)size) < 0)
		return err_set(e, errno, "%s: no room for a copy: %s", disk_path(d),
			       strerror(errno));
	return cleanup_take_fd(&to);
}

/* Opens the image again, read-only: QEMU must not write to it even if the disk is writable. */
static int reopen_to_read(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int nvdimm_open(struct nvdimm *out, struct disk *d, struct err *e)
{
	struct nvdimm n = {
		.fd = -1,
		.size = (disk_size(d) + NVDIMM_UNIT - 1) / NVDIMM_UNIT * NVDIMM_UNIT,
		.image_size = disk_size(d),
		.read_only = disk_is_read_only(d),
	};
	cleanup_close int copy = -1;
	struct stat st;
	bool padded = false;
	int ret;

	if (disk_fd(d) < 0) {
		copy = copy_out(d, n.size, e);
		if (copy < 0)
			return copy;
		padded = true;
	}
	n.fd = reopen_to_read(copy >= 0 ? copy : disk_fd(d));
	if (n.fd < 0 || fstat(n.fd, &st) < 0)
		ret = err_set(e, errno, "%s: %s", disk_path(d), strerror(errno));
	else if (!S_ISREG(st.st_mode))
		ret = err_set(
			e, ENOTSUP,
			"%s: --engine exact takes disks that are files: copy the device to one",
			disk_path(d));
	else if (!padded && n.size != n.image_size && n.image_size > NVDIMM_MAX_COPY)
		ret = err_set(
			e, EFBIG,
			"%s: --engine exact takes disks of whole 2 MiB, and this one of %llu "
			"bytes is too large to be copied: `truncate -s %%2M` adds zeros to it",
			disk_path(d), (unsigned long long)n.image_size);
	else
		ret = hash_image(&n, d, e);
	if (!ret && !padded && n.size != n.image_size)
		ret = pad(&n, d, e);
	if (ret)
		nvdimm_close(&n);
	else
		*out = n;
	return ret;
}

void nvdimm_close(struct nvdimm *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

/* -- does the guest have it? ----------------------------------------------------------------- */

/*
 * Alignment of the range, and the maximum that each NVDIMM needs for alignment (QEMU,
 * pc_get_device_memory_range()).
 */
#define NVDIMM_ALIGN (UINT64_C(1) << 30)
#define ABOVE_4G (UINT64_C(1) << 32)

uint64_t nvdimm_range(const struct nvdimm *disk, unsigned int n, uint64_t ram_above_4g,
		      uint64_t *from)
{
	uint64_t len = n * NVDIMM_ALIGN;

	*from = (ABOVE_4G + ram_above_4g + NVDIMM_ALIGN - 1) / NVDIMM_ALIGN * NVDIMM_ALIGN;
	for (unsigned int i = 0; i < n; i++)
		len += disk[i].size;
	return len;
}

/* Entries of page tables: SDM vol. 3, 4.5. */
#define ENTRIES 512u
#define TOP_LEVEL 4u
#define KERNEL_ENTRY 256u /* first top-level entry of the kernel's half */
#define ENTRY_PRESENT 1u
#define ENTRY_LARGE 0x80u
#define ENTRY_ADDRESS UINT64_C(0x000ffffffffff000)
#define LEVEL_SHIFT(level) (12 + 9 * ((level)-1)) /* log2 of the bytes that an entry maps */

bool nvdimm_is_mapped(const struct gmem *m, uint64_t cr3, uint64_t from, uint64_t to)
{
	/* The tables from the top to the current one, and the next entry of each. */
	uint64_t table[TOP_LEVEL + 1][ENTRIES];
	unsigned int next[TOP_LEVEL + 1] = { [TOP_LEVEL] = KERNEL_ENTRY }, level = TOP_LEVEL;
	/* Limits the walk, since a guest's tables may form a cycle. */
	uint64_t left = gmem_size(m) / sizeof(table[0]);

	if (gmem_read(m, cr3 & ENTRY_ADDRESS, table[level], sizeof(table[level])))
		return false;
	while (level <= TOP_LEVEL) {
		uint64_t entry, at, size = UINT64_C(1) << LEVEL_SHIFT(level);

		if (next[level] == ENTRIES) {
			level++;
			continue;
		}
		entry = table[level][next[level]++];
		at = entry & ENTRY_ADDRESS;
		if (!(entry & ENTRY_PRESENT))
			continue;
		if (level == 1 || (level < TOP_LEVEL && entry & ENTRY_LARGE)) {
			at &= ~(size - 1);
			if (at < to && at + size > from)
				return true;
		} else if (!gmem_read(m, at, table[level - 1], sizeof(table[level - 1]))) {
			if (!left--)
				return true;
			next[--level] = 0;
		}
	}
	return false;
}
