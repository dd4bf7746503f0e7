/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/output.h"

#include "base/cleanup.h"
#include "base/outfile.h"
#include "profile/analyse/flame/flamegraph.h"

#include <errno.h>
#include <string.h>

#define PICTURE_WIDTH 1200u
#define PICTURE_MIN_WIDTH 0.1

int gate_outputs_add(struct gate_outputs *o, gate_write_fn *write, const char *path, struct err *e)
{
	if (o->n == GATE_MAX_OUTPUTS)
		return err_set(e, E2BIG, "more than %u reports", GATE_MAX_OUTPUTS);
	o->to[o->n].write = write;
	o->to[o->n++].path = path;
	return 0;
}

static int write_out(const char *path, const struct buf *b, struct err *e)
{
	return b->failed ? err_set(e, ENOMEM, "%s: out of memory", path)
			 : outfile_write(path, b->data, b->len, e);
}

/* -- the picture ---------------------------------------------------------------------------- */

/* All runs of the gate; their texts are the tree's. */
struct sets {
	struct stackset *set[GATE_SIDES][GATE_MAX_RUNS];
};

static int fold(struct sets *x, struct frametree *t, const struct gate *g, struct err *e)
{
	int ret = 0;

	for (unsigned int s = 0; s < GATE_SIDES; s++)
		for (unsigned int i = 0; i < gate_runs(g, s) && !ret; i++) {
			struct stackset_options opt = STACKSET_OPTIONS_DEFAULT;

			opt.input = gate_run_at(g, s, i)->path;
			ret = stackset_load(&x->set[s][i], &opt, e);
			ret = ret ? ret
				  : frametree_add(t, x->set[s][i],
						  s == GATE_BASE ? FRAMETREE_BASE : FRAMETREE_SHOWN,
						  e);
		}
	return ret ? ret : frametree_finish(t, e);
}

static bool is_html(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcasecmp(dot, ".html") || !strcasecmp(dot, ".htm"));
}

static int output_draw(struct buf *out, const char *path, const struct gate_report *r,
		       struct sets *x, struct frametree *t, struct err *e)
{
	const struct gate_run *first = gate_run_at(r->gate, GATE_HEAD, 0);
	char title[160], subtitle[160];
	struct flame_picture p = { .title = title,
				   .subtitle = subtitle,
				   .event = first->event,
				   .width = PICTURE_WIDTH,
				   .min_width = PICTURE_MIN_WIDTH,
				   .weight_is_ns = first->weight_is_ns };
	int ret = fold(x, t, r->gate, e);

	snprintf(title, sizeof(title), "kvmprof gate: what changed from base to head%s%.64s",
		 first->osrelease[0] ? ", Linux " : "", first->osrelease);
	snprintf(subtitle, sizeof(subtitle),
		 "%u runs of the base and %u of the head, all together; red grew, blue shrank",
		 r->nbase, r->nhead);
	ret = ret ? ret : flamegraph_build(&p, t, FLAME_DIFFERENCE, e);
	if (!ret)
		flamegraph_write(out, &p, is_html(path) ? FLAME_HTML : FLAME_SVG);
	flame_picture_deinit(&p);
	return ret;
}

static int write_picture(const char *path, const struct gate_report *r, struct err *e)
{
	const struct frametree_options opt = { .task = FRAMETREE_TASK_COMM };
	cleanup_free struct sets *x = calloc(1, sizeof(*x));
	struct frametree *t = NULL;
	struct buf out;
	int ret;

	if (!x)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	buf_init(&out);
	ret = frametree_create(&t, &opt, e);
	ret = ret ? ret : output_draw(&out, path, r, x, t, e);
	ret = ret ? ret : write_out(path, &out, e);
	buf_deinit(&out);
	frametree_destroy(t);
	for (unsigned int s = 0; s < GATE_SIDES; s++)
		for (unsigned int i = 0; i < GATE_MAX_RUNS; i++)
			stackset_destroy(x->set[s][i]);
	return ret;
}

int gate_outputs_write(const struct gate_outputs *o, const struct gate_report *r, struct err *e)
{
	const struct gate_write_options opt = {
		.flamegraph = o->flamegraph && o->link ? o->link : o->flamegraph,
	};
	int ret = o->flamegraph ? write_picture(o->flamegraph, r, e) : 0;

	for (unsigned int i = 0; i < o->n && !ret; i++) {
		struct buf b;

		buf_init(&b);
		ret = o->to[i].write(&b, r, &opt, e);
		ret = ret ? ret : write_out(o->to[i].path, &b, e);
		buf_deinit(&b);
	}
	return ret;
}
