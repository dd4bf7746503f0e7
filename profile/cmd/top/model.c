/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top/model.h"

#include "base/array.h"
#include "base/table.h"
#include "base/texts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FADE 0.875
/* A stack that has faded to this part of one sample is forgotten when room is needed. */
#define FADED 0.01

struct model_func {
	const char *name, *dso; /* in texts: equal texts are one pointer */
	enum top_mode mode;
	double self, children;
	uint64_t addr;
	uint64_t seen; /* the pass that counted it last */
};

struct model_stack {
	uint32_t first, n; /* in top_model.frame */
	enum top_mode mode;
	double weight;
};

struct top_model {
	struct texts texts;
	struct table funcs, stacks;
	uint32_t *frame; /* indexes of funcs; stacks' frames one behind another */
	size_t nframes, frame_cap;
	struct top_row *row;
	size_t row_cap;
	struct top_vcpu vcpu[TOP_MAX_VCPUS];
	unsigned int nvcpus;
	double largest; /* sample of the last batches */
	uint64_t pass;
};

static bool equal_func(const void *a, const void *b, const void *ctx)
{
	const struct model_func *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->mode == y->mode;
}

static bool equal_stack(const void *a, const void *b, const void *ctx)
{
	const struct model_stack *x = a, *y = b;
	const uint32_t *frame = ((const struct top_model *)ctx)->frame;

	return x->n == y->n && x->mode == y->mode &&
	       !memcmp(frame + x->first, frame + y->first, x->n * sizeof(*frame));
}

int top_model_create(struct top_model **out, struct err *e)
{
	struct top_model *m = calloc(1, sizeof(*m));

	if (!m)
		return err_nomem(e);
	m->funcs = TABLE_OF(struct model_func, equal_func);
	m->stacks = TABLE_OF(struct model_stack, equal_stack);
	m->stacks.ctx = m;
	*out = m;
	return 0;
}

static void forget_stacks(struct top_model *m)
{
	table_deinit(&m->stacks);
	m->nframes = 0;
}

void top_model_destroy(struct top_model *m)
{
	if (!m)
		return;
	forget_stacks(m);
	table_deinit(&m->funcs);
	texts_deinit(&m->texts);
	free(m->frame);
	free(m->row);
	free(m);
}

static struct model_func *funcs(const struct top_model *m)
{
	return m->funcs.item;
}

static struct model_stack *stacks(const struct top_model *m)
{
	return m->stacks.item;
}

/* -- what comes ---------------------------------------------------------------------- */

static int add_func(struct top_model *m, const struct top_frame *f, uint32_t *index)
{
	struct model_func like = {
		.name = texts_add(&m->texts, f->name),
		.dso = texts_add(&m->texts, f->dso),
		.mode = f->mode,
	};
	bool fresh;

	if (!like.name || !like.dso)
		return -ENOMEM;
	return table_add(&m->funcs,
			 table_mix((uintptr_t)like.name, (uintptr_t)like.dso + like.mode), &like,
			 index, &fresh);
}

/* Keeps the stacks except for those that have almost faded away. */
static int compact(struct top_model *m)
{
	struct table old = m->stacks;
	const struct model_stack *s = old.item;
	uint32_t *frame = m->frame;
	int ret = 0;

	m->stacks = TABLE_OF(struct model_stack, equal_stack);
	m->stacks.ctx = m;
	m->frame = NULL;
	m->nframes = m->frame_cap = 0;
	for (size_t i = 0; !ret && i < old.n; i++) {
		struct model_stack like = s[i];
		uint32_t index;
		bool fresh;

		if (s[i].weight < m->largest * FADED)
			continue;
		while (!ret && m->nframes + s[i].n > m->frame_cap)
			ret = ARRAY_FIT(m->frame, m->nframes + s[i].n, m->frame_cap);
		if (ret)
			break;
		like.first = (uint32_t)m->nframes;
		memcpy(m->frame + m->nframes, frame + s[i].first, s[i].n * sizeof(*frame));
		m->nframes += s[i].n;
		ret = table_add(&m->stacks, old.hash[i], &like, &index, &fresh);
	}
	free(frame);
	table_deinit(&old);
	return ret;
}

void top_model_begin(struct top_model *m, enum top_older older)
{
	if (m->funcs.n > TOP_MAX_FUNCS) {
		older = TOP_OLDER_FORGET;
		table_deinit(&m->funcs);
		texts_deinit(&m->texts);
	}
	if (older == TOP_OLDER_FORGET)
		forget_stacks(m);
	for (size_t i = 0; i < m->stacks.n; i++)
		stacks(m)[i].weight *= FADE;
	m->largest *= FADE;
	memset(m->vcpu, 0, sizeof(m->vcpu));
}

int top_model_add(struct top_model *m, const struct top_stack *s, struct err *e)
{
	unsigned int n = s->n < TOP_MAX_FRAMES ? s->n : TOP_MAX_FRAMES;
	struct model_stack like = { .mode = s->mode };
	uint64_t hash = s->mode;
	uint32_t index;
	bool fresh;
	int ret = 0;

	if (s->vcpu < TOP_MAX_VCPUS) {
		m->vcpu[s->vcpu].weight[s->mode] += s->weight;
		if (s->vcpu >= m->nvcpus)
			m->nvcpus = s->vcpu + 1;
	}
	m->largest = fmax(m->largest, s->weight);
	if (!n)
		return 0;
	if (m->stacks.n >= TOP_MAX_STACKS)
		ret = compact(m);
	/* A sample that finds no place is not counted. */
	if (!ret && m->stacks.n >= TOP_MAX_STACKS)
		return 0;
	while (!ret && m->nframes + n > m->frame_cap)
		ret = ARRAY_FIT(m->frame, m->nframes + n, m->frame_cap);
	like.first = (uint32_t)m->nframes;
	like.n = n;
	for (unsigned int i = 0; !ret && i < n; i++) {
		ret = add_func(m, &s->frame[i], &m->frame[like.first + i]);
		if (!ret)
			hash = table_mix(hash, m->frame[like.first + i]);
	}
	if (!ret)
		funcs(m)[m->frame[like.first]].addr = s->frame[0].addr;
	ret = ret ? ret : table_add(&m->stacks, hash, &like, &index, &fresh);
	if (ret)
		return err_set(e, -ret, "out of memory");
	if (fresh)
		m->nframes += n;
	stacks(m)[index].weight += s->weight;
	return 0;
}

