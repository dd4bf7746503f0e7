/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mm_path: the path of a file that a process has mapped or open, and which file it is. */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MM_PATH_H
#define KVMPROF_SYMBOLIZER_LINUX_MM_PATH_H

#include "symbolizer/linux/mm.h"

/*
 * The path of a struct file from the root of its mount namespace, as /proc/PID/maps
 * has it: "/memfd:x (deleted)", "/tmp/a.so (deleted)". Bytes as they are, but no NUL;
 * a line feed is possible. buf has LINUX_PATH_MAX bytes; "" if not LINUX_OK.
 */
enum linux_why linux_file_path(const struct linux_mm_layout *l, const struct memory *m,
			       uint64_t file, char *buf);

/*
 * Which file it is, whoever has it open: compare with memcmp. The size and mtime tell
 * a file from one that took its inode's place, and from itself rewritten.
 */
struct linux_file_id {
	uint64_t inode; /* struct inode */
	uint64_t ino;
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t dev; /* dev_t as in the kernel: major << 20 | minor */
	uint32_t generation;
	uint32_t zero;
};

/* LINUX_OK, or *out is left alone. */
enum linux_why linux_file_identify(const struct linux_mm_layout *l, const struct memory *m,
				   uint64_t file, struct linux_file_id *out);

/*
 * The name that perf gives to a mapping: the file's path, "[vdso]", or "//anon".
 * buf has LINUX_PATH_MAX bytes. Other than LINUX_OK: buf is "".
 */
enum linux_why linux_vma_name(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			      const struct linux_vma *v, char *buf);

#endif
