/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * textstore: the file `text` of a profile, with code as it was in guest memory.
 *
 * It contains the functions of the kernel and of modules that samples have in their stacks, and the places where the kernel's
 * image had other bytes, because kernels patch themselves. Numbers are little endian, nothing is
 * aligned:
 *
 *	file	"KVMPTEXT" | u32 version, 1 | range...
 *	range	u64 run-time address | u32 len | u32 ndiff | u16 name_len | u16 flags |
 *		name | len bytes as in memory | ndiff times diff
 *	name	name_len bytes, the last one 0: of the module, "" of the kernel
 *	flags	1: the image is known (without this ndiff is 0)
 *	diff	u32 offset in the range | u32 len | len bytes that the image has there;
 *		by offset, not overlapping
 *
 * Ranges are in no order; if two contain an address, the later one is valid. Reading and writing
 * are pure functions over bytes. Not thread-safe: the caller serialises calls on one object.
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
#define TEXTSTORE_MAX_LEN (1u << 20) /* bytes of one range */
#define TEXTSTORE_MAX_NAME 128u	     /* with the NUL */

struct textstore_range {
	uint64_t addr;
	uint32_t len;
	uint32_t ndiff;
	bool has_image;
	const char *name;    /* the module's; "" for the kernel */
	const uint8_t *live; /* len bytes as in memory */
	const uint8_t *diff; /* ndiff differences, checked */
};

struct textstore;

/*
 * Parses the file data[0..len), which is borrowed until textstore_destroy(). name is for messages.
 * Returns 0; -EINVAL with the position if it is damaged or truncated; -E2BIG beyond a limit; or
 * -ENOMEM. The caller frees *out with textstore_destroy().
 */
int textstore_parse(struct textstore **out, const char *name, const uint8_t *data, size_t len,
		    struct err *e);
void textstore_destroy(struct textstore *t);

/*
 * Returns the latest range of this module ("": the kernel) that contains addr, or NULL. t owns it.
 */
const struct textstore_range *textstore_find(const struct textstore *t, const char *name,
					     uint64_t addr);
/* Writes the r->len bytes of the image to dst. Allowed only if r->has_image. */
void textstore_image(const struct textstore_range *r, uint8_t *dst);

/* Appends the file's header to out. */
void textstore_write_begin(struct buf *out);
/*
 * Appends a range of len bytes; image has len bytes or is NULL. Returns false, and writes nothing,
 * beyond a limit. out->failed is set if out of memory.
 */
bool textstore_write(struct buf *out, const char *name, uint64_t addr, const uint8_t *live,
		     const uint8_t *image, size_t len);

#endif
