/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flamegraph: pictures of a profile as boxes.
 *
 * A picture is a list of boxes: those of a call tree (flame graph, flame graph of a difference) or
 * of a chart over time (flamechart.h). svg.h writes it as an SVG, or as an HTML page around it,
 * without external files: the boxes as drawn without scripts, and the same boxes as data for the
 * script (flamegraph.js), which zooms and searches.
 *
 * x and w are in the picture's unit: weight for a graph, ns for a chart. Texts are borrowed from
 * the stackset and may contain any bytes: the writer escapes them. Equal input gives equal output.
 * Not thread-safe: the caller serialises calls on one picture.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_FLAME_FLAMEGRAPH_H
#define KVMPROF_PROFILE_ANALYSE_FLAME_FLAMEGRAPH_H

#include "base/err.h"
#include "profile/analyse/stacks/frametree.h"

#define FLAME_MAX_BOXES 200000u /* with more boxes, min_width is increased until they fit */
#define FLAME_MAX_LANES 32u
#define FLAME_MAX_BANDS 16u
#define FLAME_MIN_WIDTH 300u /* limits of a picture's width, in pixels */
#define FLAME_MAX_WIDTH 20000u
#define FLAME_MAX_NAME 4096u /* bytes of a name; the rest is cut */
/* bytes of all names; beyond it, each is cut to FLAME_SHORT_NAME */
#define FLAME_MAX_NAMES_TOTAL (16u << 20)
#define FLAME_SHORT_NAME 64u

/* Colours of boxes are classes of the style sheet: kind * variants + variant; then differences. */
#define FLAME_VARIANTS 4u
#define FLAME_CLASS_NARROW (FRAMETREE_KINDS * FLAME_VARIANTS)
#define FLAME_DIFF_STEPS 4 /* steps on each side of "no change" */
#define FLAME_CLASS_DIFF (FLAME_CLASS_NARROW + 1u)

struct flame_box {
	uint64_t x, w;
	uint64_t samples, self;
	uint32_t row;	   /* in the lane; 0 is the outermost */
	uint32_t name;	   /* index into flame_picture.name */
	int32_t delta_ppm; /* in a difference: share minus the share in the base */
	uint8_t class;
};

/* Rows with one x axis. Its boxes are sorted by x, then by row. */
struct flame_lane {
	char label[64]; /* "": no label */
	uint32_t rows;
	size_t first, n; /* its boxes, in flame_picture.box */
};

/* A named stretch of time at the top of the picture. */
struct flame_band {
	uint64_t from, to;
	const char *label;
	uint8_t colour; /* 0 to 5 */
};

struct flame_picture {
	/* Set by the caller: */
	const char *title, *subtitle; /* borrowed */
	const char *event;	      /* borrowed */
	unsigned int width;	      /* pixels */
	double min_width;	      /* pixels; narrower boxes are merged */
	/* the width is fixed; otherwise the script uses the window's */
	bool fixed;
	bool inverted; /* the outermost row is at the top */
	bool weight_is_ns;
	bool counted; /* a profile of exact counts: do not print numbers of samples */
	/* Set by flamegraph_build() or flamechart_build(): */
	bool chart, diff;
	uint64_t total; /* length of the x axis */
	struct flame_box *box;
	size_t nboxes, boxes_cap;
	const struct frametree_name *name; /* borrowed from the tree, or names_own */
	size_t nnames;
	/* owned, as box and lane */
	struct frametree_name *names_own;
	struct flame_lane *lane;
	size_t nlanes;
	struct flame_band band[FLAME_MAX_BANDS];
	size_t nbands;
	/* share of each kind of function, 0 to 1 */
	double kind_share[FRAMETREE_KINDS];
	char note[256]; /* text about what is not shown */
};

/* FLAME_DIFFERENCE: relative to the base in the tree's second slot. */
enum flame_of { FLAME_PROFILE, FLAME_DIFFERENCE };

/*
 * Fills in *p from a finished tree, which must stay valid as long as *p. The caller frees *p with
 * flame_picture_deinit(), also after a failure. Returns 0, -ENODATA without samples, or -ENOMEM.
 */
int flamegraph_build(struct flame_picture *p, const struct frametree *t, enum flame_of what,
		     struct err *e);
/* Frees the arrays of p. */
void flame_picture_deinit(struct flame_picture *p);

/*
 * Returns the class of a function's box: the variant depends on the name, so that neighbours of one
 * kind differ.
 */
uint8_t flame_class(const struct frametree_name *n, uint8_t kind);
/* Returns the class of a difference; max is the largest one in the picture. */
uint8_t flame_diff_class(double delta, double max);

#endif
