/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto: shared by the parts of this format: packets, and slices on tracks.
 *
 * A track has a unique number (uuid); the events on it are in order of time. Times are
 * CLOCK_MONOTONIC in ns, as in the profile. Functions without a result keep a lack of memory in
 * perfetto.packet (`failed`). One thread writes a trace.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_H

#include "profile/analyse/export/proto.h"
#include "profile/analyse/export/stacks.h"

/* Sequences of packets; each has its own interned texts and stacks. */
enum { PERFETTO_TRACKS = 1, PERFETTO_SAMPLES /* and the following: one for each event */ };

/* Numbers of tracks. The kind is above these bits. */
#define PERFETTO_KIND_SHIFT 40
enum perfetto_kind {
	PERFETTO_GROUP = 1, /* number: enum perfetto_group */
	PERFETTO_VCPU,	    /* number: index of the vCPU */
	PERFETTO_EXITS,	    /* the same */
	PERFETTO_WHERE,	    /* the same */
	PERFETTO_PROCESS,   /* number: node of perfetto.known */
	PERFETTO_THREAD,    /* the same */
	PERFETTO_DISK,	    /* see perfetto_requests.c */
	PERFETTO_CARD,	    /* the same */
};
enum perfetto_group {
	PERFETTO_VCPUS = 1,
	PERFETTO_DISKS,
	PERFETTO_NETWORK,
	PERFETTO_PHASES,
	PERFETTO_MARKERS
};

static inline uint64_t perfetto_uuid(enum perfetto_kind kind, uint32_t n)
{
	return (uint64_t)kind << PERFETTO_KIND_SHIFT | n;
}

struct perfetto {
	struct export_out *o;
	const struct export_options *opt;
	struct buf packet;
	struct export_tree *known; /* nodes for objects that have a track */
};

/*
 * Stores in *node the number of an object that has a track, and in *fresh whether it is new.
 * Objects are identified by `number` below the node `below`; a thread by its tid below its
 * process's node. Returns 0 or -ENOMEM.
 */
enum perfetto_known { KNOWN_VCPU = UINT32_MAX - 4, KNOWN_PROCESS, KNOWN_EXITS };
int perfetto_intern(struct perfetto *p, uint32_t below, uint32_t number, uint32_t *node,
		    bool *fresh);

/*
 * Writes the first packet of a sequence. counted is the name of the event whose counts are the
 * weights of its samples, or NULL if it has no samples.
 */
void perfetto_sequence(struct perfetto *p, unsigned int sequence, const char *counted);
/*
 * Begins a packet of a sequence that refers to the sequence's first packet; ns 0: without a time.
 * Returns the mark for perfetto_end(), which ends the packet.
 */
size_t perfetto_begin(struct perfetto *p, unsigned int sequence, uint64_t ns);
void perfetto_end(struct perfetto *p, size_t begun);

struct perfetto_track {
	uint64_t uuid, parent; /* parent 0: none */
	const char *name;
	unsigned int rank; /* order among the tracks of its parent */
	const char *told;  /* description of the track; NULL: none */
};

/* Writes the description of a track. */
void perfetto_track(struct perfetto *p, const struct perfetto_track *t);
/* Writes the description of a track that groups others. */
void perfetto_group(struct perfetto *p, enum perfetto_group group, const char *name,
		    const char *told);
/*
 * Begins a slice. Returns the mark for perfetto_slice_begun(), which ends the packet; in between
 * proto_*() may add fields of TrackEvent, and perfetto_annotate*() add details of the slice.
 * perfetto_slice_end() ends the slice at time ns.
 */
size_t perfetto_slice_begin(struct perfetto *p, uint64_t track, uint64_t ns, const char *name);
void perfetto_annotate(struct perfetto *p, const char *name, const char *text);
void perfetto_annotate_number(struct perfetto *p, const char *name, uint64_t v);
void perfetto_slice_begun(struct perfetto *p, size_t begun);
void perfetto_slice_end(struct perfetto *p, uint64_t track, uint64_t ns);
/* Writes a whole slice without details; from <= to. */
void perfetto_slice(struct perfetto *p, uint64_t track, uint64_t from, uint64_t to,
		    const char *name);

#endif
