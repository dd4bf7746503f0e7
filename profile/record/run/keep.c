/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/keep.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/record/run/control.h"
#include "profile/record/run/run.h"
#include "profile/record/sandbox/sandbox.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int keep_add(void *ctx, const char *tmp, const char *name, bool is_file, struct err *e)
{
	struct run_keep *k = ctx;
	int ret = keeper_add(k->keeper,
			     !name     ? KEEPER_SCRATCH
			     : is_file ? KEEPER_FILE
				       : KEEPER_PROFILE,
			     tmp, name, e);

	if (ret < 0)
		return ret;
	k->place = (unsigned int)ret;
	k->own = strdup(tmp);
	return k->own ? 0 : err_nomem(e);
}

static int keep_publish(void *ctx, struct err *e)
{
	struct run_keep *k = ctx;

	return keeper_publish(k->keeper, k->place, e);
}

static int keep_remove(void *ctx, struct err *e)
{
	struct run_keep *k = ctx;

	return keeper_remove(k->keeper, k->place, e);
}

/* Called in the keeper's process. */
static int keep_bind(void *ctx, const struct keeper_dir *dir, unsigned int n, struct err *e)
{
	const struct run *r = ctx;
	struct sandbox_plan p = { .mode = r->opt->sandbox, .scope = SANDBOX_KEEPER };
	int ret;

	for (unsigned int i = 0; i < n; i++)
		sandbox_plan_add(&p, dir[i].path, dir[i].only_rmdir ? SANDBOX_RMDIR : SANDBOX_MOVE);
	ret = sandbox_begin_beside(&p, e);
	return ret ? ret : sandbox_begin_main(e);
}

/* The guest of the exact engine runs in QEMU, which has a user of its own. */
static bool keep_may_become(const struct run_options *o)
{
	return o->sandbox != SANDBOX_OFF && !run_options_is_attached(o) &&
	       o->engine != RUN_ENGINE_EXACT;
}

static bool keep_is_needed(const struct run_options *o)
{
	return o->sandbox != SANDBOX_OFF && !run_options_is_attached(o) &&
	       (o->output || o->control || o->snapshot.save);
}

int run_keep_start(struct run *r, struct err *e)
{
	struct keeper_confine confine = { keep_bind, r, geteuid() };
	int ret;

	if (keep_may_become(r->opt))
		r->keep.has_user = rights_choose_user(&r->keep.user);
	if (r->keep.has_user)
		confine.run = r->keep.user.uid;
	if (!keep_is_needed(r->opt))
		return 0;
	ret = keeper_start(&r->keep.keeper, &confine, e);
	r->keep.publisher =
		(struct sink_publisher){ keep_add, keep_publish, keep_remove, &r->keep };
	return ret;
}

/*
 * Creates a directory of the run's own in dir, with a new name: the remains of a killed process are
 * not removed. Stores its path, which the caller frees. Returns 0, -ENOMEM, or another -errno; it
 * stores nothing on failure.
 */
static int make_own(const char *dir, char **path)
{
	cleanup_free char *new = NULL;

	if (asprintf(&new, "%s/.kvmprof-%d-XXXXXX", strcmp(dir, "/") ? dir : "", (int)getpid()) <
	    0) {
		new = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(new))
		return -errno;
	*path = take_ptr(new);
	return 0;
}

int run_keep_cache(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	cleanup_free char *dir = o->buildid_dir ? strdup(o->buildid_dir) : buildid_default_dir();
	struct err ignored = { 0 };
	int ret;

	/* If it cannot be created this is reported when a file is added. */
	if (!r->keep.keeper || !o->buildid_cache || !dir)
		return 0;
	for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
		dir[len - 1] = 0;
	if (access(dir, F_OK) < 0)
		r->keep.cache_made = strdup(dir);
	if (file_mkdirs(dir, &ignored))
		return 0;
	ret = make_own(dir, &r->keep.cache);
	if (ret == -ENOMEM)
		return err_nomem(e);
	if (!ret)
		ret = keeper_add(r->keep.keeper, KEEPER_CACHE, r->keep.cache, r->keep.cache_made,
				 &ignored);
	if (ret < 0)
		free(take_ptr(r->keep.cache));
	else
		r->keep.cache_place = (unsigned int)ret;
	return 0;
}

