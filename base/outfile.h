/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outfile: an output file that the user named.
 *
 * A regular file is written under another name in the same directory and renamed when it is
 * complete. The old file stays until then, and permanently if writing fails. A symbolic link is
 * kept and its target replaced. Devices, pipes and sockets are written in place and never removed,
 * and so is a regular file in a directory where no file can be created. Not thread-safe: the main
 * thread calls all functions.
 *
 * Functions return 0 or -errno with *e recorded, unless stated otherwise.
 */
#ifndef KVMPROF_BASE_OUTFILE_H
#define KVMPROF_BASE_OUTFILE_H

#include "base/err.h"

#include <stddef.h>

struct outfile {
	/* Descriptor to write to; owned. */
	int fd;
	char *name;    /* as the user gave it; for messages */
	char *path;    /* path after following links; NULL for standard output */
	char *tmp;     /* temporary name; NULL: written in place */
	int tmp_noted; /* result of signals_remove() for tmp */
};

/*
 * Opens the file at path for writing, or standard output for "-". Does not change anything at path
 * unless it is written in place. After success the caller must call outfile_finish(), which frees
 * *o.
 */
int outfile_open(struct outfile *o, const char *path, struct err *e);
/*
 * Closes the file, renames it to its final name, and frees *o. `ret` is 0 or the -errno of writing
 * to o->fd; if it is not 0, the file is discarded. Returns `ret`, or else the first error of its
 * own, with *e recorded.
 */
int outfile_finish(struct outfile *o, int ret, struct err *e);

/* Writes a whole file: opens, writes and finishes it. */
int outfile_write(const char *path, const void *data, size_t len, struct err *e);

/*
 * Checks before a long run whether path could be written at its end. Changes nothing. It cannot
 * foresee a full disk or other writers.
 */
enum outfile_kind {
	OUTFILE_ANY,
	OUTFILE_REGULAR, /* neither a device, pipe or socket nor "-" is accepted */
};
/* Returns 0, or -errno with *e recorded. "-" is writable unless `kind` is OUTFILE_REGULAR. */
int outfile_check(const char *path, enum outfile_kind kind, struct err *e);
/*
 * Returns path with its links followed; an unchanged copy if it is no link or the link dangles. The
 * caller frees it with free(). Returns NULL if out of memory or if the links cannot be resolved.
 */
char *outfile_target(const char *path);

#endif
