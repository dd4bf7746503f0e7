/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import: a profile out of stacks that came as text.
 *
 * Samples are collected (the parsers' import_fn is import_add), then written through
 * a sink. Addresses are made up: each function, known by its name, its DSO,
 * the size that the text says and whether it is the kernel's, gets a place of its own, as long as its size or the largest
 * offset seen in it, unless the text says where it is in its DSO. Kernel functions go to kallsyms, those of modules where
 * modules lie, and each user DSO becomes an ELF file of names. Texts are copied. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_IMPORT_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_IMPORT_H

#include "profile/analyse/import/parse.h"
#include "profile/format/sink/sink.h"

#define IMPORT_USER_DSO "imported" /* the DSO of user functions for which the text names none */
#define IMPORT_MAX_DSOS 16384u
#define IMPORT_MAX_OFFSET (1u << 19) /* in a function; larger ones count as this */
#define IMPORT_MAX_NAME 1000u	     /* characters of a DSO; longer ones are cut */
#define IMPORT_MAX_COUNTS 1000000u   /* see import_options.counts */

struct import_options {
	/*
	 * The event whose samples are imported, if the text names several; else what was counted. NULL: each event that the
	 * text names, up to PROFILE_MAX_EVENTS of them; "samples" if it names none.
	 */
	const char *event;
	bool kernel;	/* all frames are the kernel's */
	bool no_kernel; /* none is */
	/*
	 * Weights are counts of samples: as long as they are no more than
	 * IMPORT_MAX_COUNTS in all, each becomes so many samples.
	 */
	bool counts;
};

struct import_facts {
	uint64_t samples, weight;
	/* frames with a place in their DSO (import_frame.placed) that is out of reach */
	uint64_t moved;
	uint64_t cut;	/* stacks deeper than STACK_MAX_FRAMES, cut at their outer end */
	uint64_t other; /* samples of events beyond PROFILE_MAX_EVENTS, which are left out */
	size_t functions, dsos;
	unsigned int nevents;
	struct import_event {
		char name[64];
		uint64_t samples;
	} event[PROFILE_MAX_EVENTS];
};

struct import;

int import_create(struct import **out, const struct import_options *opt, struct err *e);
void import_destroy(struct import *i);

/* ctx is a struct import. -ENOMEM, -E2BIG: see import_error(). */
int import_add(void *ctx, const struct import_sample *s);
const char *import_error(int ret);

/*
 * Writes everything, from begin() to end(). info->event[0] says what every event is like, but for its name. Returns 0,
 * -ENOENT if the text names several events and none of them is the option's, or the sink's error.
 */
int import_write(struct import *i, struct sink *sink, const struct profile_info *info,
		 struct import_facts *facts, struct err *e);

#endif
