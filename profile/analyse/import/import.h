/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import: makes a profile from stacks that were parsed from text.
 *
 * Samples are collected (import_add() is the parsers' import_fn), then written to a sink. Addresses
 * are made up: each function, identified by its name, its DSO, its size in the text and whether it
 * is the kernel's, gets an address range of its own, of its size or of the largest offset seen in
 * it, unless the text contains its place in its DSO. Kernel functions go to kallsyms, those of
 * modules to the address range of modules, and each user DSO becomes an ELF file with symbols only.
 * Texts are copied. Not thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_IMPORT_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_IMPORT_H

#include "profile/analyse/import/parse.h"
#include "profile/format/sink/sink.h"

#define IMPORT_USER_DSO "imported" /* the DSO of user functions whose DSO is not in the text */
#define IMPORT_MAX_DSOS 16384u
#define IMPORT_MAX_OFFSET (1u << 19) /* in a function; larger offsets are reduced to this */
#define IMPORT_MAX_NAME 1000u	     /* characters of a DSO's name; longer ones are cut */
#define IMPORT_MAX_COUNTS 1000000u   /* see import_options.counts */

struct import_options {
	/*
	 * The event whose samples are imported if the text names several events; otherwise the name
	 * of what was counted. NULL: each event in the text, up to PROFILE_MAX_EVENTS; "samples" if
	 * there is none.
	 */
	const char *event;
	bool kernel;	/* all frames are the kernel's */
	bool no_kernel; /* no frame is the kernel's */
	/*
	 * Weights are counts of samples: if their sum is at most IMPORT_MAX_COUNTS, each weight
	 * becomes that number of samples.
	 */
	bool counts;
};

struct import_facts {
	uint64_t samples, weight;
	/* frames whose place in their DSO (import_frame.placed) is out of reach */
	uint64_t moved;
	uint64_t cut;	/* stacks deeper than STACK_MAX_FRAMES, whose outer frames were dropped */
	uint64_t other; /* samples of events beyond PROFILE_MAX_EVENTS, which are omitted */
	size_t functions, dsos;
	unsigned int nevents;
	struct import_event {
		char name[64];
		uint64_t samples;
	} event[PROFILE_MAX_EVENTS];
};

struct import;

/*
 * Creates an empty import; the caller frees it with import_destroy(). *opt is copied, its strings
 * are borrowed until then. Returns 0 or -ENOMEM.
 */
int import_create(struct import **out, const struct import_options *opt, struct err *e);
/* Frees i; does nothing for NULL. */
void import_destroy(struct import *i);

/*
 * Adds a sample; ctx is a struct import. Returns 0, or -errno, for which import_error() returns a
 * message, a constant.
 */
int import_add(void *ctx, const struct import_sample *s);
const char *import_error(int ret);

/*
 * Writes the profile to sink, from begin() to end(), and fills in *facts. info->event[0] describes
 * every event except for its name. Returns 0, -ENOENT if the text names several events and none is
 * that of the options, or another -errno, also of the sink.
 */
int import_write(struct import *i, struct sink *sink, const struct profile_info *info,
		 struct import_facts *facts, struct err *e);

#endif
