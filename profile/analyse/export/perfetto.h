/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfetto: what the parts of that format share: packets, and slices on tracks.
 *
 * A track has a number of its own (uuid); what is on it has times that do not go back. Times
 * are CLOCK_MONOTONIC in ns, as in the profile. Errors of memory stay in perfetto.packet.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PERFETTO_H

#include "profile/analyse/export/proto.h"
#include "profile/analyse/export/stacks.h"

/* Sequences of packets; each has its own interned texts and stacks. */
enum { PERFETTO_TRACKS = 1, PERFETTO_SAMPLES /* and on: one for each event */ };

/* Numbers of tracks. A kind's have its number above these bits. */
#define PERFETTO_KIND_SHIFT 40
enum perfetto_kind {
	PERFETTO_GROUP = 1, /* enum perfetto_group */
	PERFETTO_VCPU,	    /* index of the vCPU */
	PERFETTO_EXITS,	    /* the same */
	PERFETTO_WHERE,	    /* the same */
	PERFETTO_PROCESS,   /* node of perfetto.known */
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
	struct export_tree *known; /* what has a track */
};

/* What has a track, by number; a thread by its process's node and its tid. */
enum perfetto_known { KNOWN_VCPU = UINT32_MAX - 4, KNOWN_PROCESS, KNOWN_EXITS };
int perfetto_know(struct perfetto *p, uint32_t below, uint32_t number, uint32_t *node, bool *fresh);

/*
 * The first packet of a sequence. counted: what its samples' weights are of, an event's name;
 * NULL: it has none.
 */
void perfetto_sequence(struct perfetto *p, unsigned int sequence, const char *counted);
/* A packet of a sequence that needs what the sequence's first one said; ns 0: it has no time. */
size_t perfetto_begin(struct perfetto *p, unsigned int sequence, uint64_t ns);
void perfetto_end(struct perfetto *p, size_t begun);

struct perfetto_track {
	uint64_t uuid, parent; /* parent 0: none */
	const char *name;
	unsigned int rank; /* among those of its parent */
	const char *told;  /* what it shows; NULL: its name says it */
};

void perfetto_track(struct perfetto *p, const struct perfetto_track *t);
/* A track of its own, which others may be below. */
void perfetto_group(struct perfetto *p, enum perfetto_group group, const char *name,
		    const char *told);
/*
 * Begins a slice; between begin and end proto_*() may add fields of TrackEvent, and
 * perfetto_note*() what the slice's details show.
 */
size_t perfetto_slice_begin(struct perfetto *p, uint64_t track, uint64_t ns, const char *name);
void perfetto_note(struct perfetto *p, const char *name, const char *text);
void perfetto_note_number(struct perfetto *p, const char *name, uint64_t v);
void perfetto_slice_begun(struct perfetto *p, size_t begun);
void perfetto_slice_end(struct perfetto *p, uint64_t track, uint64_t ns);
/* All of it, without notes; from <= to. */
void perfetto_slice(struct perfetto *p, uint64_t track, uint64_t from, uint64_t to,
		    const char *name);

#endif
