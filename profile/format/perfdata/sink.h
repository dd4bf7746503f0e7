/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_perfdata: a sink whose profile stock perf opens.
 *
 * The default form is a directory, which can be copied elsewhere as a whole:
 *   PATH/data                the perf.data file proper
 *   PATH/kcore_dir/kallsyms  the guest kernel's functions and its modules', run-time addresses
 *   PATH/kcore_dir/kcore     sparse ELF core: text of the sampled functions
 *   PATH/kcore_dir/modules   empty; perf requires it
 *   PATH/dso/<build id>      ELF files of user programs, for kvmprof itself
 *   PATH/kvmprof.json        the totals (also inside data)
 *   PATH/epoch-2/            the samples of the guest's second kernel: such a directory (sink_epochs.h)
 * perf ignores the last three. User programs are also added to the build-id cache, the only place
 * where perf searches for them.
 *
 * Single-file form: PATH is the file; kernel symbols are added to the build-id cache. perf annotate
 * then has no text bytes to show.
 *
 * The output is written under PATH.tmp-<pid>, which end() renames; a previous profile at PATH
 * becomes PATH.old. The temporary can be read at any time, up to the last flush(), also after the
 * process was killed: see leftover.h. If not everything can be written (disk full), end() publishes
 * what fits, and fails. `perf script` prints 127 frames of a call chain and silently drops the
 * rest; the file, `perf report` and `kvmprof script` have them all.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_H

#include "profile/format/sink/sink.h"

/*
 * Renames and removes the output in a process that has the rights to do so
 * (profile/record/publish/keeper.h). Each function is called by the sink's thread and returns 0 or
 * -errno.
 */
struct sink_publisher {
	/*
	 * Registers the temporary, a regular file or a directory. Called once, when the sink is
	 * created. name NULL: it will not be renamed.
	 */
	int (*add)(void *ctx, const char *tmp, const char *name, bool is_file, struct err *e);
	/* Renames the temporary to its final name. */
	int (*publish)(void *ctx, struct err *e);
	/* Removes the temporary. */
	int (*remove)(void *ctx, struct err *e);
	void *ctx;
};

struct sink_perfdata_options {
	const char *path; /* NULL: "perf.data" */
	bool single_file;
	const char *buildid_dir; /* NULL: $HOME/.debug */
	/*
	 * Directory in which files for the build-id cache are written, for another process to move
	 * into the cache; NULL: write to the cache. Borrowed.
	 */
	const char *cache_stage;
	bool no_buildid_cache; /* write nothing outside PATH */
	/* path does not exist and is written under its own name: nothing is renamed or replaced */
	bool in_place;
	/* path is a temporary of a profile for a pipe, not a place where the user looks for it */
	bool passed_on;
	bool late_samples; /* samples may come long after records with a later time */
	/*
	 * Receives, at end(), an error that does not spoil the profile (the build-id cache could
	 * not be written). May be NULL.
	 */
	struct err *note;
	/*
	 * NULL: the sink renames and removes by itself. Borrowed for the life of the sink; copies
	 * do not use it.
	 */
	const struct sink_publisher *publisher;
};

/*
 * Creates a sink in *out, and its temporary file at once, so that an unwritable place is found
 * before a guest is started. Refuses a path whose present content (or .old) does not look like a
 * profile, because end() would move or remove it. opt's strings are copied unless marked as
 * borrowed. The caller frees *out with its destroy operation. Returns 0 or -errno.
 */
int perfdata_sink_create(struct sink **out, const struct sink_perfdata_options *opt, struct err *e);

/*
 * Returns the directory to which a sink of perfdata_sink_create() writes until end(), or NULL for
 * the single-file form. The sink owns the string.
 */
const char *perfdata_sink_directory(const struct sink *s);

#endif
