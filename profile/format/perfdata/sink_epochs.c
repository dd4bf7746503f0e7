/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/sink_epochs.h"

#include "base/cleanup.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sink_epochs {
	struct sink_forward forward; /* forwards to the present epoch; not owned */
	struct sink *epoch[PERFDATA_MAX_EPOCHS];
	unsigned int n;
	struct sink_perfdata_options opt;
	char *buildid_dir, *cache_stage; /* owned; copies of the strings of opt */
	struct profile_info info;
	bool have_kernel;
	bool left_out; /* the profile has no place for the present kernel */
};

static struct sink_epochs *self(struct sink *s)
{
	return (struct sink_epochs *)s;
}

static int op_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	self(s)->info = *info;
	return sink_forward_begin(s, info, e);
}

/* Creates the next epoch's profile in the directory of the first one. */
static int add_epoch(struct sink_epochs *x, const char *dir, struct err *e)
{
	struct sink_perfdata_options opt = x->opt;
	cleanup_free char *path = perfdata_epoch_path(dir, x->n + 1);
	struct sink *fresh = NULL;
	int ret;

	/* Flush, so that a run that is killed later keeps the samples of the previous kernel. */
	ret = sink_forward_flush(&x->forward.sink, UINT64_MAX, e);
	if (ret)
		return ret;
	if (!path)
		return err_nomem(e);
	opt.path = path;
	opt.in_place = true;
	opt.publisher = NULL;
	ret = perfdata_sink_create(&fresh, &opt, e);
	if (ret)
		return ret;
	x->epoch[x->n++] = fresh;
	x->forward.to = fresh;
	return fresh->ops->begin(fresh, &x->info, e);
}

static int op_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	struct sink_epochs *x = self(s);
	const char *dir = perfdata_sink_directory(x->epoch[0]);
	int ret = 0;

	if (x->have_kernel) {
		x->left_out = !dir || x->n == PERFDATA_MAX_EPOCHS;
		ret = x->left_out ? 0 : add_epoch(x, dir, e);
	}
	x->have_kernel = true;
	return ret || x->left_out ? ret : sink_forward_kernel(s, k, e);
}

static int op_fork(struct sink *s, const struct profile_fork *f, struct err *e)
{
	return self(s)->left_out ? 0 : sink_forward_fork(s, f, e);
}

static int op_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	return self(s)->left_out ? 0 : sink_forward_exit(s, pid, tid, time_ns, e);
}

static int op_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	return self(s)->left_out ? 0 : sink_forward_comm(s, c, e);
}

static int op_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	return self(s)->left_out ? 0 : sink_forward_module(s, m, e);
}

static int op_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	return self(s)->left_out ? 0 : sink_forward_map(s, map, e);
}

static int op_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	return self(s)->left_out ? 0 : sink_forward_dso(s, dso, e);
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	return self(s)->left_out ? sink_forward_lost(s, sample->cpu, 1, sample->time_ns, e)
				 : sink_forward_sample(s, sample, e);
}

/*
 * Forwards a marker, without its stack if the stack belongs to a kernel that is omitted: another
 * kernel would name it.
 */
static int op_marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	struct profile_marker bare = *m;

	if (self(s)->left_out)
		bare.stack = NULL;
	return sink_forward_marker(s, &bare, e);
}

static int op_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	struct sink_epochs *x = self(s);
	struct err later = { 0 };
	int first = 0, ret;

	/* The end() of the first one gives all of them their final name. */
	for (unsigned int i = x->n; i-- > 1;) {
		ret = x->epoch[i]->ops->end(x->epoch[i], totals, &later);
		first = first ? first : ret;
	}
	ret = x->epoch[0]->ops->end(x->epoch[0], totals, e);
	if (!ret && first)
		return err_set(e, -first, "%s", later.text);
	return ret;
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e);

static int op_abandon(struct sink *s, enum sink_leftover rest, struct err *e)
{
	struct sink_epochs *x = self(s);

	/* They are in the directory of the first one. */
	for (unsigned int i = x->n; i-- > 1;)
		(void)x->epoch[i]->ops->abandon(x->epoch[i], rest, NULL);
	return x->epoch[0]->ops->abandon(x->epoch[0], rest, e);
}

static void op_destroy(struct sink *s)
{
	struct sink_epochs *x = self(s);

	if (!x)
		return;
	for (unsigned int i = x->n; i-- > 0;)
		x->epoch[i]->ops->destroy(x->epoch[i]);
	free(x->buildid_dir);
	free(x->cache_stage);
	free(x);
}

static const struct sink_ops epochs_ops = {
	.begin = op_begin,
	.kernel = op_kernel,
	.fork = op_fork,
	.exit = op_exit,
	.comm = op_comm,
	.module = op_module,
	.map = op_map,
	.dso = op_dso,
	.sample = op_sample,
	.marker = op_marker,
	.lost = sink_forward_lost,
	.flush = sink_forward_flush,
	.end = op_end,
	.copy = op_copy,
	.abandon = op_abandon,
	.destroy = op_destroy,
};

/* Takes ownership of `to`, also on failure. */
static struct sink_epochs *epochs_new(struct sink *to, const struct sink_perfdata_options *opt)
{
	struct sink_epochs *x = calloc(1, sizeof(*x));

	if (!x) {
		to->ops->destroy(to);
		return NULL;
	}
	x->forward = (struct sink_forward){ { &epochs_ops }, to };
	x->epoch[0] = to;
	x->n = 1;
	x->opt = *opt;
	x->buildid_dir = opt->buildid_dir ? strdup(opt->buildid_dir) : NULL;
	x->cache_stage = opt->cache_stage ? strdup(opt->cache_stage) : NULL;
	if (!x->buildid_dir != !opt->buildid_dir || !x->cache_stage != !opt->cache_stage) {
		op_destroy(&x->forward.sink);
		return NULL;
	}
	x->opt.buildid_dir = x->buildid_dir;
	x->opt.cache_stage = x->cache_stage;
	return x;
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	const struct sink_epochs *of = self(s);
	struct sink_epochs *x;
	struct sink *first = NULL;
	int ret = of->epoch[0]->ops->copy(of->epoch[0], path, &first, e);

	if (ret)
		return ret;
	x = epochs_new(first, &of->opt);
	if (!x)
		return err_nomem(e);
	x->info = of->info;
	x->opt.note = NULL;
	x->have_kernel = of->have_kernel;
	x->left_out = of->left_out;
	for (; x->n < of->n; x->n++) {
		cleanup_free char *at =
			perfdata_epoch_path(perfdata_sink_directory(first), x->n + 1);

		ret = at ? of->epoch[x->n]->ops->copy(of->epoch[x->n], at, &x->epoch[x->n], e)
			 : err_nomem(e);
		if (ret)
			break;
	}
	if (ret) {
		op_destroy(&x->forward.sink);
		return ret;
	}
	x->forward.to = x->epoch[x->n - 1];
	*out = &x->forward.sink;
	return 0;
}

int sink_epochs_create(struct sink **out, struct sink *to, const struct sink_perfdata_options *opt,
		       struct err *e)
{
	struct sink_epochs *x = epochs_new(to, opt);

	if (!x)
		return err_nomem(e);
	*out = &x->forward.sink;
	return 0;
}
