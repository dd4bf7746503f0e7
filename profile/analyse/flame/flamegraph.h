/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flamegraph: pictures of a profile as boxes, and the one file that shows them.
 *
 * A picture is a list of boxes: a call tree's (flame graph, flame graph of a difference)
 * or those of a chart over time (flamechart.h). The writer makes an SVG, or an HTML page
 * around it, that needs nothing else: the boxes as drawn without scripts, and the same
 * ones as data for the script (flamegraph.js), which zooms and searches.
 *
 * x and w are in the picture's unit: weight of a graph, ns of a chart. Texts are borrowed
 * from the stackset and may hold any bytes: the writer escapes them. The same input gives
 * the same bytes. One thread at a time.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_FLAME_FLAMEGRAPH_H
#define KVMPROF_PROFILE_ANALYSE_FLAME_FLAMEGRAPH_H

#include "base/err.h"
#include "profile/analyse/stacks/frametree.h"

#define FLAME_MAX_BOXES 200000u /* with more, min_width grows until they fit */
#define FLAME_MAX_LANES 32u
#define FLAME_MAX_BANDS 16u
#define FLAME_MIN_WIDTH 300u /* of a picture, in pixels */
#define FLAME_MAX_WIDTH 20000u
#define FLAME_MAX_NAME 4096u		  /* bytes of a name; the rest is cut */
#define FLAME_MAX_NAMES_TOTAL (16u << 20) /* beyond it, names are cut at: */
#define FLAME_SHORT_NAME 64u

/* Boxes' colours are classes of the style sheet: kind * variants + variant; differences. */
#define FLAME_VARIANTS 4u
#define FLAME_CLASS_NARROW (FRAMETREE_KINDS * FLAME_VARIANTS)
#define FLAME_DIFF_STEPS 4 /* on each side of "no change" */
#define FLAME_CLASS_DIFF (FLAME_CLASS_NARROW + 1u)

struct flame_box {
	uint64_t x, w;
	uint64_t samples, self;
	uint32_t row;	   /* in the lane; 0 is the outermost */
	uint32_t name;	   /* index */
	int32_t delta_ppm; /* share less the share in the base; of a difference */
	uint8_t class;
};

/* Rows that share the x axis with those of other lanes. Its boxes come in order of x, then row. */
struct flame_lane {
	char label[64]; /* "": none */
	uint32_t rows;
	size_t first, n; /* boxes */
};

/* A stretch of time with a name, along the top. */
struct flame_band {
	uint64_t from, to;
	const char *label;
	uint8_t colour; /* 0-5 */
};

struct flame_picture {
	/* What the caller sets: */
	const char *title, *subtitle; /* borrowed */
	const char *event;	      /* borrowed */
	unsigned int width;	      /* pixels */
	double min_width;	      /* pixels; narrower boxes are merged */
	bool fixed;		      /* the width stays; otherwise the script takes the window's */
	bool inverted;		      /* the outermost row is at the top */
	bool weight_is_ns;
	bool counted; /* nothing was sampled: no numbers of samples */
	/* What flamegraph_build() or flamechart_build() sets: */
	bool chart, diff;
	uint64_t total; /* of x */
	struct flame_box *box;
	size_t nboxes, boxes_cap;
	const struct frametree_name *name; /* borrowed from the tree, or names_own */
	size_t nnames;
	struct frametree_name *names_own;
	struct flame_lane *lane;
	size_t nlanes;
	struct flame_band band[FLAME_MAX_BANDS];
	size_t nbands;
	double kind_share[FRAMETREE_KINDS];
	char note[256]; /* what is not shown */
};

/* FLAME_DIFFERENCE: from the base in the tree's second slot. */
enum flame_of { FLAME_PROFILE, FLAME_DIFFERENCE };

/* A finished tree as boxes. */
int flamegraph_build(struct flame_picture *p, const struct frametree *t, enum flame_of what,
		     struct err *e);
void flame_picture_deinit(struct flame_picture *p);

/* Class of a function's box: neighbours of one kind differ a little, by name. */
uint8_t flame_class(const struct frametree_name *n, uint8_t kind);
/* Class of a difference; max is the greatest one in the picture. */
uint8_t flame_diff_class(double delta, double max);

#endif
