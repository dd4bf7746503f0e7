/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/flame/flamechart.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NONE UINT32_MAX
/* With this number of columns, every picture has at most FLAME_MAX_BOXES boxes. */
#define LEAST_COLUMNS 16u
_Static_assert(LEAST_COLUMNS *FLAMECHART_MAX_ROWS *FLAME_MAX_LANES <= FLAME_MAX_BOXES, "too many");

/* A lane under construction: its samples in order of time. */
struct flamechart_lane {
	uint32_t key; /* index of the vCPU or task */
	uint32_t n, first;
	uint64_t weight;
};

/* The share of one stack in the present column. */
struct flamechart_part {
	uint32_t stack;
	uint64_t ns;
};

struct chart {
	struct flame_picture *p;
	const struct stackset *s;
	enum flamechart_lanes by;
	uint64_t origin, longest; /* ns; longest: maximum time of a sample without a weight */
	uint32_t ncolumns;
	struct flamechart_lane *lane;
	size_t nlanes, hidden_lanes;
	uint32_t *order; /* indexes of samples, lane by lane */
	struct flamechart_part *part;
	size_t nparts, parts_cap;
	uint32_t *part_of; /* for each stack: its index in part plus one */
	uint64_t *sum;	   /* for each function: time at the present depth */
	/* The boxes with which the previous column ended, as indexes by row. */
	uint32_t open[FLAMECHART_MAX_ROWS];
	uint32_t nopen, rows;
	uint32_t cut_rows; /* sum over all lanes */
};

static uint32_t lane_key(const struct chart *c, const struct stackset_sample *m)
{
	return c->by == FLAMECHART_BY_CPU ? m->cpu : c->s->stack[m->stack].task;
}

static int compare_keys(const void *a, const void *b)
{
	const struct flamechart_lane *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static int compare_weights(const void *a, const void *b)
{
	const struct flamechart_lane *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return compare_keys(a, b);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Collects the keys of all lanes. */
static int find_keys(struct chart *c)
{
	cleanup_free uint32_t *key = malloc(c->s->nsamples * sizeof(*key));
	size_t n = 0;

	if (!key)
		return -ENOMEM;
	for (size_t i = 0; i < c->s->nsamples; i++) {
		uint32_t k = lane_key(c, &c->s->sample[i]);

		if (!n || key[n - 1] != k)
			key[n++] = k;
	}
	qsort(key, n, sizeof(*key), compare_u32);
	c->lane = calloc(n, sizeof(*c->lane));
	if (!c->lane)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!i || key[i] != key[i - 1])
			c->lane[c->nlanes++].key = key[i];
	return 0;
}

static struct flamechart_lane *find_lane(const struct chart *c, uint32_t key)
{
	const struct flamechart_lane want = { .key = key };

	return bsearch(&want, c->lane, c->nlanes, sizeof(want), compare_keys);
}

/* Sorts the samples by lane; within a lane they stay in order of time. */
static int sort_samples(struct chart *c)
{
	const struct stackset *s = c->s;
	struct flamechart_lane *l = NULL;
	uint32_t first = 0;

	c->order = calloc(s->nsamples, sizeof(*c->order));
	if (!c->order)
		return -ENOMEM;
	for (size_t i = 0; i < s->nsamples; i++) {
		if (!l || l->key != lane_key(c, &s->sample[i]))
			l = find_lane(c, lane_key(c, &s->sample[i]));
		l->n++;
		l->weight += s->sample[i].weight;
	}
	for (size_t i = 0; i < c->nlanes; i++) {
		c->lane[i].first = first;
		first += c->lane[i].n;
		c->lane[i].n = 0;
	}
	for (size_t i = 0; i < s->nsamples; i++) {
		if (l->key != lane_key(c, &s->sample[i]))
			l = find_lane(c, lane_key(c, &s->sample[i]));
		c->order[l->first + l->n++] = (uint32_t)i;
	}
	return 0;
}

static int add_part(struct chart *c, uint32_t stack, uint64_t ns)
{
	if (c->part_of[stack]) {
		c->part[c->part_of[stack] - 1].ns += ns;
		return 0;
	}
	if (ARRAY_ROOM(c->part, c->nparts, c->parts_cap))
		return -ENOMEM;
	c->part[c->nparts++] = (struct flamechart_part){ stack, ns };
	c->part_of[stack] = (uint32_t)c->nparts;
	return 0;
}

static uint32_t func_at(const struct chart *c, const struct flamechart_part *part, uint32_t depth)
{
	const struct stackset_stack *st = &c->s->stack[part->stack];

	return depth < st->n ? c->s->frame[st->frame[st->n - 1 - depth]].func : NONE;
}

/*
 * Returns the function with most time of the first n parts at this depth, or NONE for parts that
 * end here. Parts of other functions are moved to the end; *n becomes the number of those that
 * remain.
 */
static uint32_t majority(struct chart *c, uint32_t depth, size_t *n, uint64_t *idle)
{
	uint64_t ended = 0, most = 0;
	uint32_t best = NONE;
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		uint32_t f = func_at(c, &c->part[i], depth);

		if (f == NONE)
			ended += c->part[i].ns;
		else
			c->sum[f] += c->part[i].ns;
	}
	for (size_t i = 0; i < *n; i++) {
		uint32_t f = func_at(c, &c->part[i], depth);

		if (f != NONE && (c->sum[f] > most || (c->sum[f] == most && f < best))) {
			most = c->sum[f];
			best = f;
		}
	}
	*idle = 0;
	for (size_t i = 0; i < *n; i++) {
		uint32_t f = func_at(c, &c->part[i], depth);

		if (f == NONE)
			continue;
		c->sum[f] = 0;
		if (f != best)
			continue;
		if (c->s->stack[c->part[i].stack].mode == STACKSET_IDLE)
			*idle += c->part[i].ns;
		c->part[kept++] = c->part[i];
	}
	*n = kept;
	*idle = *idle * 2 > most;
	return ended > most ? NONE : best;
}

