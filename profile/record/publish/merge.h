/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: moves what a run has staged for perf's build-id cache into the cache (profile/format/files/buildid_cache.h).
 *
 * Whoever wrote the staging directory may have been taken over by a guest. Only files with the names of a cache are
 * moved, nothing that exists is replaced, and no symbolic link is followed.
 */
#ifndef KVMPROF_PROFILE_RECORD_PUBLISH_MERGE_H
#define KVMPROF_PROFILE_RECORD_PUBLISH_MERGE_H

#include "base/err.h"

#include <sys/types.h>

struct publish_merge {
	int to;		/* the cache */
	uid_t uid, run; /* owner of what is moved; owner of what the run wrote */
	gid_t gid;
	void (*progress)(void *ctx); /* called for each file; may be NULL */
	void *ctx;
};

/* Moves files of the directory `from`, which it closes. Other files stay where they are. Returns 0 or the -errno
 * of the first file that could not be moved. */
int publish_merge_cache(const struct publish_merge *m, int from, struct err *e);

#endif
