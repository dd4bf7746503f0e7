/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export: a profile in the formats of other tools.
 *
 * Each format is a function over a const stackset that writes to an export_out, a buffer
 * in front of a file descriptor: what was written is not kept, so a format needs memory
 * for its tables but not for its output. Errors of writing stick to the export_out and
 * are seen at its end. In every format the weights of what was written add up to the
 * profile's.
 *
 * Names come from files and may hold anything. What means something in a format is
 * replaced or coded there; each format is valid UTF-8. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_EXPORT_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_EXPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/analyse/stacks/stackset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- where it goes --------------------------------------------------------------------------- */

struct export_out {
	int fd; /* borrowed */
	struct buf buf;
	void *gzip;	  /* z_stream, or NULL: as it is */
	int ret;	  /* the first failure, -errno */
	uint64_t written; /* bytes, before compression */
};

enum export_packing { EXPORT_UNPACKED, EXPORT_GZIPPED };
void export_out_init(struct export_out *o, int fd, enum export_packing packing);
/* Writes what is left; 0 or the first failure. */
int export_out_finish(struct export_out *o, const char *path, struct err *e);
void export_out_deinit(struct export_out *o);

/* -- how -------------------------------------------------------------------------------------- */

enum export_names {
	EXPORT_FUNCTION, /* function */
	EXPORT_OFFSET,	 /* function+0x1f */
	EXPORT_BOTH,	 /* below function, function+0x1f */
};

struct export_options {
	enum export_names names;
	bool per_thread, per_pid;
	bool tidy;	     /* folded: names as stackcollapse-perf.pl writes them */
	bool no_marks;	     /* folded: nothing behind names */
	bool count_samples;  /* weights are numbers of samples */
	const char *version; /* kvmprof's version */
	uint64_t began_ns;   /* since 1970, of the first sample; 0: not said (pprof) */
	/* Not all samples of the profile: what is told of its whole would be wrong. */
	bool filtered;
	/* Those of the profile's other events, where the format takes EXPORT_EVENTS. */
	struct stackset *const *others;
	size_t nothers;
	/* The stacks of a counted profile with the number of entries (or calls) of each innermost function; NULL: none. */
	const struct stackset *calls;
};

/* -- formats ----------------------------------------------------------------------------------- */

enum export_wants {
	EXPORT_SAMPLES = 1,   /* stackset_options.keep_samples */
	EXPORT_DIRECTORY = 2, /* writes files of its own: path is a directory that exists */
	EXPORT_GZIP = 4,
	EXPORT_BINARY = 8,	/* not for a terminal */
	EXPORT_TEXT_NAMES = 16, /* obeys export_options.names */
	EXPORT_CALLS = 32,	/* obeys export_options.calls */
	EXPORT_EVENTS = 128,	/* obeys export_options.others */
	EXPORT_COVERAGE = 64,	/* exports lines: has no write(); see coverage_write_lcov() */
};

struct export_format {
	const char *name, *help;
	unsigned int wants; /* enum export_wants */
	/* o: the file; of directories NULL, and path is it. */
	int (*write)(struct export_out *o, const char *path, const struct stackset *s,
		     const struct export_options *opt, struct err *e);
};

/* NULL: none of this name. */
const struct export_format *export_find(const char *name);
/* i-th, or NULL behind the last. */
const struct export_format *export_at(size_t i);

/* That of pprof, for who pushes it. */
int export_pprof(struct export_out *o, const char *path, const struct stackset *s,
		 const struct export_options *opt, struct err *e);

#endif
