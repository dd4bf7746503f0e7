/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file: whole files as bytes, and files that appear only when complete.
 */
#ifndef KVMPROF_BASE_FILE_H
#define KVMPROF_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* A read-only private mapping of a regular file. */
struct file_map {
	const uint8_t *data; /* NULL when the file is empty */
	size_t len;
};

/*
 * Opens a regular file that somebody has named, to read it. A FIFO or a device in its place is an error at once, and is not
 * waited for: -EINVAL, and -EISDIR for a directory. Returns the descriptor, or -errno with one line that names
 * the path. st: of the file; NULL: not asked for.
 */
int file_open_regular(const char *path, struct stat *st, struct err *e);
/* Opens the file in the same way. Returns a stream, or NULL with errno set. */
FILE *file_stream(const char *path);

/*
 * Map path. Fails (with one line that names the path) when it is missing, not
 * a regular file, empty, or longer than max_len bytes.
 */
int file_map_open(struct file_map *m, const char *path, size_t max_len, struct err *e);
/* The same for bytes that are no file's: a copy of them. -ENOMEM, -EINVAL: none. */
int file_map_copy(struct file_map *m, const void *data, size_t len, struct err *e);
void file_map_close(struct file_map *m);

/*
 * Calls fstat(2) itself: fstat() of a C library may call newfstatat(2), which takes a path and is in few lists of
 * profile/record/sandbox. Returns 0, or -1 with errno set.
 */
int file_fstat(int fd, struct stat *st);

/*
 * Appends to b all that a descriptor gives until its end: a pipe's bytes, or those of a file whose size is not known, as of
 * /proc. Returns 0, -EFBIG if there are more than max bytes, -ENOMEM, or what read(2) failed with; *e names the file.
 */
int file_read_rest(struct buf *b, int fd, size_t max, const char *name, struct err *e);

/* write(2) until all is written; -errno on failure. */
int file_write_all(int fd, const void *data, size_t len);

/* A file in memory of size bytes, all 0: *out, the caller's, also where its size can't be set. -errno, named. */
int file_in_memory(const char *name, uint64_t size, int *out, struct err *e);

/*
 * How a file in memory is sealed for all processes that have a descriptor of it. Seals add up. With
 * FILE_SEAL_ALL, -EBUSY: it is still mapped somewhere, to be written to.
 */
enum file_seal {
	FILE_SEAL_SIZE,	  /* it keeps its size */
	FILE_SEAL_LENGTH, /* it becomes no shorter */
	FILE_SEAL_ALL,	  /* it stays as it is */
};
int file_seal(int fd, enum file_seal seal, const char *name, struct err *e);

/*
 * Write data as tmp, then rename it to path: complete or not at all. A leftover at
 * tmp is removed first, what was at path is replaced, and tmp is gone on failure.
 * Mode 0644; tmp and path share a file system.
 */
int file_replace(const char *tmp, const char *path, const void *data, size_t len, struct err *e);

/* Create dir and its parents, mode 0755; an existing one is fine. */
int file_mkdirs(const char *dir, struct err *e);

/* Remove a file, or a directory with everything below it. Missing is fine. */
int file_remove_tree(const char *path, struct err *e);

/*
 * Each regular file in the directory `from` also in the directory `to`: linked, or
 * copied where that can't be. Files of more than FILE_LINK_MAX bytes can't be copied.
 */
#define FILE_LINK_MAX (4ull << 30)
int file_link_all(const char *from, const char *to, struct err *e);

/*
 * Put tmp (file or directory) at path; what was there becomes path.old, and an
 * older path.old is removed. Where the file system can exchange names, path is whole at each moment, and what a kill
 * leaves is called tmp. tmp and path share a file system. What is neither a
 * file nor a directory nor a link is not touched: -EEXIST.
 */
int file_publish(const char *tmp, const char *path, struct err *e);

#endif
