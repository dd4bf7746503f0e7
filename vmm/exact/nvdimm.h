/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nvdimm: a disk image as an NVDIMM of QEMU's, since virtio disks do not repeat.
 *
 * QEMU maps the image privately: what the guest writes stays in QEMU's memory and is gone with it.
 * Linux takes NVDIMMs in units of NVDIMM_UNIT bytes (memremap_compat_align()); an image that is no
 * multiple of it is copied to a memory file with zeros behind it.
 */
#ifndef KVMPROF_VMM_EXACT_NVDIMM_H
#define KVMPROF_VMM_EXACT_NVDIMM_H

#include "base/err.h"
#include "base/gmem.h"

#include <stdbool.h>
#include <stdint.h>

struct disk;

#define NVDIMM_UNIT (UINT64_C(2) << 20)
#define NVDIMM_MAX_COPY (UINT64_C(1) << 30) /* bytes of an image that is copied */
/* Of all of them: the processor that QEMU emulates has 40 bits of physical addresses. */
#define NVDIMM_MAX_ALL (UINT64_C(1) << 39)

struct nvdimm {
	int fd;	       /* owned; -1: none */
	uint64_t size; /* as the guest sees it: bytes, a multiple of NVDIMM_UNIT */
	uint64_t image_size;
	bool read_only;
	char sha256[65]; /* hex, of the image; "": not known */
};

/*
 * Reads all of d's image. d may be closed afterwards. -ENOTSUP: no regular file; -EFBIG: it would have
 * to be copied, and is too large.
 */
int nvdimm_open(struct nvdimm *out, const struct disk *d, struct err *e);
/* Any number of times; one that is all zero but fd -1 is fine. */
void nvdimm_close(struct nvdimm *n);

/* Returns bytes of guest-physical addresses in which QEMU's pc has n NVDIMMs, from *from on. */
uint64_t nvdimm_range(const struct nvdimm *disk, unsigned int n, uint64_t ram_above_4g,
		      uint64_t *from);

/*
 * Returns whether the kernel's half of an address space of 4 levels maps any of [from, to): Linux maps an NVDIMM when
 * its driver takes it (devm_memremap_pages() or devm_memremap() of pmem_attach_disk()), and nothing else does.
 * Returns true as well if there are more tables than RAM has pages: a guest made them up.
 */
bool nvdimm_is_mapped(const struct gmem *m, uint64_t cr3, uint64_t from, uint64_t to);

#endif