/* -- what is shown ------------------------------------------------------------------- */

static int by_children(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->children != y->children)
		return x->children < y->children ? 1 : -1;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_self(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return by_children(a, b);
}

static void model_count(struct top_model *m, bool no_idle, double *total)
{
	struct model_func *f = funcs(m);

	*total = 0;
	for (size_t i = 0; i < m->funcs.n; i++)
		f[i].self = f[i].children = 0;
	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct model_stack *s = &stacks(m)[i];

		if (no_idle && s->mode == TOP_IDLE)
			continue;
		*total += s->weight;
		m->pass++;
		f[m->frame[s->first]].self += s->weight;
		for (uint32_t k = 0; k < s->n; k++) {
			struct model_func *at = &f[m->frame[s->first + k]];

			if (at->seen != m->pass)
				at->children += s->weight;
			at->seen = m->pass;
		}
	}
}

static bool model_passes(const struct model_func *f, const struct top_filter *filter)
{
	return f->children > 0 &&
	       (!filter->text || strstr(f->name, filter->text) || strstr(f->dso, filter->text));
}

int top_model_rows(struct top_model *m, enum top_order order, const struct top_filter *filter,
		   struct top_rows *out, struct err *e)
{
	const struct model_func *f = funcs(m);
	size_t n = 0;

	model_count(m, filter->no_idle, &out->total);
	if (ARRAY_FIT(m->row, m->funcs.n, m->row_cap))
		return err_nomem(e);
	for (size_t i = 0; i < m->funcs.n; i++)
		if (model_passes(&f[i], filter))
			m->row[n++] = (struct top_row){
				.name = f[i].name,
				.dso = f[i].dso,
				.mode = f[i].mode,
				.self = f[i].self,
				.children = f[i].children,
				.addr = f[i].addr,
				.func = (uint32_t)i,
			};
	if (n)
		qsort(m->row, n, sizeof(*m->row), order == TOP_BY_SELF ? by_self : by_children);
	out->row = m->row;
	out->n = n;
	return 0;
}

/* A place in a stack whose caller comes next. */
struct model_place {
	uint32_t stack, at;
	uint32_t caller; /* function at at + 1 */
};

static int by_caller(const void *a, const void *b)
{
	const struct model_place *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

struct group {
	size_t from, to; /* in the places */
	double weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->from < y->from ? -1 : x->from > y->from;
}

struct callers {
	const struct top_model *m;
	double least;
	unsigned int max_depth;
	struct top_caller *out;
	size_t n, max;
};

/* The callers of places [0, n), which are all of one function at one depth. */
static void list_callers(struct callers *c, struct model_place *p, size_t n, unsigned int depth)
{
	struct group *g = calloc(n ? n : 1, sizeof(*g));
	size_t ngroups = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct model_stack *s = &stacks(c->m)[p[i].stack];

		if (p[i].at + 1 >= s->n)
			continue;
		p[left] = p[i];
		p[left++].caller = c->m->frame[s->first + p[i].at + 1];
	}
	qsort(p, left, sizeof(*p), by_caller);
	for (size_t i = 0; g && i < left; i++) {
		if (!ngroups || p[i].caller != p[i - 1].caller)
			g[ngroups++].from = i;
		g[ngroups - 1].to = i + 1;
		g[ngroups - 1].weight += stacks(c->m)[p[i].stack].weight;
	}
	if (ngroups)
		qsort(g, ngroups, sizeof(*g), by_weight);
	for (size_t i = 0; i < ngroups && c->n < c->max && g[i].weight >= c->least; i++) {
		const struct model_func *f = &funcs(c->m)[p[g[i].from].caller];

		c->out[c->n++] = (struct top_caller){ f->name, f->dso, depth, g[i].weight };
		for (size_t k = g[i].from; k < g[i].to; k++)
			p[k].at++;
		if (depth < c->max_depth)
			list_callers(c, p + g[i].from, g[i].to - g[i].from, depth + 1);
	}
	free(g);
}

size_t top_model_callers(struct top_model *m, uint32_t func, double least, unsigned int max_depth,
			 struct top_caller *out, size_t max)
{
	struct model_place *p = calloc(m->stacks.n ? m->stacks.n : 1, sizeof(*p));
	struct callers c = { .m = m, .max_depth = max_depth, .out = out, .max = max };
	double whole = 0;
	size_t n = 0;

	for (size_t i = 0; p && i < m->stacks.n; i++) {
		const struct model_stack *s = &stacks(m)[i];

		/* In a recursion, use the outermost call. */
		for (uint32_t k = s->n; k-- > 0;)
			if (m->frame[s->first + k] == func) {
				p[n++] = (struct model_place){ .stack = (uint32_t)i, .at = k };
				whole += s->weight;
				break;
			}
	}
	c.least = whole * least;
	if (p)
		list_callers(&c, p, n, 1);
	free(p);
	return c.n;
}

const struct top_vcpu *top_model_vcpus(const struct top_model *m, unsigned int *n)
{
	*n = m->nvcpus;
	return m->vcpu;
}
