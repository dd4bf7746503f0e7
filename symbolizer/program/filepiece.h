/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filepiece: a part of a file of which pages may be missing.
 *
 * A guest's file is read out of the guest's page cache, where any page may be
 * absent. A piece holds the bytes that were there, zeros for the others, and
 * knows which is which, so that a hole costs only what lies in it.
 *
 * Offsets and lengths in bytes. The caller frees with filepiece_deinit; one
 * thread at a time.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_FILEPIECE_H
#define KVMPROF_SYMBOLIZER_PROGRAM_FILEPIECE_H

#include "base/cursor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILEPIECE_PAGE 4096u

/* Where a file's bytes come from. */
struct file_source {
	/*
	 * Copies bytes from file_off on, and returns how many of len are there
	 * before the first missing one; 0: this byte is missing. What lies behind
	 * a missing byte is asked for at the next multiple of FILEPIECE_PAGE.
	 */
	size_t (*read)(void *ctx, uint64_t file_off, void *dst, size_t len);
	void *ctx;
	uint64_t len; /* of the file */
};

struct filepiece {
	uint8_t *data; /* owned; zero where bytes are missing */
	size_t len;
	uint64_t off;	   /* in the file */
	uint8_t *missing;  /* owned; one byte per page of the file that the piece touches */
	uint32_t nmissing; /* pages */
};

/*
 * 0, also when all of it is missing; -EINVAL: not inside the file; -E2BIG: more
 * than max; -ENOMEM. p is set on success alone.
 */
int filepiece_read(struct filepiece *p, const struct file_source *s, uint64_t off, uint64_t len,
		   uint64_t max);
void filepiece_deinit(struct filepiece *p);

/* Are these bytes of the piece all there? */
bool filepiece_has(const struct filepiece *p, uint64_t at, uint64_t len);
/* A string that ends within max bytes and is wholly there, or NULL. */
const char *filepiece_str(const struct filepiece *p, uint64_t at, size_t max);
/*
 * The first n bytes of a longer string, which are all there, in dst with a zero behind them; dst has room for
 * n + 1 bytes. false: the string is shorter, or part of it is missing.
 */
bool filepiece_str_start(const struct filepiece *p, uint64_t at, char *dst, size_t n);

static inline struct cursor filepiece_cursor(const struct filepiece *p)
{
	struct cursor c;

	cursor_init(&c, p->data, p->len);
	return c;
}

/* A source over bytes in memory; ctx is the struct, which must outlive its use. */
struct file_bytes {
	const uint8_t *data;
	size_t len;
};
struct file_source filepiece_source_of_bytes(struct file_bytes *b);

#endif
