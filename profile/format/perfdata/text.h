/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_text: collects code for a profile's file `text` (textstore.h).
 *
 * The kernel's functions are read at the end. A module may be unloaded by then: its functions are
 * read when they are first sampled, and again at the end, because the kernel may have patched them
 * since. The image is freed when the guest runs, so a copy of its code (.text; 14 MiB for Debian's
 * 6.1) is kept in an unmapped memfd: a file on disk would delay the start.
 *
 * A failure costs text, not the profile. Only the sink's thread may call the functions.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_TEXT_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_TEXT_H

#include "base/buf.h"
#include "base/table.h"
#include "profile/format/sink/sink.h"

#define PERFDATA_TEXT_MAX_FUNCTIONS (1u << 16) /* functions of modules */
#define PERFDATA_TEXT_MAX_BYTES (256u << 20)   /* total of one profile */

struct perfdata_text {
	const struct profile_kernel *kernel; /* borrowed; NULL: not known yet */
	int image_fd;			     /* -1: no image */
	/* segments of the image; file_off counts in image_fd */
	struct kimage_segment seg[KIMAGE_MAX_SEGMENTS];
	unsigned int nseg;
	uint64_t slide;
	struct table texts; /* struct module_text, in the order of the first reading */
	/* total length of the texts */
	size_t bytes;
};

/* Initialises an empty collection; perfdata_text_deinit() frees it. */
void perfdata_text_init(struct perfdata_text *t);
void perfdata_text_deinit(struct perfdata_text *t);

/* Sets the kernel, which is borrowed, and copies its image's code if k->image is valid. */
void perfdata_text_kernel(struct perfdata_text *t, const struct profile_kernel *k);
/*
 * Reads the function at ip, at its first sample. It must be in module m, whose symbols stay valid
 * until the end.
 */
void perfdata_text_module(struct perfdata_text *t, const struct profile_module *m, uint64_t ip);
/* Returns the last module at an address, or NULL. */
typedef const struct profile_module *perfdata_module_at_fn(void *ctx, uint64_t addr);

/*
 * Appends the whole file to out; nothing if there is no code. ip has nip sampled addresses in
 * kernel mode. out->failed is set if out of memory.
 */
void perfdata_text_write(struct perfdata_text *t, struct buf *out, const uint64_t *ip, size_t nip,
			 perfdata_module_at_fn *module_at, void *ctx);

#endif
