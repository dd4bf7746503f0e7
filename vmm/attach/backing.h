/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * backing: the files from which the memory of another process is mapped, as that of a guest that was restored from a snapshot.
 *
 * An absent page of such an area has the content of the file. A read of the file brings nothing into the memory of the process. The descriptors
 * are copies of the process's own (pidfd_getfd(2)), so that no name is looked up.
 */
#ifndef KVMPROF_VMM_ATTACH_BACKING_H
#define KVMPROF_VMM_ATTACH_BACKING_H

#include "vmm/attach/resident.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct backing {
	struct {
		unsigned long inode;
		int fd;
		uint8_t *
			seen; /* owned; a bit for each of its pages that was read; NULL: no memory */
		uint64_t pages;
	} file[RESIDENT_FILES];
	unsigned int n;
};

/* Finds the files of *r among the descriptors of the process. A file that it does not have open any more is left out. */
void backing_open(struct backing *b, pid_t pid, const struct resident *r);
void backing_close(struct backing *b);
/* Returns the descriptor of a file that can be read, or -1. */
int backing_of(const struct backing *b, const struct resident_file *f);
/* Notes that the page at this offset of the file was read. Returns whether it was not before. */
bool backing_note(struct backing *b, const struct resident_file *f, uint64_t offset);

#endif
