/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_find: finds where a kernel without types keeps its page cache, in its memory. */
#ifndef KVMPROF_SYMBOLIZER_LINUX_FILE_FIND_H
#define KVMPROF_SYMBOLIZER_LINUX_FILE_FIND_H

#include "symbolizer/linux/file.h"

/* A mapping of some process, whose `space` is a CR3 that shows its memory. */
struct linux_file_known {
	struct linux_vma vma;
	uint64_t space;
};

struct linux_files_known {
	const struct linux_file_known *v;
	size_t n;
};

/*
 * As linux_file_layout_init() for a kernel without types. mm: from linux_mm_layout_find().
 * known: mappings with a file, from its start on. Pages in the cache must be those that the
 * processes have, and the files' sizes those that ELF says, for two files at least; a private
 * mapping that its process wrote to must not be among them. -ENOENT with the reason.
 */
int linux_file_layout_find(struct linux_file_layout *l, const struct linux_mm_layout *mm,
			   const struct memory *m, const struct symtab *s,
			   struct linux_files_known known, struct err *e);

#endif
