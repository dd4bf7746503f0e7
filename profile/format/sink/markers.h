/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * markers: named moments of a run, which become records of the profile and cut it into slices.
 *
 * A run has one list (run.markers). Any thread may add markers. The pipeline's consumer thread
 * removes new ones with markers_take() and reports them to the sink between the samples, in order
 * of time. profile_info.markers must be true when the profile begins (see run_has_markers());
 * otherwise the profile stores no markers, and they appear in its totals only.
 *
 * Every function locks the list itself, unless its comment says otherwise.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_MARKERS_H
#define KVMPROF_PROFILE_FORMAT_SINK_MARKERS_H

#include "base/json.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define MARKER_NAME 128u /* bytes with the terminating NUL; longer names are cut */
/* limit of the list for the totals; later markers are in the profile and counted */
#define MARKERS_MAX 10000u

enum marker_kind {
	MARKER_CONSOLE,	   /* a console line matched --mark */
	MARKER_BREAKPOINT, /* the instruction of --mark-at was reached */
	MARKER_START,	   /* collection begins, triggered by the console or a breakpoint */
	MARKER_STOP,	   /* collection ends, triggered likewise */
	MARKER_DELAY,	   /* collection begins after --delay */
	MARKER_CONTROL,	   /* a client of the control socket requested it */
	MARKER_SNAPSHOT,   /* a snapshot of the machine is taken */
	MARKER_KINDS
};

struct marker {
	enum marker_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t cpu;	  /* vCPU index; 0 if the marker belongs to no vCPU */
	char name[MARKER_NAME];
};

struct markers {
	pthread_mutex_t lock;
	struct marker *list; /* owned; the first MARKERS_MAX markers, for the totals */
	size_t n, cap;
	struct marker *fresh; /* owned; markers that markers_take() has not returned yet */
	size_t nfresh, fresh_cap;
	uint64_t added; /* all markers, including those beyond MARKERS_MAX */
	uint64_t lost;	/* entries not stored for lack of memory */
};

/*
 * Initialises an empty list. markers_deinit() frees what it holds. No other thread may use the list
 * during either call.
 */
void markers_init(struct markers *m);
void markers_deinit(struct markers *m);

/*
 * Adds a marker to the totals and to the queue of markers_take(). Any thread may call it. The len
 * bytes at name are copied as markers_clean_name() does. time_ns is CLOCK_MONOTONIC, now or shortly
 * before. A lack of memory is counted in m->lost.
 */
void markers_add(struct markers *m, enum marker_kind kind, const char *name, size_t len,
		 uint64_t time_ns, uint32_t cpu);

/*
 * Like markers_add(), but adds to the totals only. The pipeline uses it for markers that it reports
 * to the sink itself.
 */
void markers_note(struct markers *m, enum marker_kind kind, const char *name, size_t len,
		  uint64_t time_ns, uint32_t cpu);

/*
 * Removes the oldest marker with time_ns <= before_ns from the queue and copies it to *out. Returns
 * false if there is none. Called by the pipeline's consumer thread.
 */
bool markers_take(struct markers *m, uint64_t before_ns, struct marker *out);

/*
 * Returns a constant string such as "console" or "start"; "unknown" for a value outside the enum.
 * Any thread.
 */
const char *markers_kind_name(enum marker_kind kind);
/*
 * Sets *out to the kind whose name is the len bytes at name. Returns false if none has this name.
 * Any thread.
 */
bool markers_kind_parse(const char *name, size_t len, enum marker_kind *out);

/*
 * Copies len bytes as a printable name and terminates it: removes blanks and control characters at
 * both ends, replaces each byte outside printable ASCII by '?', cuts to MARKER_NAME - 1 bytes. An
 * empty name becomes "marker". Any thread.
 */
void markers_clean_name(char out[MARKER_NAME], const char *name, size_t len);

/*
 * Sorts the list by time and writes two members to the object that is open in w: "markers", a list
 * of {"name":...,"kind":...,"time_ns":n,"mono_ns":n}, and "markers_beyond", the number of markers
 * that the list lacks. mono_ns is CLOCK_MONOTONIC. time_ns counts from first_ns, the guest's first
 * instruction (CLOCK_MONOTONIC); it is 0 for earlier markers.
 */
void markers_json(struct markers *m, uint64_t first_ns, struct json_writer *w);

#endif
