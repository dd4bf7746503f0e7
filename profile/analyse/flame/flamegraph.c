/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/flame/flamegraph.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Differences of shares below this count as no change. */
#define NO_CHANGE 0.0002

struct flamegraph_layout {
	struct flame_picture *p;
	const struct frametree *t;
	double per_unit; /* pixels */
	double max_delta;
	/* nodes merged because they are too narrow; weight of the outermost ones */
	uint64_t narrow, narrow_outer;
	bool full, failed;
};

uint8_t flame_class(const struct frametree_name *n, uint8_t kind)
{
	uint32_t h = hash_text32(n->text, SIZE_MAX);

	h ^= h >> 15;
	return (uint8_t)(kind * FLAME_VARIANTS + (h >> 4) % FLAME_VARIANTS);
}

/*
 * The class grows with the square root of the share, so that changes of parts are visible beside
 * those of the whole.
 */
uint8_t flame_diff_class(double delta, double max)
{
	int step = 0;

	if (fabs(delta) >= NO_CHANGE && max > 0) {
		step = 1 + (int)(sqrt(fabs(delta) / max) * FLAME_DIFF_STEPS);
		if (step > FLAME_DIFF_STEPS)
			step = FLAME_DIFF_STEPS;
	}
	return (uint8_t)((int)FLAME_CLASS_DIFF + FLAME_DIFF_STEPS + (delta < 0 ? -step : step));
}

static void add_box(struct flamegraph_layout *l, const struct flame_box *b)
{
	struct flame_picture *p = l->p;

	if (p->nboxes == FLAME_MAX_BOXES) {
		l->full = true;
		return;
	}
	if (ARRAY_ROOM(p->box, p->nboxes, p->boxes_cap)) {
		l->failed = true;
		return;
	}
	p->box[p->nboxes++] = *b;
}

static uint64_t nodes_below(const struct frametree *t, uint32_t node)
{
	uint64_t n = 1;

	for (uint32_t c = t->node[node].child; c != FRAMETREE_NONE; c = t->node[c].next)
		if (t->node[c].weight[FRAMETREE_SHOWN])
			n += nodes_below(t, c);
	return n;
}

static bool is_narrow(const struct flamegraph_layout *l, uint32_t node)
{
	return (double)l->t->node[node].weight[FRAMETREE_SHOWN] * l->per_unit < l->p->min_width;
}

static void flamegraph_place(struct flamegraph_layout *l, uint32_t node, uint64_t x);

/*
 * Places the children that are wide enough from the left, and the rest as one box, if together they
 * are wide enough.
 */
static void place_children(struct flamegraph_layout *l, uint32_t node, uint64_t x)
{
	const struct frametree *t = l->t;
	struct flame_box rest = { .row = t->node[node].depth + 1,
				  .name = (uint32_t)t->nnames,
				  .class = FLAME_CLASS_NARROW };

	for (uint32_t c = t->node[node].child; c != FRAMETREE_NONE; c = t->node[c].next) {
		const struct frametree_node *n = &t->node[c];

		if (!n->weight[FRAMETREE_SHOWN])
			continue;
		if (is_narrow(l, c)) {
			l->narrow += nodes_below(t, c);
			rest.w += n->weight[FRAMETREE_SHOWN];
			rest.samples += n->samples;
			continue;
		}
		flamegraph_place(l, c, x);
		x += n->weight[FRAMETREE_SHOWN];
	}
	rest.x = x;
	l->narrow_outer += rest.w;
	if (rest.w && (double)rest.w * l->per_unit >= l->p->min_width)
		add_box(l, &rest);
}

static void flamegraph_place(struct flamegraph_layout *l, uint32_t node, uint64_t x)
{
	const struct frametree_node *n = &l->t->node[node];
	double delta = l->p->diff ? frametree_delta(l->t, node) : 0;

	if (l->full || l->failed)
		return;
	add_box(l, &(struct flame_box){
			   .x = x,
			   .w = n->weight[FRAMETREE_SHOWN],
			   .samples = n->samples,
			   .self = n->self,
			   .row = n->depth,
			   .name = n->name,
			   .delta_ppm = (int32_t)lround(delta * 1e6),
			   .class = l->p->diff ? flame_diff_class(delta, l->max_delta)
					       : flame_class(&l->t->name[n->name],
							     frametree_kind(l->t, node)),
		   });
	place_children(l, node, x);
}

