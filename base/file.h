/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file: reads and writes whole files.
 *
 * Functions with a `struct err *` return 0 or -errno with *e recorded, unless stated otherwise.
 * They keep no state, so any thread may call them.
 */
#ifndef KVMPROF_BASE_FILE_H
#define KVMPROF_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * A read-only private mapping of a regular file, or a read-only copy of bytes. file_map_close()
 * unmaps it.
 */
struct file_map {
	const uint8_t *data; /* NULL when it is closed */
	size_t len;
};

/*
 * Opens a regular file that the user named, for reading. Does not block on a FIFO or a device:
 * these are refused with -EINVAL, and a directory with -EISDIR. Returns a descriptor that the
 * caller closes, or -errno with *e naming the path. Stores the file's status in *st unless st is
 * NULL.
 */
int file_open_regular(const char *path, struct stat *st, struct err *e);
/*
 * Opens the file like file_open_regular(). Returns a stream that the caller closes with fclose(),
 * or NULL with errno set.
 */
FILE *file_stream(const char *path);

/*
 * Maps the file at path. Returns 0, or -errno with *e naming the path: the file is missing, not a
 * regular file, empty (-EINVAL), or longer than max_len bytes (-EFBIG). The caller unmaps it with
 * file_map_close().
 */
int file_map_open(struct file_map *m, const char *path, size_t max_len, struct err *e);
/*
 * Copies bytes to new memory that is used like a mapped file and released with file_map_close().
 * Returns 0, -ENOMEM, or -EINVAL if len is 0.
 */
int file_map_copy(struct file_map *m, const void *data, size_t len, struct err *e);
/* Unmaps *m; does nothing if it is closed already. */
void file_map_close(struct file_map *m);

/*
 * Calls the system call fstat(2) itself: fstat() of a C library may call newfstatat(2), which takes
 * a path and is not allowed for most threads by profile/record/sandbox. Returns 0, or -1 with errno
 * set.
 */
int file_fstat(int fd, struct stat *st);

/*
 * Reads a descriptor to its end and appends the bytes to b: a pipe, or a file of unknown size such
 * as one in /proc. Returns 0, -EFBIG if there are more than max bytes, -ENOMEM, or -errno of
 * read(2). `name` names the file in *e.
 */
int file_read_rest(struct buf *b, int fd, size_t max, const char *name, struct err *e);

/* Writes all bytes with write(2). Returns 0 or -errno. */
int file_write_all(int fd, const void *data, size_t len);

/*
 * Creates a file in memory (memfd_create(2)) of `size` zero bytes. Returns 0, or -errno with `name`
 * in *e. *out is the descriptor, which the caller closes. It is set even if setting the size fails,
 * and -1 if creating the file fails.
 */
int file_in_memory(const char *name, uint64_t size, int *out, struct err *e);

/*
 * The ways to seal a file in memory for all processes that have a descriptor of it. Seals
 * accumulate.
 */
enum file_seal {
	FILE_SEAL_SIZE,	  /* its size is fixed */
	FILE_SEAL_LENGTH, /* it cannot become shorter */
	/* Neither size nor contents can change, and no further seal can be added. */
	FILE_SEAL_ALL,
};
/*
 * Adds the seal to the file. Returns 0, or -errno with `name` in *e; -EBUSY for FILE_SEAL_ALL if
 * the file is still mapped writable somewhere.
 */
int file_seal(int fd, enum file_seal seal, const char *name, struct err *e);

/*
 * Writes data to tmp and renames it to path, so that path is either complete or unchanged. Removes
 * an old tmp first and replaces a file at path. tmp is removed on failure. The mode is 0644; tmp
 * and path must be on one file system. Returns 0, or -errno with *e recorded.
 */
int file_replace(const char *tmp, const char *path, const void *data, size_t len, struct err *e);

/*
 * Creates the directory dir and its parents with mode 0755. An existing directory is not an error.
 */
int file_mkdirs(const char *dir, struct err *e);

/* Removes a file, or a directory with everything below it. A missing path is not an error. */
int file_remove_tree(const char *path, struct err *e);

/*
 * Links each regular file of the directory `from` into the directory `to`, or copies it where
 * linking fails. Files of more than FILE_LINK_MAX bytes and empty files cannot be copied. Returns
 * 0, or -errno with *e recorded.
 */
#define FILE_LINK_MAX (4ull << 30)
int file_link_all(const char *from, const char *to, struct err *e);

/*
 * Renames tmp (a file or a directory) to path. An existing path is renamed to path.old, and an
 * older path.old is removed. Where the file system can exchange names, path is complete at each
 * moment, and a killed process leaves its remains under the name tmp. tmp and path must be on one
 * file system. Anything at path or path.old that is neither a file nor a directory nor a link is
 * kept: -EEXIST.
 */
int file_publish(const char *tmp, const char *path, struct err *e);

#endif