/* Returns the directory of path without links, or NULL with errno set. The caller frees it. */
static char *keep_dir_of(const char *path, const char **base)
{
	char *slash = strrchr(path, '/');
	cleanup_free char *dir = !slash		 ? strdup(".")
				 : slash == path ? strdup("/")
						 : strndup(path, (size_t)(slash - path));

	*base = slash ? slash + 1 : path;
	return dir ? realpath(dir, NULL) : NULL;
}

/* Creates a stage in dir, which it frees. A directory that takes no new entries gets no stage. */
static int keep_add_stage(struct run_keep *k, char *dir, struct err *e)
{
	struct run_stage s = { .dir = dir };
	struct err ignored = { 0 };
	int ret;

	if (!dir)
		return 0;
	if (k->nstages && !strcmp(k->stage[0].dir, dir)) {
		free(dir);
		return 0;
	}
	ret = make_own(dir, &s.path);
	if (ret == -ENOMEM) {
		free(dir);
		return err_nomem(e);
	}
	ret = ret ? ret : keeper_add(k->keeper, KEEPER_STAGE, s.path, NULL, &ignored);
	if (ret < 0) {
		free(s.path);
		free(s.dir);
		return 0;
	}
	s.place = (unsigned int)ret;
	k->stage[k->nstages++] = s;
	return 0;
}

int run_keep_control(struct run *r, struct err *e)
{
	const char *output = r->opt->output, *base;
	struct run_keep *k = &r->keep;
	int ret;

	if (!k->keeper || !r->control)
		return 0;
	ret = keeper_add(k->keeper, KEEPER_SOCKET, run_control_path(r->control), NULL, e);
	if (ret < 0)
		return ret;
	k->has_socket = true;
	k->socket_place = (unsigned int)ret;
	if (!output)
		return 0;
	ret = keep_add_stage(k, realpath(".", NULL), e);
	if (!ret && !run_options_to_stdout(r->opt))
		ret = keep_add_stage(k, keep_dir_of(output, &base), e);
	return ret;
}

static int keep_publish_snapshot(void *ctx, struct err *e)
{
	struct run_keep *k = ctx;

	return keeper_publish(k->keeper, k->snapshot_place, e);
}

int run_keep_snapshot(struct run *r, struct err *e)
{
	struct snapshot_file *f = &r->snapshot.file;
	int ret;

	if (!r->keep.keeper || !r->opt->snapshot.save)
		return 0;
	ret = snapshot_file_open(f, r->opt->snapshot.save, e);
	if (!ret)
		ret = keeper_add_file(r->keep.keeper, f->named ? -1 : f->fd, f->tmp, f->path, e);
	if (ret < 0)
		return ret;
	r->keep.has_snapshot = true;
	r->keep.snapshot_place = (unsigned int)ret;
	r->snapshot.publish = keep_publish_snapshot;
	r->snapshot.publish_ctx = &r->keep;
	return 0;
}