static double greatest_delta(const struct frametree *t)
{
	double max = 0;

	for (uint32_t i = 1; i < t->nnodes; i++) {
		double d = fabs(frametree_delta(t, i));

		if (d > max)
			max = d;
	}
	return max;
}

/* Returns the base's share of stacks that the shown profile does not have. */
static double gone_share(const struct frametree *t)
{
	uint64_t gone = 0;

	for (uint32_t i = 1; i < t->nnodes; i++) {
		const struct frametree_node *n = &t->node[i], *parent = &t->node[n->parent];

		if (!n->weight[FRAMETREE_SHOWN] &&
		    (n->parent == 0 || parent->weight[FRAMETREE_SHOWN]))
			gone += n->weight[FRAMETREE_BASE];
	}
	return t->node[0].weight[FRAMETREE_BASE]
		       ? (double)gone / (double)t->node[0].weight[FRAMETREE_BASE]
		       : 0;
}

static void write_note(struct flame_picture *p, const struct flamegraph_layout *l)
{
	size_t n = 0;

	p->note[0] = '\0';
	if (l->narrow)
		n = (size_t)snprintf(p->note, sizeof(p->note),
				     "%" PRIu64
				     " frames narrower than %.3g px are merged: %.2f %% of "
				     "all. ",
				     l->narrow, p->min_width,
				     100.0 * (double)l->narrow_outer / (double)p->total);
	if (p->diff && n < sizeof(p->note))
		n += (size_t)snprintf(
			p->note + n, sizeof(p->note) - n,
			"Gone since the base: %.2f %% of it, in frames not drawn here. ",
			100.0 * gone_share(l->t));
	if (l->t->cut && n < sizeof(p->note))
		snprintf(p->note + n, sizeof(p->note) - n,
			 "%" PRIu64 " stacks are cut at %u frames.", l->t->cut,
			 FRAMETREE_MAX_DEPTH);
}

/* Copies the tree's names and adds one for merged boxes. */
static int copy_names(struct flame_picture *p, const struct frametree *t, struct err *e)
{
	p->names_own = calloc(t->nnames + 1, sizeof(*p->names_own));
	if (!p->names_own)
		return err_set(e, ENOMEM, "out of memory for the picture");
	memcpy(p->names_own, t->name, t->nnames * sizeof(*t->name));
	p->names_own[t->nnames] =
		(struct frametree_name){ "(frames too narrow to draw)", "", FRAMETREE_KIND_TASK };
	p->name = p->names_own;
	p->nnames = t->nnames + 1;
	return 0;
}

int flamegraph_build(struct flame_picture *p, const struct frametree *t, enum flame_of what,
		     struct err *e)
{
	struct flamegraph_layout l = { .p = p, .t = t };
	uint32_t rows = 0;

	p->total = t->node[0].weight[FRAMETREE_SHOWN];
	p->diff = what == FLAME_DIFFERENCE;
	if (!p->total)
		return err_set(e, ENODATA, "there are no samples to draw");
	p->lane = calloc(1, sizeof(*p->lane));
	if (!p->lane || copy_names(p, t, e))
		return err_set(e, ENOMEM, "out of memory for the picture");
	if (p->diff)
		l.max_delta = greatest_delta(t);
	for (;; p->min_width *= 1.5) {
		p->nboxes = 0;
		l.narrow = l.narrow_outer = 0;
		l.full = false;
		l.per_unit = (double)p->width / (double)p->total;
		flamegraph_place(&l, 0, 0);
		if (l.failed)
			return err_set(e, ENOMEM, "out of memory for the picture");
		if (!l.full)
			break;
	}
	for (size_t i = 0; i < p->nboxes; i++)
		if (p->box[i].row + 1 > rows)
			rows = p->box[i].row + 1;
	p->lane[0] = (struct flame_lane){ .rows = rows, .n = p->nboxes };
	p->nlanes = 1;
	for (unsigned int k = 0; k < FRAMETREE_KINDS; k++)
		p->kind_share[k] = (double)t->kind_self[k] / (double)p->total;
	write_note(p, &l);
	return 0;
}

void flame_picture_deinit(struct flame_picture *p)
{
	free(p->box);
	free(p->lane);
	free(p->names_own);
	*p = (struct flame_picture){ 0 };
}