static int open_box(struct chart *c, uint32_t row, uint32_t func, uint8_t class, uint64_t x)
{
	struct flame_picture *p = c->p;

	if (p->nboxes == FLAME_MAX_BOXES)
		return -E2BIG;
	if (ARRAY_ROOM(p->box, p->nboxes, p->boxes_cap))
		return -ENOMEM;
	p->box[p->nboxes] = (struct flame_box){ .x = x, .row = row, .name = func, .class = class };
	c->open[row] = (uint32_t)p->nboxes++;
	if (row >= c->rows)
		c->rows = row + 1;
	return 0;
}

static uint64_t column_ns(const struct chart *c, uint64_t column)
{
	return (uint64_t)((__uint128_t)c->p->total * column / c->ncolumns);
}

/* Ends the column: its path extends the boxes of the previous column, or begins new ones. */
static int end_column(struct chart *c, uint32_t column)
{
	uint64_t from = column_ns(c, column), to = column_ns(c, column + 1ull), idle;
	size_t n = c->nparts;
	uint32_t row = 0;
	int ret;

	for (size_t i = 0; i < c->nparts; i++)
		c->part_of[c->part[i].stack] = 0;
	for (; n && row < FLAMECHART_MAX_ROWS; row++) {
		uint32_t func = majority(c, row, &n, &idle);
		const struct flame_box *b = row < c->nopen ? &c->p->box[c->open[row]] : NULL;
		uint8_t class;

		if (func == NONE)
			break;
		class = flame_class(&c->p->name[func],
				    idle ? (uint8_t)FRAMETREE_KIND_IDLE : c->s->func[func].kind);
		if (!b || b->name != func || b->class != class) {
			c->nopen = row;
			ret = open_box(c, row, func, class, from);
			if (ret)
				return ret;
			c->nopen = row + 1;
		}
		c->p->box[c->open[row]].w = to - c->p->box[c->open[row]].x;
	}
	c->nopen = row;
	c->nparts = 0;
	return 0;
}

static uint32_t column_of(const struct chart *c, uint64_t ns)
{
	uint32_t column = (uint32_t)((__uint128_t)ns * c->ncolumns / c->p->total);

	/* Both conversions round down. */
	while (column + 1 < c->ncolumns && column_ns(c, column + 1ull) <= ns)
		column++;
	return column < c->ncolumns ? column : c->ncolumns - 1;
}

/*
 * Removes rows in which a lane spent almost no time, so that a few deep stacks do not make all
 * lanes high.
 */
static void cut_rows(struct chart *c, struct flame_lane *l)
{
	uint64_t sum[FLAMECHART_MAX_ROWS] = { 0 };
	struct flame_box *box = c->p->box + l->first;
	uint32_t rows = l->rows;
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++)
		sum[box[i].row] += box[i].w;
	while (rows > 1 && (double)sum[rows - 1] < FLAMECHART_LEAST_SHARE * (double)sum[0])
		rows--;
	for (size_t i = 0; i < l->n; i++)
		if (box[i].row < rows)
			box[kept++] = box[i];
	c->cut_rows += l->rows - rows;
	c->p->nboxes -= l->n - kept;
	l->n = kept;
	l->rows = rows;
}

