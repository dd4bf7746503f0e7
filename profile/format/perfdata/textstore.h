/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * textstore: the file `text` of a profile: code as it was in guest memory.
 *
 * Functions of the kernel and of modules that were sampled, and where the kernel's
 * image had other bytes: kernels patch themselves. Numbers are little endian, nothing
 * is aligned:
 *
 *	file	"KVMPTEXT" | u32 version, 1 | range...
 *	range	u64 run-time address | u32 len | u32 ndiff | u16 name_len | u16 flags |
 *		name | len bytes as in memory | ndiff times diff
 *	name	name_len bytes, the last one 0: of the module, "" of the kernel
 *	flags	1: the image is known (without this ndiff is 0)
 *	diff	u32 offset in the range | u32 len | len bytes that the image has there;
 *		by offset, not overlapping
 *
 * Ranges are in no order; of two that hold a place the later one counts. Both ways are
 * pure functions over bytes. One thread at a time.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_TEXTSTORE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_TEXTSTORE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXTSTORE_MAX_FILE (1ull << 30)
#define TEXTSTORE_MAX_RANGES (1u << 20)
#define TEXTSTORE_MAX_LEN (1u << 20) /* of one range */
#define TEXTSTORE_MAX_NAME 128u	     /* with its 0 */

struct textstore_range {
	uint64_t addr;
	uint32_t len;
	uint32_t ndiff;
	bool has_image;
	const char *name;    /* "" of the kernel */
	const uint8_t *live; /* len bytes */
	const uint8_t *diff; /* ndiff of them, checked */
};

struct textstore;

/*
 * data is borrowed until destroy. -EINVAL: damaged, and e says where; -E2BIG: over a cap;
 * -ENOMEM. A file that was cut short is damaged, too.
 */
int textstore_parse(struct textstore **out, const char *name, const uint8_t *data, size_t len,
		    struct err *e);
void textstore_destroy(struct textstore *t);

/* The latest range of this module ("" : the kernel) that holds addr, or NULL. */
const struct textstore_range *textstore_find(const struct textstore *t, const char *name,
					     uint64_t addr);
/* The image's bytes: dst has room for r->len. Only if r->has_image. */
void textstore_image(const struct textstore_range *r, uint8_t *dst);

void textstore_write_begin(struct buf *out);
/* image: len bytes or NULL. false, and nothing is written: over a cap. Check out->failed. */
bool textstore_write(struct buf *out, const char *name, uint64_t addr, const uint8_t *live,
		     const uint8_t *image, size_t len);

#endif
