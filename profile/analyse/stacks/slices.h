/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices: divides a run's time by the phases of a boot and by its markers.
 *
 * The phases of a boot (phases.h) follow each other. So do the slices of markers, each from its
 * marker to the next one or to the profile's end. A profile may have both, over the same time. A
 * sample covers the time before it: a slice has the samples later than its beginning, up to and
 * including its end. The functions keep no state; any thread may call them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_SLICES_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_SLICES_H

#include "base/err.h"
#include "profile/format/sink/markers.h"
#include "profile/format/perfdata/read.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/stacks/stackset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
	char name[MARKER_NAME];
	bool phase;		 /* a phase of a boot; otherwise a marker's slice */
	enum marker_kind kind;	 /* the marker's kind */
	unsigned int nth;	 /* 1 for the first slice of this name */
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint64_t samples, weight;
};

struct slices {
	struct slice *slice; /* sorted by time; owned */
	size_t n;
	uint64_t first_ns, last_ns; /* range of the samples' times */
	uint64_t samples, weight;   /* sums of the whole profile */
	bool weight_is_ns;
};

/*
 * Loads the profile and finds its slices; the caller frees them with slices_deinit(). Standard
 * input ("-") cannot be read twice and is refused with -EINVAL. A NULL argument means its default.
 * Returns 0 or -errno.
 */
int slices_load(struct slices *out, const char *input, const char *buildid_dir, struct err *e);
/* Frees the list and leaves an empty one. */
void slices_deinit(struct slices *s);

/*
 * Sets *out to the slice "NAME", or to the third of that name for "NAME#3"; phases have the names
 * of phase_parse(), too. s owns it. Returns 0, or -ENOENT with a list of the slices.
 */
int slices_choose(const struct slices *s, const char *name, const struct slice **out,
		  struct err *e);

/*
 * Restricts the samples of an open profile to a slice (perfdata_set_window()), and stores the limits
 * in *out. input and buildid_dir are those of p. Returns 0 or -errno. selection_set_window() calls it.
 */
int slices_set_window(struct perfdata *p, const char *input, const char *buildid_dir,
		      const char *name, struct selection_window *out, struct err *e);

#endif
