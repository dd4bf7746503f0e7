/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks: shared by the formats: labels of frames, stacks as trees, samples by thread or vCPU. One
 * thread uses an object at a time; functions that return int return 0 or -ENOMEM.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_STACKS_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_STACKS_H

#include "profile/analyse/export/export.h"

/* A frame in the form for display. Frames with equal text, DSO and kind share a label. */
struct export_label {
	const char *text, *dso;
	uint32_t func; /* one of the functions with this label */
	uint8_t kind;  /* enum stackset_kind */
};

struct export_labels;

/*
 * Creates the labels of all frames of s, which must outlive them; the caller frees *out with
 * export_labels_destroy(). A function without a name is "0x..."; with EXPORT_FUNCTION it is the
 * last component of its DSO in brackets, as in flame graph scripts.
 */
int export_labels_create(struct export_labels **out, const struct stackset *s,
			 enum export_names names, struct err *e);
void export_labels_destroy(struct export_labels *l);
/* Returns the number of labels. export_label() returns the one with index i < count; l owns it. */
size_t export_labels_count(const struct export_labels *l);
const struct export_label *export_label(const struct export_labels *l, uint32_t i);

/*
 * Sets *out to the labels of a stack, outermost first, and returns their number. Valid until the
 * next call.
 */
size_t export_stack_labels(struct export_labels *l, const struct stackset_stack *st,
			   const uint32_t **out);

/* Stacks as a tree. A node's parent has a smaller index. */
#define EXPORT_ROOT UINT32_MAX

struct export_node {
	uint32_t parent; /* EXPORT_ROOT: the node is a root */
	uint32_t label;
	uint64_t weight, samples; /* set by the format, for the node itself */
};

struct export_tree;

/* Returns an empty tree, which export_tree_destroy() frees, or NULL if out of memory. */
struct export_tree *export_tree_create(void);
void export_tree_destroy(struct export_tree *t);
/* Stores in *node the child of parent with this label, which is created if necessary. */
int export_tree_add(struct export_tree *t, uint32_t parent, uint32_t label, uint32_t *node);
/* Returns the number of nodes. */
size_t export_tree_count(const struct export_tree *t);
/* Returns the node with index i < count, for changes. Valid until the next export_tree_add(). */
struct export_node *export_node(struct export_tree *t, uint32_t i);

/*
 * The samples of one timeline: of a vCPU, or of a thread, where the halted time of each vCPU is a
 * timeline of its own. A thread that calls exec, or a tid that is reused, continues the same
 * timeline, as in the tools that read these formats.
 */
struct export_track {
	uint32_t task; /* task of the last sample (index), which names a thread */
	uint32_t first_task;
	uint32_t cpu;		/* set for timelines of vCPUs and for idle ones */
	bool idle;		/* halted time (pid 0) */
	const uint32_t *sample; /* n indexes of samples, in order of time */
	size_t n;
	uint64_t weight;
};

struct export_tracks {
	struct export_track *track; /* sorted by their first sample; owned */
	size_t n;
	/* owned; what the tracks' sample points into */
	uint32_t *samples;
};

enum export_track_of { EXPORT_TRACK_OF_THREAD, EXPORT_TRACK_OF_VCPU };

/*
 * Sorts the samples of s into tracks; the caller frees them with export_tracks_destroy(). s must
 * have been loaded with keep_samples.
 */
int export_tracks_create(struct export_tracks *t, const struct stackset *s,
			 enum export_track_of key, struct err *e);
void export_tracks_destroy(struct export_tracks *t);
/*
 * Writes the name of a track: "vCPU 1", "swapper (vCPU 1)", "comm tid" or "comm tid (was comm)",
 * cut to size bytes with the NUL.
 */
void export_track_name(const struct export_track *t, const struct stackset *s,
		       enum export_track_of key, char *text, size_t size);

/* Returns the weight, or the number of samples if the options select it. */
static inline uint64_t export_weight(const struct export_options *opt, uint64_t weight,
				     uint64_t samples)
{
	return opt->count_samples ? samples : weight;
}

#endif
