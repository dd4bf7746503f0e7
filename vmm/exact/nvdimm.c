/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/nvdimm.h"

#include "base/cleanup.h"
#include "vmm/exact/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (1u << 20)

static int hash_image(struct nvdimm *n, const struct disk *d, struct err *e)
{
	cleanup_free uint8_t *piece = malloc(PIECE);
	struct sha256_ctx c;

	if (!piece)
		return err_set(e, ENOMEM, "out of memory");
	sha256_init(&c);
	for (uint64_t at = 0; at < n->image_size;) {
		uint64_t left = n->image_size - at;
		ssize_t got = pread(n->fd, piece, left < PIECE ? (size_t)left : PIECE, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_set(e, got ? errno : EIO, "%s: cannot read: %s", disk_path(d),
				       got ? strerror(errno) : "it has become shorter");
		sha256_update(&c, (size_t)got, piece);
		at += (uint64_t)got;
	}
	sha256_hex(&c, n->sha256);
	return 0;
}

/* n->fd becomes a copy of it, with zeros at its end. */
static int pad(struct nvdimm *n, const struct disk *d, struct err *e)
{
	int copy = memfd_create("disk", MFD_CLOEXEC);
	off_t at = 0;

	if (copy < 0)
		return err_set(e, errno, "memfd_create: %s", strerror(errno));
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
					       : 0;
}

int nvdimm_open(struct nvdimm *out, const struct disk *d, struct err *e)
{
	struct nvdimm n = {
		.fd = fcntl(disk_fd(d), F_DUPFD_CLOEXEC, 0),
		.size = (disk_size(d) + NVDIMM_UNIT - 1) / NVDIMM_UNIT * NVDIMM_UNIT,
		.image_size = disk_size(d),
		.read_only = disk_is_read_only(d),
	};
	struct stat st;
	int ret;

	if (n.fd < 0 || fstat(n.fd, &st) < 0)
		ret = err_set(e, errno, "%s: %s", disk_path(d), strerror(errno));
	else if (!S_ISREG(st.st_mode))
		ret = err_set(
			e, ENOTSUP,
			"%s: --engine exact takes disks that are files: copy the device to one",
			disk_path(d));
	else if (n.size != n.image_size && n.image_size > NVDIMM_MAX_COPY)
		ret = err_set(
			e, EFBIG,
			"%s: --engine exact takes disks of whole 2 MiB, and this one of %llu "
			"bytes is too large to be copied: `truncate -s %%2M` adds zeros to it",
			disk_path(d), (unsigned long long)n.image_size);
	else
		ret = hash_image(&n, d, e);
	if (!ret && n.size != n.image_size)
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
