/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader: returns the samples of a profile, each with the mappings and tasks of its time.
 *
 * It applies the records of mappings and tasks while it reads, so that r->names and r->tasks are
 * always those at the record returned last. Not thread-safe: the caller serialises calls on one
 * reader.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_READER_H
#define KVMPROF_PROFILE_FORMAT_NAMES_READER_H

#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/names/srcline.h"
#include "profile/format/names/tasks.h"

struct reader_options {
	const char *input; /* as for perfdata_open_epoch(), borrowed; NULL: perf.data */
	/* event whose samples are read; NULL: the first that has samples */
	const char *event;
	const char *buildid_dir; /* NULL: $HOME/.debug */
	/* 1-based number of the guest's kernel whose samples are read; 0: all kernels */
	uint32_t epoch;
};

struct reader {
	struct perfdata *p;
	struct names *names;
	struct tasks *tasks;
	/* set by the caller, not owned; receives the kernel's map; NULL: none */
	struct srcline *lines;
	/* the profile that the records belong to: p, or a later kernel's; owned by p */
	const struct perfdata *now;
};

/*
 * Opens a profile. Returns 0 or an error of perfdata_open_epoch() or names_create(), after which *r
 * need not be closed. `lines` is set to NULL; the caller sets it afterwards.
 */
int reader_open(struct reader *r, const struct reader_options *o, struct err *e);
/*
 * Returns 0 if the profile has samples of the chosen event, otherwise -ENODATA with the reason in
 * one line: a command must not treat a file that could not be read as one without samples. input is
 * the name for the message; NULL: perf.data.
 */
int reader_need_samples(const struct reader *r, const char *input, struct err *e);
/* Frees all that the reader owns, and keeps r->lines. A zeroed reader is allowed. */
void reader_close(struct reader *r);

/*
 * Reads up to the next sample, or marker of kvmprof, and copies it to *rec. Returns 1, 0 at the
 * end, or -errno. The record's pointers are valid until the next call.
 */
int reader_next(struct reader *r, struct perfdata_record *rec, struct err *e);

#endif
