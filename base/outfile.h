/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outfile: a file that a person named for output.
 *
 * A regular file is written under another name beside it and renamed when it is complete: what
 * was there stays until then, and stays for good when writing fails. What a link leads to is
 * replaced, never the link. Devices, pipes and sockets are written to as they are and never
 * removed. So is a regular file in a directory that takes no new ones.
 */
#ifndef KVMPROF_BASE_OUTFILE_H
#define KVMPROF_BASE_OUTFILE_H

#include "base/err.h"

#include <stddef.h>

struct outfile {
	int fd;
	char *name;    /* as it was given; for messages */
	char *path;    /* what it leads to */
	char *tmp;     /* NULL: written in place */
	int tmp_noted; /* signals_remove() */
};

/* path "-": standard output. Nothing at path has changed after this, unless it is written in place. */
int outfile_open(struct outfile *o, const char *path, struct err *e);
/*
 * ret: 0 or the -errno of writing to o->fd. Puts the file at its place, or gives it up; frees.
 * Returns ret or the first failure of its own; e has the words for both.
 */
int outfile_finish(struct outfile *o, int ret, struct err *e);

/* All of it: open, write, finish. */
int outfile_write(const char *path, const void *data, size_t len, struct err *e);

/*
 * Before a long run: could path be written at its end? Changes nothing. "-" always is.
 * Where the disk is full, or who else writes there by then, it can't say.
 */
enum outfile_kind {
	OUTFILE_ANY,
	OUTFILE_REGULAR, /* no device, pipe or socket will do, and no "-" */
};
int outfile_check(const char *path, enum outfile_kind kind, struct err *e);
/* What path leads to: its links followed where something is at their end. Owned; NULL: no memory. */
char *outfile_target(const char *path);

#endif
