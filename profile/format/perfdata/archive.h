/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * archive: a profile and all that it needs, as one compressed tar file.
 *
 * What comes out depends on the contents alone: entries are sorted, belong to root, have
 * no times, and one thread compresses them. Unpacked it is a profile directory:
 *
 *   NAME/data                the perf.data file
 *   NAME/kcore_dir/...       the kernel's symbols (of a single file: from the cache)
 *   NAME/dso/<build id>      programs; those that the profile lacks, from the cache
 *
 * Format: POSIX.1-2017 pax interchange (ustar with extended headers where a path or a
 * size needs one); RFC 8878 (zstd) or RFC 1952 (gzip) around it. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_ARCHIVE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_ARCHIVE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_MAX_ENTRIES 200000u
#define ARCHIVE_MAX_DEPTH 8u /* directories in a profile directory */
#define ARCHIVE_MAX_PATH 4096u

enum archive_form { ARCHIVE_TAR, ARCHIVE_GZIP, ARCHIVE_ZSTD };

struct archive_facts {
	size_t files;
	uint64_t bytes;	     /* of the files */
	size_t from_cache;   /* of the files */
	size_t missing;	     /* build ids of programs without a file: they have no names */
	bool kernel_missing; /* no kernel symbols */
	bool partial;	     /* the profile was cut; it is packed as it is */
};

struct archive_request {
	const char *input;	 /* file or directory of the profile */
	const char *name;	 /* the directory's in the archive, one component */
	const char *buildid_dir; /* NULL: $HOME/.debug */
	int fd;			 /* where the archive goes; borrowed */
	enum archive_form form;
};

int archive_profile(const struct archive_request *r, struct archive_facts *facts, struct err *e);

#endif
