/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mm_path: determines the path of a file that a process has mapped or open, and the file's
 * identity. No state: any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MM_PATH_H
#define KVMPROF_SYMBOLIZER_LINUX_MM_PATH_H

#include "symbolizer/linux/mm.h"

/*
 * Writes the path of a struct file from the root of its mount namespace, as in /proc/PID/maps:
 * "/memfd:x (deleted)", "/tmp/a.so (deleted)". Bytes are unchanged; a line feed is possible. buf
 * has LINUX_PATH_MAX bytes. Returns LINUX_OK, or a reason with buf set to "".
 */
enum linux_why linux_file_path(const struct linux_mm_layout *l, const struct memory *m,
			       uint64_t file, char *buf);

/*
 * The identity of a file, independent of who has it open: compare with memcmp(). Size and mtime
 * distinguish a file from one that reuses its inode, and from a rewritten version of itself.
 */
struct linux_file_id {
	uint64_t inode; /* address of the struct inode */
	uint64_t ino;
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t dev; /* dev_t as in the kernel: major << 20 | minor */
	uint32_t generation;
	uint32_t zero;
};

/* Reads the identity. Returns LINUX_OK, or a reason with *out unchanged. */
enum linux_why linux_file_identify(const struct linux_mm_layout *l, const struct memory *m,
				   uint64_t file, struct linux_file_id *out);

/*
 * Writes the name that perf gives to a mapping: the file's path, "[vdso]", or "//anon". buf has
 * LINUX_PATH_MAX bytes. Returns LINUX_OK, or a reason with buf set to "".
 */
enum linux_why linux_vma_name(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			      const struct linux_vma *v, char *buf);

#endif
