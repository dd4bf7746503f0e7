/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_find: finds where a kernel without types stores its page cache, by searching its memory.
 * Any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_FILE_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_FILE_FIND_H

#include "symbolizer/linux/file.h"

/* A mapping of some process; `space` is a CR3 through which its memory can be read. */
struct linux_file_known {
	struct linux_vma vma;
	uint64_t space;
};

struct linux_files_known {
	const struct linux_file_known *v;
	size_t n;
};

/*
 * Does what linux_file_layout_init() does, for a kernel without types. mm: from
 * linux_mm_layout_find(). known: mappings with a file, from its start on. Pages in the cache must
 * equal those of the processes, and the files' sizes those that ELF specifies, for at least two
 * files; a private mapping that its process has written to must not be included. Returns 0, or
 * -ENOENT with the reason in *e.
 */
int linux_file_layout_find(struct linux_file_layout *l, const struct linux_mm_layout *mm,
			   const struct memory *m, const struct symtab *s,
			   struct linux_files_known known, struct err *e);

#endif
