/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/reader.h"

#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/names/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns the build id that perf wrote at the end of the file for a file whose map has none, or
 * NULL.
 */
static const struct perfdata_build_id_entry *build_id_of_name(const struct perfdata *p,
							      const char *name)
{
	for (size_t i = 0; i < p->nbuild_ids; i++)
		if (!p->build_ids[i].kernel && p->build_ids[i].owner == PERFDATA_RECORDED &&
		    !strcmp(p->build_ids[i].name, name))
			return &p->build_ids[i];
	return NULL;
}

/* -- records ----------------------------------------------------------------------------- */

/*
 * A map `[kernel.kallsyms]SYMBOL` has SYMBOL's run-time address as its offset. Sets the kernel's
 * range and its distance from kallsyms (which may be of another boot).
 */
static void locate_kernel(struct names *n, const struct perfdata_record *r)
{
	const struct symbol *ref =
		n->kernel ? symtab_find(n->kernel, r->map.path + strlen(PERFDATA_KERNEL_DSO))
			  : NULL;

	n->slide = ref && ref->addr && r->map.pgoff ? r->map.pgoff - ref->addr : 0;
	n->kernel_start = r->map.addr;
	if (__builtin_add_overflow(r->map.addr, r->map.len, &n->kernel_end))
		n->kernel_end = UINT64_MAX;
}

/*
 * Writes `[virtio_net]` for a module that perf recorded with the path "/lib/.../virtio-net.ko.xz".
 */
static void module_name(char *out, size_t size, const char *path)
{
	const char *base = strrchr(path, '/'), *end;

	base = base ? base + 1 : path;
	end = strstr(base, ".ko");
	snprintf(out, size, "[%.*s]", (int)(end ? end - base : (ptrdiff_t)strlen(base)), base);
	for (char *c = out; *c; c++)
		if (*c == '-')
			*c = '_';
}

/*
 * Returns the functions of the module that is mapped at *m, or NULL. A kallsyms that perf stored is
 * of the boot at which perf first saw the kernel: a module that has other addresses now gets no
 * names rather than wrong ones.
 */
static const struct symtab *module_symbols(const struct names_from_profile *f, const char *name,
					   const struct mapping *m)
{
	const struct symtab *t = NULL;
	size_t i = 0;

	while (i < f->nmodules && strcmp(f->module[i].name, name) != 0)
		i++;
	if (i < f->nmodules)
		t = f->module[i].symbols;
	if (!t || f->profile->ours)
		return t;
	for (size_t k = 0; k < symtab_count(t); k++) {
		const struct symbol *s = symtab_at(t, k);

		if (strchr("tTwW", s->type))
			return s->addr >= m->addr && s->addr < m->end ? t : NULL;
	}
	return NULL;
}

/* Stores in *d which file is mapped: its build id, otherwise its inode. */
static void identify(const struct perfdata *p, const struct perfdata_record *r, struct names_dso *d)
{
	const struct perfdata_build_id_entry *b = NULL;

	if (r->map.build_id) {
		d->id_len = r->map.build_id_len;
		memcpy(d->build_id, r->map.build_id, d->id_len);
		return;
	}
	if (p->ours)
		return;
	b = build_id_of_name(p, d->name);
	if (b) {
		d->id_len = b->len;
		memcpy(d->build_id, b->id, d->id_len);
		return;
	}
	d->inode.major = r->map.major;
	d->inode.minor = r->map.minor;
	d->inode.ino = r->map.ino;
	d->inode.generation = r->map.generation;
}

/* Returns whether the present kernel is the build that ran first. */
static bool is_first_build(const struct names *n)
{
	const struct names_from_profile *first = n->from;

	while (first->before)
		first = first->before;
	return first->profile->kernel_id_len &&
	       first->profile->kernel_id_len == n->from->profile->kernel_id_len &&
	       !memcmp(first->profile->kernel_id, n->from->profile->kernel_id,
		       first->profile->kernel_id_len);
}

/* Maps a later kernel where it was found, like a module, for the frames of its own samples only. */
static int map_later_kernel(struct names *n, const struct perfdata_record *r, struct err *e)
{
	static char name[] = PERFDATA_KERNEL_DSO;
	struct names_dso d = {
		.name = name, .kernel = true, .at_run_time = n->from->kernel, .other_kernel = true
	};
	struct mapping m = { .addr = r->map.addr };

	/* The functions of a kernel that has booted again are those of the first boot. */
	if (is_first_build(n) && n->kernel) {
		d.at_run_time = n->kernel;
		d.shift = r->map.addr - n->kernel_start;
		d.other_kernel = false;
	}
	if (__builtin_add_overflow(r->map.addr, r->map.len, &m.end))
		m.end = UINT64_MAX;
	return names_add_map(n, r->pid, &m, &d, e);
}

static int take_map(struct names *n, const struct perfdata_record *r, struct err *e)
{
	const struct names_from_profile *f = n->from;
	char module[PROFILE_MODULE_NAME + 2];
	struct names_dso d = { .name = (char *)(uintptr_t)r->map.path, .kernel = r->kernel };
	struct mapping m = { .addr = r->map.addr, .pgoff = r->map.pgoff };

	/* The pid of a guest's mapping is the VMM's, or none at all. */
	if (r->owner != PERFDATA_RECORDED)
		return 0;
	if (r->kernel && !strncmp(r->map.path, PERFDATA_KERNEL_DSO, strlen(PERFDATA_KERNEL_DSO))) {
		if (f->before)
			return map_later_kernel(n, r, e);
		locate_kernel(n, r);
		n->stamp++;
		return 0;
	}
	if (__builtin_add_overflow(r->map.addr, r->map.len, &m.end))
		m.end = UINT64_MAX;
	if (r->kernel && d.name[0] == '/') {
		module_name(module, sizeof(module), d.name);
		d.name = module;
	}
	if (r->kernel)
		d.at_run_time = module_symbols(f, d.name, &m);
	else
		identify(f->profile, r, &d);
	return names_add_map(n, r->pid, &m, &d, e);
}

