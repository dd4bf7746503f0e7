/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks: what the formats share: labels of frames, stacks as trees, samples by thread or vCPU.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_STACKS_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_STACKS_H

#include "profile/analyse/export/export.h"

/* A frame as it is shown. Equal text, DSO and kind are one label. */
struct export_label {
	const char *text, *dso;
	uint32_t func; /* one of those that have it */
	uint8_t kind;  /* enum stackset_kind */
};

struct export_labels;

/*
 * A function without a name is "0x...", or the last part of its DSO in brackets, as flame
 * graph scripts do it, where functions are asked for.
 */
int export_labels_create(struct export_labels **out, const struct stackset *s,
			 enum export_names names, struct err *e);
void export_labels_destroy(struct export_labels *l);
size_t export_labels_count(const struct export_labels *l);
const struct export_label *export_label(const struct export_labels *l, uint32_t i);

/* Labels of a stack, outermost first. Returns how many; valid until the next call. */
size_t export_stack_labels(struct export_labels *l, const struct stackset_stack *st,
			   const uint32_t **out);

/* Stacks as a tree. A node's parent comes before it. */
#define EXPORT_ROOT UINT32_MAX

struct export_node {
	uint32_t parent; /* EXPORT_ROOT: none */
	uint32_t label;
	uint64_t weight, samples; /* the format's own: of itself */
};

struct export_tree;

struct export_tree *export_tree_create(void);
void export_tree_destroy(struct export_tree *t);
/* The child of parent with this label, made when there is none. -ENOMEM. */
int export_tree_add(struct export_tree *t, uint32_t parent, uint32_t label, uint32_t *node);
size_t export_tree_count(const struct export_tree *t);
/* Valid until the next export_tree_add(). */
struct export_node *export_node(struct export_tree *t, uint32_t i);

/*
 * Samples by the line of time that they belong to: of a vCPU, or of a thread, where the
 * halted time of each vCPU is a line of its own. A thread that calls exec, or a tid that
 * comes again, goes on in the same line, as in the tools that read this.
 */
struct export_track {
	uint32_t task; /* index: of the last sample, whose name a thread has */
	uint32_t first_task;
	uint32_t cpu;		/* set for idle lines and for those of vCPUs */
	bool idle;		/* pid 0 */
	const uint32_t *sample; /* indexes, in order of time */
	size_t n;
	uint64_t weight;
};

struct export_tracks {
	struct export_track *track; /* by their first sample */
	size_t n;
	uint32_t *samples;
};

enum export_track_of { EXPORT_TRACK_OF_THREAD, EXPORT_TRACK_OF_VCPU };

/* Needs stackset_options.keep_samples. */
int export_tracks_create(struct export_tracks *t, const struct stackset *s,
			 enum export_track_of key, struct err *e);
void export_tracks_destroy(struct export_tracks *t);
/* "vCPU 1", "swapper (vCPU 1)", "comm tid", "comm tid (was comm)"; always terminated. */
void export_track_name(const struct export_track *t, const struct stackset *s,
		       enum export_track_of key, char *text, size_t size);

/* Returns the weight or the number of samples, as the options ask for. */
static inline uint64_t export_weight(const struct export_options *opt, uint64_t weight,
				     uint64_t samples)
{
	return opt->count_samples ? samples : weight;
}

#endif