/*
 * Creates a lane's boxes in order: columns from the left, and in each the rows from the outermost.
 */
static int fill_lane(struct chart *c, const struct flamechart_lane *l, struct flame_lane *out)
{
	uint64_t before = 0;
	uint32_t column = 0;
	int ret = 0;

	out->first = c->p->nboxes;
	c->nopen = c->rows = 0;
	for (uint32_t i = 0; i < l->n && !ret; i++) {
		const struct stackset_sample *m = &c->s->sample[c->order[l->first + i]];
		uint64_t to = m->time_ns - c->origin,
			 most = c->s->weight_is_ns ? m->weight : c->longest;
		uint64_t from = to > most ? to - most : 0;

		from = from < before ? before : from;
		before = to;
		while (from < to && !ret) {
			uint32_t at = column_of(c, from);
			uint64_t end = column_ns(c, at + 1ull);

			end = end > to ? to : end;
			for (; column < at && !ret; column++)
				ret = end_column(c, column);
			ret = ret ? ret : add_part(c, m->stack, end - from);
			from = end;
		}
	}
	ret = ret ? ret : end_column(c, column);
	out->n = c->p->nboxes - out->first;
	out->rows = c->rows ? c->rows : 1;
	if (!ret && out->n)
		cut_rows(c, out);
	return ret;
}

/* Returns -E2BIG if the limit of boxes is exceeded. */
static int fill_lanes(struct chart *c)
{
	int ret = 0;

	c->p->nboxes = c->nparts = c->cut_rows = 0;
	for (size_t i = 0; i < c->nlanes && !ret; i++)
		ret = fill_lane(c, &c->lane[i], &c->p->lane[i]);
	return ret;
}

static void label_lane(const struct chart *c, const struct flamechart_lane *l,
		       struct flame_lane *out)
{
	const struct stackset_task *t = c->by == FLAMECHART_BY_THREAD ? &c->s->task[l->key] : NULL;

	if (t)
		snprintf(out->label, sizeof(out->label), "%.40s %u/%u", t->comm, t->pid, t->tid);
	else if (l->key == SAMPLE_NO_CPU)
		snprintf(out->label, sizeof(out->label), "no vCPU");
	else
		snprintf(out->label, sizeof(out->label), "vCPU %u", l->key);
}

/* Computes shares of the lanes' time: time in two lanes counts twice. */
static void kind_shares(struct chart *c)
{
	const struct stackset *s = c->s;

	for (size_t i = 0; i < s->nstacks && s->weight; i++) {
		const struct stackset_stack *st = &s->stack[i];
		uint8_t kind = st->mode == STACKSET_IDLE ? (uint8_t)FRAMETREE_KIND_IDLE
			       : st->n			 ? s->func[s->frame[st->frame[0]].func].kind
							 : (uint8_t)STACKSET_KIND_UNKNOWN;

		c->p->kind_share[kind] += (double)st->weight / (double)s->weight;
	}
}

static void add_bands(struct chart *c, const struct phases *phases)
{
	struct flame_picture *p = c->p;

	for (unsigned int i = 0; phases && phases->boot && i < PHASES; i++) {
		const struct phase_span *span = &phases->span[i];
		uint64_t from = span->from_ns > c->origin ? span->from_ns - c->origin : 0;
		uint64_t to = span->to_ns > c->origin ? span->to_ns - c->origin : 0;

		to = to > p->total ? p->total : to;
		if (!span->seen || from >= to || p->nbands == FLAME_MAX_BANDS)
			continue;
		p->band[p->nbands++] = (struct flame_band){ from, to, phase_name(i), (uint8_t)i };
	}
}

/* Adds the markers' slices, if there are no phases. */
static void add_marker_bands(struct chart *c)
{
	const struct stackset *s = c->s;
	struct flame_picture *p = c->p;

	for (size_t i = 0; i < s->nmarkers && p->nbands < FLAME_MAX_BANDS; i++) {
		uint64_t end = i + 1 < s->nmarkers ? s->marker[i + 1].time_ns : UINT64_MAX;
		uint64_t from =
			s->marker[i].time_ns > c->origin ? s->marker[i].time_ns - c->origin : 0;
		uint64_t to = end > c->origin ? end - c->origin : 0;

		to = to > p->total ? p->total : to;
		if (from < to)
			p->band[p->nbands++] = (struct flame_band){ from, to, s->marker[i].name,
								    (uint8_t)(i % PHASES) };
	}
}

