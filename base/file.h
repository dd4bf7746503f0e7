/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file: whole files as bytes, and files that appear only when complete.
 */
#ifndef KVMPROF_BASE_FILE_H
#define KVMPROF_BASE_FILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* A read-only private mapping of a regular file. */
struct file_map {
	const uint8_t *data; /* NULL when the file is empty */
	size_t len;
};

/*
 * Map path. Fails (with one line that names the path) when it is missing, not
 * a regular file, empty, or longer than max_len bytes.
 */
int file_map_open(struct file_map *m, const char *path, size_t max_len, struct err *e);
/* The same for bytes that are no file's: a copy of them. -ENOMEM, -EINVAL: none. */
int file_map_copy(struct file_map *m, const void *data, size_t len, struct err *e);
void file_map_close(struct file_map *m);

/* write(2) until all is written; -errno on failure. */
int file_write_all(int fd, const void *data, size_t len);

/* A file in memory of size bytes, all 0: *out, the caller's, also where its size can't be set. -errno, named. */
int file_in_memory(const char *name, uint64_t size, int *out, struct err *e);

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
