/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filepiece: a part of a file, some of whose pages may be missing.
 *
 * A guest's file is read from the guest's page cache, where any page may be absent. A piece holds
 * the bytes that were present, zeros for the others, and records which is which, so that a hole
 * affects only its own content.
 *
 * Offsets and lengths are in bytes. Not thread-safe: one thread per piece.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_FILEPIECE_H
#define KVMPROF_SYMBOLIZER_PROGRAM_FILEPIECE_H

#include "base/cursor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILEPIECE_PAGE 4096u

/* Access to a file's bytes. */
struct file_source {
	/*
	 * Copies bytes from file_off on. Returns how many of len are available before the first
	 * missing one; 0: this byte is missing. After a missing byte, the caller continues at the
	 * next multiple of FILEPIECE_PAGE.
	 */
	size_t (*read)(void *ctx, uint64_t file_off, void *dst, size_t len);
	void *ctx;
	uint64_t len; /* length of the file, in bytes */
};

struct filepiece {
	uint8_t *data; /* owned; zero where bytes are missing */
	size_t len;
	uint64_t off;	   /* offset in the file */
	uint8_t *missing;  /* owned; one byte for each page of the file that the piece touches */
	uint32_t nmissing; /* number of missing pages */
};

/*
 * Reads a piece of len bytes at off. Returns 0, even if all of it is missing; -EINVAL if it is not
 * inside the file; -E2BIG if len is more than max; or -ENOMEM. *p is set only on success; the
 * caller frees it with filepiece_deinit().
 */
int filepiece_read(struct filepiece *p, const struct file_source *s, uint64_t off, uint64_t len,
		   uint64_t max);
/* Frees what p owns and clears it. */
void filepiece_deinit(struct filepiece *p);

/* Returns whether these bytes are inside the piece and none is missing. */
bool filepiece_has(const struct filepiece *p, uint64_t at, uint64_t len);
/*
 * Returns the string at `at`, which is in the piece, or NULL if it does not end within max bytes
 * or part of it is missing.
 */
const char *filepiece_str(const struct filepiece *p, uint64_t at, size_t max);
/*
 * Copies the first n bytes of a longer string, and a NUL, to dst, which has room for n + 1 bytes.
 * Returns false if the string is shorter, or part of it is missing.
 */
bool filepiece_str_start(const struct filepiece *p, uint64_t at, char *dst, size_t n);

/* Returns a cursor over the piece's bytes, which it borrows. */
static inline struct cursor filepiece_cursor(const struct filepiece *p)
{
	struct cursor c;

	cursor_init(&c, p->data, p->len);
	return c;
}

/* A source over bytes in memory. Its ctx is the struct, which must outlive the source. */
struct file_bytes {
	const uint8_t *data;
	size_t len;
};
struct file_source filepiece_source_of_bytes(struct file_bytes *b);

#endif
