/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export: writes a profile in the formats of other tools.
 *
 * Each format is a function that reads a const stackset and writes to an export_out, a buffer in
 * front of a file descriptor. Output that was written is not kept, so a format needs memory for its
 * tables but not for its output. Errors of writing are kept in the export_out and returned by
 * export_out_finish(). In every format the sum of the weights is the profile's.
 *
 * Names come from files and may contain any bytes. Bytes that have a meaning in a format are
 * replaced or encoded; each format is valid UTF-8. Not thread-safe: the caller serialises calls on
 * one export_out.
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
	void *gzip;	  /* z_stream, owned; NULL: no compression */
	int ret;	  /* the first error, -errno; 0: none */
	uint64_t written; /* bytes, before compression */
};

enum export_packing { EXPORT_UNPACKED, EXPORT_GZIPPED };
/*
 * Begins output to fd. The caller calls export_out_finish(), then export_out_deinit(). If memory
 * runs out, finish reports it.
 */
void export_out_init(struct export_out *o, int fd, enum export_packing packing);
/*
 * Writes the rest of the buffer. Returns 0, or the first error as -errno; path is for its message.
 */
int export_out_finish(struct export_out *o, const char *path, struct err *e);
/* Frees the buffers; fd stays open. */
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
	bool no_marks;	     /* folded: no suffixes of names */
	bool count_samples;  /* weights are numbers of samples */
	const char *version; /* kvmprof's version */
	uint64_t began_ns;   /* time of the first sample since 1970; 0: omit it (pprof) */
	/*
	 * The stackset lacks some samples of the profile: omit statements about the whole profile.
	 */
	bool filtered;
	/* Stacksets of the profile's other events, for formats with EXPORT_EVENTS. */
	struct stackset *const *others;
	size_t nothers;
	/*
	 * The stacks of a profile of exact counts with the number of entries (or calls) of each
	 * innermost function; NULL: none.
	 */
	const struct stackset *calls;
};

/* -- formats ----------------------------------------------------------------------------------- */

enum export_wants {
	EXPORT_SAMPLES = 1,   /* stackset_options.keep_samples */
	EXPORT_DIRECTORY = 2, /* writes several files: path is an existing directory */
	EXPORT_GZIP = 4,
	EXPORT_BINARY = 8,	/* not suitable for a terminal */
	EXPORT_TEXT_NAMES = 16, /* obeys export_options.names */
	EXPORT_CALLS = 32,	/* obeys export_options.calls */
	EXPORT_EVENTS = 128,	/* obeys export_options.others */
	EXPORT_COVERAGE = 64,	/* exports lines: write is NULL; see coverage_write_lcov() */
};

struct export_format {
	const char *name, *help;
	unsigned int wants; /* bits of enum export_wants */
	/*
	 * Writes s to o, or, for EXPORT_DIRECTORY, to the directory path (o is NULL then). Returns
	 * 0 or -errno; errors of writing to o are kept in o.
	 */
	int (*write)(struct export_out *o, const char *path, const struct stackset *s,
		     const struct export_options *opt, struct err *e);
};

/* Returns the format with this name, a constant, or NULL. */
const struct export_format *export_find(const char *name);
/* Returns the i-th format, or NULL after the last. */
const struct export_format *export_at(size_t i);

/*
 * Writes the format pprof, for callers that push it; arguments and result are those of
 * export_format.write.
 */
int export_pprof(struct export_out *o, const char *path, const struct stackset *s,
		 const struct export_options *opt, struct err *e);

#endif