static void write_note(struct chart *c)
{
	struct flame_picture *p = c->p;
	size_t n = 0;

	if (c->hidden_lanes)
		n = (size_t)snprintf(p->note, sizeof(p->note),
				     "%zu more lanes, those with least time, are not shown. ",
				     c->hidden_lanes);
	if (c->ncolumns < p->width * FLAMECHART_COLUMNS_PER_PIXEL && n < sizeof(p->note))
		n += (size_t)snprintf(
			p->note + n, sizeof(p->note) - n,
			"Time has only %u columns, because more would need too many boxes. ",
			c->ncolumns);
	if (c->cut_rows && n < sizeof(p->note))
		snprintf(p->note + n, sizeof(p->note) - n,
			 "%u rows of less than %.1f %% of their lane's time are not shown.",
			 c->cut_rows, 100 * FLAMECHART_LEAST_SHARE);
}

/* Keeps the lanes with most time, each of which has at least a pixel's share. */
static void choose_lanes(struct chart *c)
{
	size_t all = c->nlanes, n = 1;

	qsort(c->lane, all, sizeof(*c->lane), compare_weights);
	while (n < all && n < FLAME_MAX_LANES &&
	       (double)c->lane[n].weight * c->p->width >= (double)c->s->weight)
		n++;
	c->hidden_lanes = all - n;
	c->nlanes = n;
	qsort(c->lane, n, sizeof(*c->lane), compare_keys);
}

static int flamechart_prepare(struct chart *c)
{
	const struct stackset *s = c->s;
	struct flame_picture *p = c->p;

	p->names_own = calloc(s->nfuncs + 1, sizeof(*p->names_own));
	c->part_of = calloc(s->nstacks + 1, sizeof(*c->part_of));
	c->sum = calloc(s->nfuncs + 1, sizeof(*c->sum));
	if (!p->names_own || !c->part_of || !c->sum)
		return -ENOMEM;
	for (size_t i = 0; i < s->nfuncs; i++)
		p->names_own[i] =
			(struct frametree_name){ s->func[i].name, s->func[i].dso, s->func[i].kind };
	p->name = p->names_own;
	p->nnames = s->nfuncs;
	if (find_keys(c) || sort_samples(c))
		return -ENOMEM;
	choose_lanes(c);
	p->lane = calloc(c->nlanes, sizeof(*p->lane));
	return p->lane ? 0 : -ENOMEM;
}

/*
 * The time begins at the first sample's beginning, so that a profile with one sample has a length.
 */
static void set_times(struct chart *c)
{
	const struct stackset *s = c->s;
	uint64_t first = s->sample[0].time_ns, last = s->sample[s->nsamples - 1].time_ns;
	uint64_t weight = s->weight_is_ns ? s->sample[0].weight : 0;

	c->origin = first > weight ? first - weight : 0;
	c->p->total = last > c->origin ? last - c->origin : 1;
	c->longest = 2 * (c->p->total / s->nsamples + 1) * (s->ncpus ? s->ncpus : 1);
}

int flamechart_build(struct flame_picture *p, const struct stackset *s, enum flamechart_lanes by,
		     const struct phases *phases, struct err *e)
{
	struct chart c = { .p = p, .s = s, .by = by };
	int ret;

	if (!s->sample || !s->nsamples)
		return err_set(e, ENODATA, "there are no samples to draw");
	p->chart = true;
	set_times(&c);
	ret = flamechart_prepare(&c);
	c.ncolumns = p->width * FLAMECHART_COLUMNS_PER_PIXEL;
	ret = ret ? ret : fill_lanes(&c);
	while (ret == -E2BIG && c.ncolumns > LEAST_COLUMNS) {
		c.ncolumns = c.ncolumns / 2 > LEAST_COLUMNS ? c.ncolumns / 2 : LEAST_COLUMNS;
		ret = fill_lanes(&c);
	}
	for (size_t i = 0; i < c.nlanes && !ret; i++)
		label_lane(&c, &c.lane[i], &p->lane[i]);
	p->nlanes = c.nlanes;
	kind_shares(&c);
	write_note(&c);
	add_bands(&c, phases);
	if (!p->nbands)
		add_marker_bands(&c);
	free(c.lane);
	free(c.order);
	free(c.part);
	free(c.part_of);
	free(c.sum);
	return ret ? err_set(e, ENOMEM, "out of memory for the chart") : 0;
}
