/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nvdimm: a disk image as one of QEMU's NVDIMMs, since virtio disks are not reproducible.
 *
 * QEMU maps the image privately: guest writes stay in QEMU's memory and are lost when it ends.
 * Linux needs NVDIMMs in units of NVDIMM_UNIT bytes (memremap_compat_align()); an image of another
 * size is copied to a memory file and padded with zeros. An image in another format than raw is copied
 * to a file without a name. Not thread-safe: the caller serialises
 * calls on one object.
 */
#ifndef KVMPROF_VMM_EXACT_NVDIMM_H
#define KVMPROF_VMM_EXACT_NVDIMM_H

#include "base/err.h"
#include "base/gmem.h"

#include <stdbool.h>
#include <stdint.h>

struct disk;

#define NVDIMM_UNIT (UINT64_C(2) << 20)
#define NVDIMM_MAX_COPY (UINT64_C(1) << 30) /* largest image that is copied, bytes */
/* Limit for all NVDIMMs together: the emulated processor has 40 bits of physical addresses. */
#define NVDIMM_MAX_ALL (UINT64_C(1) << 39)

struct nvdimm {
	int fd;		     /* owned; -1: none */
	uint64_t size;	     /* bytes that the guest sees, a multiple of NVDIMM_UNIT */
	uint64_t image_size; /* bytes of the image file */
	bool read_only;
	char sha256[65]; /* hexadecimal, of the image; "": unknown */
};

/*
 * Opens and reads all of d's image. d may be closed afterwards. sha256_load() must have been
 * called. Returns 0; -ENOTSUP if it is not a regular file; -EFBIG if it would have to be copied
 * and exceeds NVDIMM_MAX_COPY; or another -errno, each with *e set. *out is written only on
 * success; the caller closes it with nvdimm_close().
 */
int nvdimm_open(struct nvdimm *out, struct disk *d, struct err *e);
/* Closes n. May be called repeatedly. */
void nvdimm_close(struct nvdimm *n);

/*
 * Returns the length in bytes of the guest-physical range, from *from, in which QEMU's pc places n
 * NVDIMMs.
 */
uint64_t nvdimm_range(const struct nvdimm *disk, unsigned int n, uint64_t ram_above_4g,
		      uint64_t *from);

/*
 * Returns whether the kernel's half of a 4-level address space maps any of [from, to): Linux maps
 * an NVDIMM when its driver claims it (devm_memremap_pages() or devm_memremap() of
 * pmem_attach_disk()), and nothing else does. It also returns true if there are more page tables
 * than RAM has pages, that is, if the guest fabricated them.
 */
bool nvdimm_is_mapped(const struct gmem *m, uint64_t cr3, uint64_t from, uint64_t to);

#endif
