/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_text: gathers what goes into a profile's `text`: see textstore.h.
 *
 * The kernel's functions are read at the end. A module may be gone by then: its
 * functions are read when they are first sampled, and again at the end, as the kernel
 * may have patched them since. The image is given back when the guest runs; a copy
 * of its code (.text; 14 MiB of Debian's 6.1) is kept in an unmapped memfd: a file on disk
 * would make the start wait for the disk.
 *
 * What fails costs text, not the profile. Used by the sink's thread alone.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_TEXT_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_TEXT_H

#include "base/buf.h"
#include "base/table.h"
#include "profile/format/sink/sink.h"

#define PERFDATA_TEXT_MAX_FUNCTIONS (1u << 16) /* of modules */
#define PERFDATA_TEXT_MAX_BYTES (256u << 20)   /* of one profile */

struct perfdata_text {
	const struct profile_kernel *kernel;		/* borrowed; NULL: not known yet */
	int image_fd;					/* -1: no image */
	struct kimage_segment seg[KIMAGE_MAX_SEGMENTS]; /* file_off: in image_fd */
	unsigned int nseg;
	uint64_t slide;
	struct table texts; /* struct module_text, in the order they were first read */
	size_t bytes;
};

void perfdata_text_init(struct perfdata_text *t);
void perfdata_text_deinit(struct perfdata_text *t);

/* The kernel is known and its image at hand. */
void perfdata_text_kernel(struct perfdata_text *t, const struct profile_kernel *k);
/* The first sample at ip, which lies in this module. Its symbols stay until the end. */
void perfdata_text_module(struct perfdata_text *t, const struct profile_module *m, uint64_t ip);
/* Which module lies at an address at last; NULL: none. */
typedef const struct profile_module *perfdata_module_at_fn(void *ctx, uint64_t addr);

/* All of it; empty when there is none. ip: nip sampled addresses of kernel mode. Check out->failed. */
void perfdata_text_write(struct perfdata_text *t, struct buf *out, const uint64_t *ip, size_t nip,
			 perfdata_module_at_fn *module_at, void *ctx);

#endif
