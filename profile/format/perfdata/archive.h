/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * archive: packs a profile and all files that it needs into one compressed tar file.
 *
 * The output depends on the contents only: entries are sorted, belong to root, have no times, and
 * are compressed by one thread. Unpacked it is a profile directory:
 *
 *   NAME/data                the perf.data file
 *   NAME/kcore_dir/...       the kernel's symbols (of a single file: from the cache)
 *   NAME/dso/<build id>      programs; those that the profile lacks, from the cache
 *
 * Format: POSIX.1-2017 pax interchange (ustar with extended headers where a path or a size needs
 * one), compressed as in RFC 8878 (zstd) or RFC 1952 (gzip). Any thread may call archive_profile().
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
	uint64_t bytes;	   /* total size of the files */
	size_t from_cache; /* number of the files taken from the build-id cache */
	/* number of build ids of programs without a file: they have no names */
	size_t missing;
	bool kernel_missing; /* the archive has no kernel symbols */
	bool partial;	     /* the profile was cut short; it is packed as it is */
};

struct archive_request {
	const char *input;	 /* path of the profile, a file or a directory */
	const char *name;	 /* name of the directory in the archive, one component */
	const char *buildid_dir; /* NULL: $HOME/.debug */
	int fd;			 /* open for writing; borrowed */
	enum archive_form form;
};

/*
 * Writes the archive to r->fd and fills *facts. Returns 0 or -errno: an error of perfdata_open(),
 * of reading a file, or of writing.
 */
int archive_profile(const struct archive_request *r, struct archive_facts *facts, struct err *e);

#endif