/* Returns the rest of `path` below `dir`, or NULL. */
static const char *keep_below(const char *dir, const char *path)
{
	size_t len = strcmp(dir, "/") ? strlen(dir) : 0;

	if (strncmp(path, dir, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path[len] ? path + len + 1 : path + len;
}

/* A rename cannot cross file systems: a stage on that of `dir` is preferred. */
static const struct run_stage *keep_find_stage(const struct run_keep *k, const char *dir,
					       const char **below)
{
	const struct run_stage *found = NULL;
	struct stat at, st;

	for (unsigned int i = 0; i < k->nstages; i++) {
		const char *rest = keep_below(k->stage[i].dir, dir);

		if (!rest || (found && (stat(dir, &at) < 0 || stat(k->stage[i].dir, &st) < 0 ||
					at.st_dev != st.st_dev)))
			continue;
		found = &k->stage[i];
		*below = rest;
	}
	return found;
}

int run_keep_begin_entry(struct run_keep *k, const char *path, struct run_keep_entry *out,
			 struct err *e)
{
	cleanup_free char *target = outfile_target(path), *dir = NULL;
	const struct run_stage *s;
	const char *base, *below = "";
	int n, m;

	dir = target ? keep_dir_of(target, &base) : NULL;
	if (!dir)
		return err_set(e, errno, "%s: cannot create: %s", path, strerror(errno));
	s = keep_find_stage(k, dir, &below);
	if (!s)
		return err_set(e, EACCES,
			       "%s: cannot create: %s: a run in its sandbox writes profiles below "
			       "%s%s%s; copy it from there",
			       path, strerror(EACCES),
			       k->nstages ? k->stage[0].dir : "no directory",
			       k->nstages > 1 ? " and below " : "",
			       k->nstages > 1 ? k->stage[1].dir : "");
	out->place = s->place;
	snprintf(out->entry, sizeof(out->entry), "%u", ++k->entries);
	n = snprintf(out->file, sizeof(out->file), "%s/%s", s->path, out->entry);
	m = snprintf(out->name, sizeof(out->name), "%s%s%s", below, *below ? "/" : "", base);
	return (size_t)n >= sizeof(out->file) || (size_t)m >= sizeof(out->name)
		       ? err_set(e, ENAMETOOLONG, "%s: path too long", path)
		       : 0;
}

static int keep_publish_cache(struct run_keep *k, struct err *e)
{
	return k->cache ? keeper_publish(k->keeper, k->cache_place, e) : 0;
}

int run_keep_publish_entry(struct run_keep *k, const struct run_keep_entry *x, struct err *e)
{
	struct err ignored = { 0 };

	/* The end of the run reports what keeps files out of the cache. */
	(void)keep_publish_cache(k, &ignored);
	return keeper_publish_entry(k->keeper, x->place, x->entry, x->name, e);
}

static const struct rights_user *given; /* nftw(3) has no argument for it */

static int give(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	/*
	 * The samples are written through a descriptor: perf reads them, also after a crash, if
	 * they are root's.
	 */
	if (type == FTW_F && (ftw->level == 0 || !strcmp(path + ftw->base, "data")))
		return 0;
	return lchown(path, given->uid, given->gid);
}

int run_keep_change_owner(struct run *r, struct err *e)
{
	const char *tree[2 + RUN_KEEP_MAX_STAGES] = { r->keep.own, r->keep.cache };

	if (!r->keep.has_user)
		return 0;
	for (unsigned int i = 0; i < r->keep.nstages; i++)
		tree[2 + i] = r->keep.stage[i].path;
	given = &r->keep.user;
	for (unsigned int i = 0; i < sizeof(tree) / sizeof(*tree); i++)
		if (tree[i] && nftw(tree[i], give, 8, FTW_PHYS))
			return err_set(e, errno, "%s: cannot change its owner to user %u: %s",
				       tree[i], (unsigned int)given->uid, strerror(errno));
	return 0;
}

int run_keep_seal(struct run *r, struct err *e)
{
	return r->keep.keeper ? keeper_seal(r->keep.keeper, e) : 0;
}

int run_keep_sealed(struct run *r, struct err *e)
{
	return r->keep.keeper ? keeper_sealed(r->keep.keeper, e) : 0;
}

void run_keep_end(struct run *r)
{
	struct run_keep *k = &r->keep;
	struct err e = { 0 };

	if (keep_publish_cache(k, &e) || (k->cache && keeper_remove(k->keeper, k->cache_place, &e)))
		reporter_printf(r->opt->reporter, "kvmprof: warning: %s\n", e.text);
	free(take_ptr(k->cache));
	/* A cache directory that got no place for additions has no files of this run. */
	if (k->cache_made)
		(void)rmdir(k->cache_made);
	free(take_ptr(k->cache_made));
	/* A keeper that does not answer is lost by now, and was reported. */
	if (k->has_socket)
		(void)keeper_remove(k->keeper, k->socket_place, NULL);
	if (k->has_snapshot)
		(void)keeper_remove(k->keeper, k->snapshot_place, NULL);
	while (k->nstages) {
		struct run_stage *s = &k->stage[--k->nstages];

		(void)keeper_remove(k->keeper, s->place, NULL);
		free(s->dir);
		free(s->path);
	}
	keeper_end(k->keeper);
	k->keeper = NULL;
	free(take_ptr(k->own));
}
