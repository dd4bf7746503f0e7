/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_maps: what the guest's processes have mapped, told to the sink as samples
 * need it.
 *
 * A process's mappings are read out of guest memory when a user frame lies in none
 * that is known, again from time to time, and when one that a frame lies in is found to
 * be another now. Each sample is held against the mappings of a moment after it: those of
 * a process are looked at before a batch of its samples is named. A sample taken between
 * two looks that differ may be of either mapping: its frames there get no name.
 * Used by the consumer's thread alone, some milliseconds after the sample: what a
 * process unmapped in between, or a process that is gone, is counted.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MAPS_H
#define KVMPROF_PROFILE_RECORD_GUEST_MAPS_H

#include "profile/record/guest/dso.h"
#include "profile/record/guest/jit.h"
#include "profile/record/guest/tasks.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/mm.h"

/* Facts about a mapping beside its addresses. */
struct guest_mark {
	struct linux_file_id file; /* all 0: none, or it cannot be read */
	uint64_t path;		   /* a hash; 0 where files can be told apart without */
	uint64_t
		since_ns; /* it is known to have been so from this moment of the host's clock ... */
	uint64_t checked_ns; /* ... to this one */
	uint32_t dso;	     /* 1 + number of its guest_dso; 0: not asked for yet */
	bool told;	     /* the sink knows it */
};

#define GUEST_MAPS_MAX_PROCESSES 16384u
/* A process is not read again sooner than this, whatever its samples say. */
#define GUEST_MAPS_RETRY_NS 20000000u
/* Doubled each time that nothing new was found, up to this; known mappings are read again after it. */
#define GUEST_MAPS_REFRESH_NS 500000000u

struct guest_maps_stats {
	uint64_t processes; /* whose mappings were read */
	uint64_t reads, failed;
	uint64_t frames, unmapped; /* user frames looked up; those in no known mapping */
	uint64_t changed;	   /* mappings that took another's place */
	uint64_t doubtful;	   /* user frames without a name, as they may be of either */
	uint64_t foreign;	   /* samples whose user frames were not their task's */
	const char *why;	   /* the last failure, static text; NULL: none */
};

struct guest_maps;

/* All must outlive it. */
struct guest_maps_parts {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	const struct guest_tasks *tasks; /* tells whether a process is still the one it was */
	struct guest_dsos *dsos;
	struct guest_jit *jit; /* takes code without a file to the sink */
	struct sink *sink;
};
int guest_maps_create(struct guest_maps **out, const struct guest_maps_parts *parts, struct err *e);
void guest_maps_destroy(struct guest_maps *g);

typedef uint64_t (*guest_maps_clock)(void *ctx);

/* In place of GUEST_MAPS_RETRY_NS; before the first sample. */
void guest_maps_set_retry(struct guest_maps *g, uint64_t ns);
/* The clock that samples are taken by, instead of CLOCK_MONOTONIC. */
void guest_maps_set_clock(struct guest_maps *g, guest_maps_clock clock, void *ctx);

/* The owner of a sample of this task, with what is known of its mappings. g and task may be NULL. */
struct guest_owner guest_maps_owner(const struct guest_maps *g, const struct guest_task *task);

/*
 * A sample's n user frames, ip: announces the mappings that cover them, before the
 * sample of this task, which has an mm. Errors are the sink's.
 */
int guest_maps_see(struct guest_maps *g, struct guest_owner *owner, const struct sample *s,
		   const uint64_t *ip, unsigned int n, struct err *e);

/*
 * Are a sample's user frames those of its task? While the kernel switches tasks, page
 * tables and stack are the next one's already. A sample of SAMPLE_USER tells what CR3 its
 * task has.
 */
bool guest_maps_owns(struct guest_maps *g, struct guest_owner *owner, const struct sample *s);

/*
 * The mapping with code at va of the task's process, as it is known now; NULL: none is.
 * *mark is what is known of it beyond that. Both are valid until the next guest_maps_see().
 */
const struct linux_vma *guest_maps_at(const struct guest_owner *owner, uint64_t va,
				      struct guest_mark **mark);

const struct guest_maps_stats *guest_maps_stats(const struct guest_maps *g);

#endif
