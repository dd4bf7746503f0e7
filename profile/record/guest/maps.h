/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_maps: the mappings of the guest's processes, reported to the sink as samples need them.
 *
 * A process's mappings are read from guest memory when a user frame lies in no known one,
 * periodically, and when a mapping in which a frame lies is found to have changed. Each sample is
 * compared with the mappings of a moment after it: those of a process are checked before a batch of
 * its samples is named. A sample between two checks that differ may be of either mapping, so its
 * frames there get no name.
 *
 * Samples are processed some milliseconds after they were taken; a mapping or a process that is
 * gone by then is counted. All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MAPS_H
#define KVMPROF_PROFILE_RECORD_GUEST_MAPS_H

#include "profile/record/guest/dso.h"
#include "profile/record/guest/jit.h"
#include "profile/record/guest/tasks.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/mm.h"

/* Data about a mapping in addition to its addresses. */
struct guest_mark {
	struct linux_file_id file; /* all 0: no file, or it cannot be read */
	uint64_t path;		   /* a hash of the path; 0 if files can be told apart without it */
	/* on the clock of the samples: the mapping is known to have existed from this moment */
	uint64_t since_ns;
	uint64_t checked_ns; /* to this moment */
	uint32_t dso;	     /* 1 + number of its guest_dso; 0: not looked up yet */
	bool told;	     /* it was reported to the sink */
};

#define GUEST_MAPS_MAX_PROCESSES 16384u
/* The mappings of a process are not read again within this time, whatever its samples need. */
#define GUEST_MAPS_RETRY_NS 20000000u
/*
 * That time is doubled whenever a read finds nothing new, up to this. Known mappings are read again
 * after this time.
 */
#define GUEST_MAPS_REFRESH_NS 500000000u

struct guest_maps_stats {
	uint64_t processes; /* processes whose mappings were read */
	uint64_t reads, failed;
	uint64_t frames, unmapped; /* user frames that were looked up; those in no known mapping */
	uint64_t changed;	   /* mappings that replaced another one */
	/* user frames without a name, because they may be of either mapping */
	uint64_t doubtful;
	uint64_t foreign; /* samples whose user frames were not those of their task */
	const char *why;  /* the last failure, a static string; NULL: none */
};

struct guest_maps;

/* The objects that are used; all must outlive the guest_maps. */
struct guest_maps_parts {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	const struct guest_tasks *tasks; /* knows whether a process still has its mm_struct */
	struct guest_dsos *dsos;
	struct guest_jit *jit; /* reports code without a file to the sink */
	struct sink *sink;
};
/* Returns 0 or -ENOMEM. The caller frees *out with guest_maps_destroy(), which accepts NULL. */
int guest_maps_create(struct guest_maps **out, const struct guest_maps_parts *parts, struct err *e);
void guest_maps_destroy(struct guest_maps *g);

/* Returns the current time in ns. */
typedef uint64_t (*guest_maps_clock)(void *ctx);

/* Replaces GUEST_MAPS_RETRY_NS. To be called before the first sample. */
void guest_maps_set_retry(struct guest_maps *g, uint64_t ns);
/* Sets the clock of the samples' times. Without a call it is CLOCK_MONOTONIC. */
void guest_maps_set_clock(struct guest_maps *g, guest_maps_clock clock, void *ctx);

/*
 * Returns the owner of a sample of this task, with what is known of its mappings. g and task may be
 * NULL. It is valid until the next sample is processed.
 */
struct guest_owner guest_maps_owner(const struct guest_maps *g, const struct guest_task *task);

/*
 * Reads the mappings if necessary, and reports those of a sample's n user frames ip[] to the sink.
 * To be called before the sample is written; owner->task has an mm. Returns 0, -ENOMEM or the error
 * of the sink.
 */
int guest_maps_update(struct guest_maps *g, struct guest_owner *owner, const struct sample *s,
		      const uint64_t *ip, unsigned int n, struct err *e);

/*
 * Returns whether a sample's user frames belong to its task. While the kernel switches tasks, page
 * tables and stack are already those of the next one. A sample of SAMPLE_USER shows which CR3 its
 * task has, and this is remembered.
 */
bool guest_maps_owns(struct guest_maps *g, struct guest_owner *owner, const struct sample *s);

/*
 * Returns the executable mapping of the owner's process at va, as it is known now, or NULL. *mark
 * is its additional data. Both are valid until the next guest_maps_update().
 */
const struct linux_vma *guest_maps_at(const struct guest_owner *owner, uint64_t va,
				      struct guest_mark **mark);

/* Returns the counters, valid as long as g. */
const struct guest_maps_stats *guest_maps_stats(const struct guest_maps *g);

#endif
