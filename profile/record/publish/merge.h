/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: moves the files that a run has staged for perf's build-id cache into the cache
 * (profile/format/files/buildid_cache.h).
 *
 * A guest may have taken over the process that wrote the staging directory. Only files with the
 * names of a cache are moved, nothing that exists is replaced, and no symbolic link is followed.
 * Called in the keeper's process.
 */
#ifndef KVMPROF_PROFILE_RECORD_PUBLISH_MERGE_H
#define KVMPROF_PROFILE_RECORD_PUBLISH_MERGE_H

#include "base/err.h"

#include <sys/types.h>

struct publish_merge {
	int to;		/* descriptor of the cache's directory; borrowed */
	uid_t uid, run; /* owner of the moved files; owner of the files that the run wrote */
	gid_t gid;
	void (*progress)(void *ctx); /* called for each file; may be NULL */
	void *ctx;
};

/*
 * Moves the files of the directory `from`, which it closes. Other files stay. Returns 0, or the
 * -errno of the first file that could not be moved, with the reason in *e.
 */
int publish_merge_cache(const struct publish_merge *m, int from, struct err *e);

#endif