/* Pushes p and the names of its kernel on the list of profiles. */
static int add_profile(struct names *n, const struct perfdata *p, const char *buildid_dir,
		       struct err *e)
{
	struct names_from_profile *f = calloc(1, sizeof(*f));

	if (!f)
		return err_nomem(e);
	f->before = n->from;
	n->from = f;
	f->profile = p;
	f->buildid_dir = buildid_dir ? strdup(buildid_dir) : NULL;
	f->dir = p->dir ? strdup(p->dir) : NULL;
	if ((buildid_dir && !f->buildid_dir) || (p->dir && !f->dir))
		return err_nomem(e);
	return names_load_kernel(f, e);
}

/* Removes all mappings because another kernel begins. Samples read before keep their view. */
static int begin_epoch(struct names *n, const struct perfdata *p, struct err *e)
{
	int ret = add_profile(n, p, n->from->buildid_dir, e);

	return ret ? ret : names_forget_all(n, e);
}

int names_record(struct names *n, const struct perfdata_record *r, struct err *e)
{
	switch (r->kind) {
	case PERFDATA_MAP:
		return take_map(n, r, e);
	case PERFDATA_FORK:
		return names_fork(n, r->pid, r->fork.ppid, e);
	case PERFDATA_COMM:
		return r->exec ? names_exec(n, r->pid, e) : 0;
	case PERFDATA_EPOCH:
		return begin_epoch(n, r->epoch, e);
	default:
		/* Late samples of a task that has exited still have its mappings. */
		return 0;
	}
}

/* -- life of the names -------------------------------------------------------------------- */

int names_create(struct names **out, const struct perfdata *p, const char *buildid_dir,
		 struct err *e)
{
	cleanup_free char *dir = buildid_dir ? strdup(buildid_dir) : buildid_default_dir();
	struct names *n = names_create_live();
	int ret;

	if (!n || (buildid_dir && !dir)) {
		names_destroy(n);
		return err_nomem(e);
	}
	ret = add_profile(n, p, dir, e);
	n->kernel = n->from ? n->from->kernel : NULL;
	n->kernel_start = n->kernel_end = 0;
	if (ret)
		names_destroy(n);
	else
		*out = n;
	return ret;
}

void names_from_profile_destroy(struct names_from_profile *f)
{
	if (!f)
		return;
	names_from_profile_destroy(f->before);
	for (size_t i = 0; i < f->nmodules; i++) {
		symtab_destroy(f->module[i].symbols);
		free(f->module[i].name);
	}
	free(f->module);
	symtab_destroy(f->kernel);
	names_stack_deinit(f);
	free(f->dir);
	free(f->buildid_dir);
	free(f);
}

/* -- a profile's samples ------------------------------------------------------------------ */

int reader_open(struct reader *r, const struct reader_options *o, struct err *e)
{
	int ret;

	*r = (struct reader){ .tasks = tasks_create() };
	ret = r->tasks ? 0 : err_nomem(e);
	if (!ret)
		ret = perfdata_open_epoch(&r->p, o->input ? o->input : "perf.data", o->event,
					  o->epoch, e);
	r->now = r->p;
	if (!ret)
		ret = names_create(&r->names, r->p, o->buildid_dir, e);
	if (ret)
		reader_close(r);
	return ret;
}

int reader_need_samples(const struct reader *r, const char *input, struct err *e)
{
	const struct perfdata *p = r->p;

	if (p->nsamples)
		return 0;
	return err_set(e, ENODATA, "%s: there are no samples in it%s%s%s%s",
		       input ? input : "perf.data", p->event[0] ? " of the event " : "", p->event,
		       p->partial ? "; PARTIAL: " : "", p->partial ? p->message : "");
}

void reader_close(struct reader *r)
{
	names_destroy(r->names);
	tasks_destroy(r->tasks);
	perfdata_close(r->p);
	*r = (struct reader){ .lines = r->lines };
}

int reader_next(struct reader *r, struct perfdata_record *rec, struct err *e)
{
	while (perfdata_next(r->p, rec)) {
		int ret;

		if (rec->kind == PERFDATA_SAMPLE && r->p->has_stacks)
			names_unwind_copy(r->names, r->p, rec);
		if (rec->kind == PERFDATA_SAMPLE || rec->kind == PERFDATA_MARKER)
			return 1;
		if (rec->kind == PERFDATA_EPOCH)
			r->now = rec->epoch;
		/*
		 * Addresses of a later kernel are moved to the first one's:
		 * names_to_first_kernel().
		 */
		if (rec->kind == PERFDATA_MAP && r->lines && r->now == r->p)
			srcline_set_map(r->lines, rec);
		ret = names_record(r->names, rec, e);
		if (ret)
			return ret;
		ret = tasks_record(r->tasks, rec, e);
		if (ret)
			return ret;
	}
	return names_read_error(r->names, e);
}
