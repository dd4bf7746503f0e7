/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader: the samples of a profile, with what was mapped and who ran when each was taken.
 *
 * It takes mappings and tasks out of the stream of records, so that names and tasks are always as
 * they were at the record that was given last. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_READER_H
#define KVMPROF_PROFILE_FORMAT_NAMES_READER_H

#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/names/srcline.h"
#include "profile/format/names/tasks.h"

struct reader_options {
	const char *input;	 /* as for perfdata_open_epoch(); NULL: perf.data */
	const char *event;	 /* NULL: the first that has samples */
	const char *buildid_dir; /* NULL: $HOME/.debug */
	uint32_t epoch;		 /* the guest's kernel whose samples are read, from 1 on; 0: all */
};

struct reader {
	struct perfdata *p;
	struct names *names;
	struct tasks *tasks;
	struct srcline *lines; /* the caller's; told where the kernel is mapped; NULL: none */
	const struct perfdata
		*now; /* the profile that the records are of: p, or a later kernel's */
};

/* The errors of perfdata_open_epoch() and names_create(). After one there is nothing to close. */
int reader_open(struct reader *r, const struct reader_options *o, struct err *e);
/*
 * Returns 0 if there are samples of the chosen event to show, else -ENODATA and the reason in
 * one line: commands must not take a file that they could not read for one without samples.
 */
int reader_need_samples(const struct reader *r, const char *input, struct err *e);
/* Closes it, but for `lines`, which is the caller's. All zero is fine, too. */
void reader_close(struct reader *r);

/* 1: *rec is a sample, or a marker of ours; 0: the end; -errno: *e says why. */
int reader_next(struct reader *r, struct perfdata_record *rec, struct err *e);

#endif
