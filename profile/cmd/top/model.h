/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_model: what a live view knows of a running guest.
 *
 * Fed with named stacks as they come, a batch at a time; counts fade by 1/8 with each
 * batch, as in perf top, so that what is shown is the last ten batches or so. Rows are
 * functions: self, where they were innermost; children, where they were anywhere in a
 * stack. All texts are copied. No I/O; one thread.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_MODEL_H
#define KVMPROF_PROFILE_CMD_TOP_MODEL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond them stacks are counted, but not kept. */
#define TOP_MAX_STACKS 65536u
/* So many functions, and everything is forgotten. */
#define TOP_MAX_FUNCS 262144u
#define TOP_MAX_FRAMES 128u
#define TOP_MAX_VCPUS 64u

enum top_mode { TOP_KERNEL, TOP_USER, TOP_IDLE, TOP_MODES };

/* One function of a stack as it comes. */
struct top_frame {
	const char *name, *dso;
	uint64_t addr; /* that was sampled in it */
	enum top_mode mode;
};

struct top_row {
	const char *name, *dso;
	enum top_mode mode;
	double self, children; /* weight */
	uint64_t addr;	       /* the newest that was innermost; 0: none was */
	uint32_t func;	       /* what callers are asked by */
};

struct top_vcpu {
	double weight[TOP_MODES]; /* of the last batch */
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
	double total; /* weight of all that counts, shown or not */
};

/* A stack of a batch. */
struct top_stack {
	unsigned int vcpu;
	enum top_mode mode;
	double weight;
	const struct top_frame *frame; /* innermost first */
	unsigned int n;		       /* frames; 0: the weight counts for the vCPU alone */
};

/* What becomes of the weights of older batches. */
enum top_older { TOP_OLDER_FADE, TOP_OLDER_FORGET };

struct top_model;

int top_model_create(struct top_model **out, struct err *e);
void top_model_destroy(struct top_model *m);

/* A new batch begins. */
void top_model_begin(struct top_model *m, enum top_older older);
/* -ENOMEM. */
int top_model_add(struct top_model *m, const struct top_stack *s, struct err *e);

int top_model_rows(struct top_model *m, enum top_order order, const struct top_filter *filter,
		   struct top_rows *out, struct err *e);

/*
 * Who calls a function, and who them: callers below `least` of the function's own weight
 * (0 to 1) and deeper than max_depth are left out. At most max of them, in order to print.
 */
size_t top_model_callers(struct top_model *m, uint32_t func, double least, unsigned int max_depth,
			 struct top_caller *out, size_t max);

const struct top_vcpu *top_model_vcpus(const struct top_model *m, unsigned int *n);

#endif
