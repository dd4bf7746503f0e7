/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_model: the data of a live view of a running guest.
 *
 * Named stacks are added in batches; counts fade by 1/8 with each batch, as in perf top, so that
 * the view shows about the last ten batches. Rows are functions: self, where they were innermost;
 * children, where they were anywhere in a stack. All texts are copied. Functions with e return 0 or
 * -ENOMEM. No I/O; called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_MODEL_H
#define KVMPROF_PROFILE_CMD_TOP_MODEL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stacks beyond this number are counted, but not kept. */
#define TOP_MAX_STACKS 65536u
/* When this number of functions is exceeded, the model is emptied. */
#define TOP_MAX_FUNCS 262144u
#define TOP_MAX_FRAMES 128u /* frames of a stack that are kept */
#define TOP_MAX_VCPUS 64u

enum top_mode { TOP_KERNEL, TOP_USER, TOP_IDLE, TOP_MODES };

/* One function of a stack that is added. */
struct top_frame {
	const char *name, *dso;
	uint64_t addr; /* sampled address within it */
	enum top_mode mode;
};

struct top_row {
	const char *name, *dso;
	enum top_mode mode;
	double self, children; /* weight */
	uint64_t addr;	       /* newest sampled address as the innermost frame; 0: none */
	uint32_t func;	       /* argument of top_model_callers() */
};

struct top_vcpu {
	double weight[TOP_MODES]; /* weight in the last batch, by mode */
};

struct top_caller {
	const char *name, *dso;
	unsigned int depth; /* 1: calls the function itself */
	double weight;
};

struct top_filter {
	const char *text; /* part of a function's name or DSO; NULL: all */
	bool no_idle;
};

enum top_order { TOP_BY_CHILDREN, TOP_BY_SELF };

struct top_rows {
	const struct top_row *row; /* valid until the next call on the model */
	size_t n;
	double total; /* weight of all functions, shown or not; without idle ones if no_idle */
};

/* A stack of a batch; borrowed during the call. */
struct top_stack {
	unsigned int vcpu;
	enum top_mode mode;
	double weight;
	const struct top_frame *frame; /* innermost first */
	unsigned int n;		       /* frames; 0: the weight counts for the vCPU alone */
};

/* Treatment of the weights of older batches. */
enum top_older { TOP_OLDER_FADE, TOP_OLDER_FORGET };

struct top_model;

/*
 * Creates an empty model; the caller frees it with top_model_destroy(), which does nothing for
 * NULL.
 */
int top_model_create(struct top_model **out, struct err *e);
void top_model_destroy(struct top_model *m);

/* Begins a new batch: reduces or deletes the weights of older batches. */
void top_model_begin(struct top_model *m, enum top_older older);
/* Adds a stack to the batch. Returns 0 or -ENOMEM. */
int top_model_add(struct top_model *m, const struct top_stack *s, struct err *e);

/* Sets *out to the rows that pass the filter, sorted by `order`, largest first. */
int top_model_rows(struct top_model *m, enum top_order order, const struct top_filter *filter,
		   struct top_rows *out, struct err *e);

/*
 * Stores the callers of a function, and their callers, in out, in order to print, at most max of
 * them, and returns their number. Callers below `least` of the function's own weight (0 to 1) or
 * deeper than max_depth are omitted. Texts belong to the model. Returns 0 also if out of memory.
 */
size_t top_model_callers(struct top_model *m, uint32_t func, double least, unsigned int max_depth,
			 struct top_caller *out, size_t max);

/* Returns an array of *n vCPUs, which the model owns. */
const struct top_vcpu *top_model_vcpus(const struct top_model *m, unsigned int *n);

#endif
