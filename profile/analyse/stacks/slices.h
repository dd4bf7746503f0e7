/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices: a run's time, cut by the phases of a boot and by its markers.
 *
 * The phases of a boot (phases.h) follow each other. So do the slices of markers, each
 * from its marker to the next one or the profile's end; both may be there, over the same
 * time. A sample stands for the time before it: a slice has those later than its begin, up
 * to and with its end.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_SLICES_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_SLICES_H

#include "base/err.h"
#include "profile/format/sink/markers.h"
#include "profile/format/perfdata/read.h"
#include "profile/analyse/stacks/stackset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
	char name[MARKER_NAME];
	bool phase;		 /* of a boot; else a marker's */
	enum marker_kind kind;	 /* ... of which kind */
	unsigned int nth;	 /* 1: the first slice of that name */
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint64_t samples, weight;
};

struct slices {
	struct slice *slice; /* by time; owned */
	size_t n;
	uint64_t first_ns, last_ns; /* of the samples */
	uint64_t samples, weight;   /* of the whole profile */
	bool weight_is_ns;
};

/*
 * Finds the slices of a profile, for slices_deinit(). Standard input ("-") cannot be read twice and is refused. A NULL
 * argument means its default. Returns 0 or -errno.
 */
int slices_load(struct slices *out, const char *input, const char *buildid_dir, struct err *e);
void slices_deinit(struct slices *s);

/*
 * "NAME", or "NAME#3" for the third of that name; phases also as phase_parse() has them.
 * -ENOENT with e set, which lists what there is.
 */
int slices_choose(const struct slices *s, const char *name, const struct slice **out,
		  struct err *e);

/* Let a reader give this profile's samples of that slice alone. */
int slices_set_window(struct perfdata *p, const char *input, const char *buildid_dir,
		      const char *name, struct err *e);
/* The same for a stackset to be loaded: sets from_s and to_s. */
int slices_set_options(struct stackset_options *opt, const char *name, struct err *e);

#endif
