/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * backing: the files from which the memory of another process is mapped, for example the memory of
 * a guest that was restored from a snapshot.
 *
 * An absent page of such a mapping has the content of the file. Reading the file brings nothing
 * into the memory of the process. The descriptors are copies of the process's own (pidfd_getfd(2)),
 * so that no path is looked up.
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
		/* Owned; a bit for each page of the file that was read; NULL: out of memory. */
		uint8_t *seen;
		uint64_t pages;
	} file[RESIDENT_FILES];
	unsigned int n;
};

/*
 * Copies the descriptors of the files of *r from the process. A file that the process no longer has
 * open, or that cannot be read, is left out. backing_close() closes them.
 */
void backing_open(struct backing *b, pid_t pid, const struct resident *r);
/* Closes all descriptors. */
void backing_close(struct backing *b);
/* Returns the descriptor of a file, which *b owns, or -1 if it cannot be read or f is NULL. */
int backing_of(const struct backing *b, const struct resident_file *f);
/*
 * Records that the page at byte `offset` of the file was read. Returns whether it had not been read
 * before; always true if there was no memory for the record.
 */
bool backing_note(struct backing *b, const struct resident_file *f, uint64_t offset);

#endif
