/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * markers: named moments of a run, which become records of the profile and cut it
 * into slices.
 *
 * One list for a run (run.markers). Anybody may add to it; the pipeline's consumer
 * takes what is new, puts it between the samples where it belongs, and hands it to
 * the sink. Whoever adds markers makes sure that profile_info.markers is true when
 * the profile begins (run_has_markers()): else the profile has no room for them, and
 * they are in its totals alone.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_MARKERS_H
#define KVMPROF_PROFILE_FORMAT_SINK_MARKERS_H

#include "base/json.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define MARKER_NAME 128u   /* bytes with the NUL; longer names are cut */
#define MARKERS_MAX 10000u /* in the totals; what comes later is in the profile and counted */

enum marker_kind {
	MARKER_CONSOLE,	   /* a line of the console that --mark asked for */
	MARKER_BREAKPOINT, /* --mark-at's instruction was reached */
	MARKER_START,	   /* collection begins, by console or breakpoint */
	MARKER_STOP,	   /* ... ends, likewise */
	MARKER_DELAY,	   /* ... begins, by --delay */
	MARKER_CONTROL,	   /* somebody asked for it while the guest ran */
	MARKER_SNAPSHOT,   /* the machine is saved */
	MARKER_KINDS
};

struct marker {
	enum marker_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t cpu;	  /* vCPU index; 0 where it is of no vCPU */
	char name[MARKER_NAME];
};

struct markers {
	pthread_mutex_t lock;
	struct marker *list; /* the first MARKERS_MAX of all */
	size_t n, cap;
	struct marker *fresh; /* not taken yet */
	size_t nfresh, fresh_cap;
	uint64_t added; /* n and those beyond MARKERS_MAX */
	uint64_t lost;	/* no memory */
};

void markers_init(struct markers *m);
void markers_deinit(struct markers *m);

/*
 * Any thread. name has len bytes and is copied, without blanks around it: what is not printable
 * ASCII becomes '?', what is too long is cut, and an empty name becomes "marker".
 * time_ns: CLOCK_MONOTONIC, of now or a little earlier.
 */
void markers_add(struct markers *m, enum marker_kind kind, const char *name, size_t len,
		 uint64_t time_ns, uint32_t cpu);

/* The same for the pipeline's own: kept for the totals, not to be taken. */
void markers_note(struct markers *m, enum marker_kind kind, const char *name, size_t len,
		  uint64_t time_ns, uint32_t cpu);

/* The pipeline's consumer: the oldest one of before_ns or earlier that was not taken yet. */
bool markers_take(struct markers *m, uint64_t before_ns, struct marker *out);

/* "console", "start" */
const char *markers_kind_name(enum marker_kind kind);
bool markers_kind_parse(const char *name, size_t len, enum marker_kind *out);

/* Bytes as a name: see markers_add(). */
void markers_clean_name(char out[MARKER_NAME], const char *name, size_t len);

/*
 * Writes the members "markers", a list of {"name":...,"kind":...,"time_ns":n,"mono_ns":n} by time,
 * and "markers_beyond". time_ns is since first_ns, the guest's first instruction, and 0 of what came
 * before it; mono_ns is CLOCK_MONOTONIC.
 */
void markers_json(struct markers *m, uint64_t first_ns, struct json_writer *w);

#endif
