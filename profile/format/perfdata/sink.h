/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_perfdata: a profile that stock perf opens.
 *
 * Default form, a directory that can be copied elsewhere whole:
 *   PATH/data                the perf.data file proper
 *   PATH/kcore_dir/kallsyms  the guest kernel's functions and its modules', run-time addresses
 *   PATH/kcore_dir/kcore     sparse ELF core: text of the sampled functions
 *   PATH/kcore_dir/modules   empty; perf wants it to be there
 *   PATH/dso/<build id>      ELF files of user programs, for kvmprof itself
 *   PATH/kvmprof.json        the totals (also inside data)
 *   PATH/epoch-2/            the samples of the guest's second kernel: such a directory (sink_epochs.h)
 * perf reads all but the last three, which it ignores. User programs go to the
 * build-id cache as well: the one place where perf looks for them.
 *
 * Single-file form: PATH is the file; kernel symbols go to the build-id cache.
 * perf annotate has no text bytes to show then.
 *
 * Written under PATH.tmp-<pid>, renamed by end(); what was at PATH becomes
 * PATH.old. What is there can be read at any time, up to what the last flush() wrote, also when
 * the process was killed: see leftover.h. When it can't be written whole (disk full),
 * end() publishes what fits, and fails. `perf script` prints 127 frames of a call chain and
 * drops the rest without a word; the file, `perf report` and `kvmprof script` have them all.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_H

#include "profile/format/sink/sink.h"

/*
 * Renames and removes what a sink has written, in a process that still may (profile/record/publish/keeper.h). Each function returns
 * 0 or -errno.
 */
struct sink_publisher {
	/* Called once by the sink's creation. tmp is a regular file or a directory; name NULL: it is never renamed. */
	int (*add)(void *ctx, const char *tmp, const char *name, bool is_file, struct err *e);
	int (*publish)(void *ctx, struct err *e);
	int (*remove)(void *ctx, struct err *e);
	void *ctx;
};

struct sink_perfdata_options {
	const char *path; /* NULL: "perf.data" */
	bool single_file;
	const char *buildid_dir; /* NULL: $HOME/.debug */
	/* Where additions to the cache are written, for others to move into it; NULL: the cache itself. Borrowed. */
	const char *cache_stage;
	bool no_buildid_cache; /* write nothing outside PATH */
	bool in_place; /* path does not exist, and is written under its own name: nothing is renamed or replaced */
	bool passed_on;	   /* path is not where a person will look for it, but goes on to a pipe */
	bool late_samples; /* samples may come long after what has a later time */
	/*
	 * Where to tell what went wrong without spoiling the profile (the
	 * build-id cache could not be written). May be NULL; set by end().
	 */
	struct err *note;
	/* NULL: the sink renames and removes by itself. Borrowed for the life of the sink; a copy has none. */
	const struct sink_publisher *publisher;
};

/*
 * Creates the temporary at once, so that an unwritable place is found before
 * a guest is started. Refuses a path whose present content (or .old) does not
 * look like a profile, as end() would move or remove it. opt's strings are
 * copied; *out is freed by its destroy().
 */
int perfdata_sink_create(struct sink **out, const struct sink_perfdata_options *opt, struct err *e);

/* Returns where a sink of perfdata_sink_create() writes until end(): a directory, or NULL for the single-file form. */
const char *perfdata_sink_directory(const struct sink *s);

#endif
