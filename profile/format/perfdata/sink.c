/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/sink.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/side.h"
#include "profile/format/perfdata/sink_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define MAX_MODULES 16384u /* ranges of modules over the whole run */
#define MAX_LEFTOVERS 1000u

static struct sink_perfdata *self(struct sink *s)
{
	return (struct sink_perfdata *)s;
}

/* -- operations ------------------------------------------------------------------- */

/*
 * Where the kernel is, when the caller cannot say: what its symbols say, else
 * the 2 GiB that x86-64 Linux links its image into. Without any map perf warns
 * about restrictions of the host's kernel, which would mislead.
 */
static void locate_kernel(struct profile_kernel *k)
{
	const struct symbol *text, *end;

	if (k->end > k->text)
		return;
	text = k->symbols ? symtab_find(k->symbols, "_text") : NULL;
	end = k->symbols ? symtab_find(k->symbols, "_end") : NULL;
	k->text = text ? text->addr : 0xffffffff80000000u;
	k->end = end && end->addr > k->text ? end->addr : 0xffffffffffe00000u;
	if (k->end <= k->text)
		k->text = k->end = 0;
}

/* Before the first sample a failure ends the run at once: it is told as end() would tell it. */
static int op_result(struct sink_perfdata *p, int ret, struct err *e)
{
	if (!ret || p->w.samples)
		return ret;
	sink_perfdata_failed(p, "", p->w.failed);
	if (!p->failed)
		return ret;
	err_clear(e);
	return sink_perfdata_say_failed(p, e);
}

static int op_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	struct sink_perfdata *p = self(s);

	p->info = *info;
	/* perf then sorts the file as a whole. */
	p->w.rounds_off = p->opt.late_samples;
	return op_result(p, perfdata_write_begin(&p->w, info, e), e);
}

static int op_kernel(struct sink *s, const struct profile_kernel *kernel, struct err *e)
{
	struct sink_perfdata *p = self(s);
	int ret;

	assert(!p->have_kernel);
	p->have_kernel = true;
	p->kernel = *kernel;
	locate_kernel(&p->kernel);
	perfdata_kallsyms(&p->kallsyms, &p->kernel);
	if (p->kallsyms.failed)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	ret = perfdata_write_kernel(&p->w, &p->kernel, e);
	/* Now and not at the end: a run that is killed leaves a readable temporary behind. */
	if (!ret && !p->opt.single_file) {
		ret = sink_perfdata_put_file(p, "kcore_dir/kallsyms", p->kallsyms.data,
					     p->kallsyms.len, e);
		if (!ret)
			ret = sink_perfdata_put_file(p, "kcore_dir/modules", NULL, 0, e);
		if (!ret)
			perfdata_text_kernel(p->text, &p->kernel);
	}
	return op_result(p, ret, e);
}

/* Before anything that needs a kernel in front of it: nobody told us of one. */
static int need_kernel(struct sink *s, struct err *e)
{
	const struct profile_kernel unknown = { 0 };

	return self(s)->have_kernel ? 0 : op_kernel(s, &unknown, e);
}

static int op_fork(struct sink *s, const struct profile_fork *f, struct err *e)
{
	return perfdata_write_fork(&self(s)->w, f, e);
}

static int op_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	return perfdata_write_exit(&self(s)->w, pid, tid, time_ns, e);
}

static int op_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	return perfdata_write_comm(&self(s)->w, c, e);
}

/* -- modules ---------------------------------------------------------------------- */

static bool module_is_sane(const struct profile_module *m)
{
	return m->len && m->len <= UINT64_MAX - m->addr && *m->name && !strpbrk(m->name, "]\n/") &&
	       m->build_id_len <= PERFDATA_BUILD_ID_SIZE;
}

/* At once, for those who read what a killed run leaves; the end puts them in order. */
static int put_module_names(struct sink_perfdata *p, const struct profile_module *m, struct err *e)
{
	static const struct buf none;
	struct buf b;
	int ret = 0;

	if (p->opt.single_file)
		return 0;
	buf_init(&b);
	perfdata_kallsyms_modules(&b, &none, &m, 1);
	if (b.failed)
		ret = err_set(e, ENOMEM, "%s: out of memory", p->path);
	else if (b.len)
		ret = sink_perfdata_append(p, "kcore_dir/kallsyms", b.data, b.len, e);
	buf_deinit(&b);
	return ret;
}

static int op_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	struct sink_perfdata *p = self(s);
	struct profile_module copy = *m;
	int ret = need_kernel(s, e);

	/* The guest's words: a mapping that cannot be costs names, not the profile. */
	if (ret || !module_is_sane(m))
		return ret;
	if (p->nmodules >= MAX_MODULES) {
		p->modules_left_out++;
		return 0;
	}
	if (ARRAY_ROOM(p->module, p->nmodules, p->module_cap))
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	copy.name = strndup(m->name, PROFILE_MODULE_NAME - 1);
	copy.build_id = NULL; /* goes into the file at once */
	if (!copy.name)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	p->module[p->nmodules++] = copy;
	ret = put_module_names(p, &copy, e);
	return ret ? ret : perfdata_write_module(&p->w, m, e);
}

/* -- user programs ---------------------------------------------------------------- */

static int put_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	struct sink_perfdata *p = self(s);
	char name[8 + BUILDID_HEX_MAX] = "dso/";
	cleanup_free char *path = NULL;

	sink_perfdata_cache(
		p, &(struct buildid_file_entry){ dso->path, dso->build_id, PERFDATA_BUILD_ID_SIZE,
						 buildid_file(dso->path), dso->elf, dso->elf_len });
	if (p->opt.single_file)
		return 0;
	buildid_hex(name + 4, dso->build_id, PERFDATA_BUILD_ID_SIZE);
	if (asprintf(&path, "%s/%s", p->tmp, name) < 0) {
		path = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	}
	if (access(path, F_OK) == 0)
		return 0;
	return sink_perfdata_put_file(p, name, dso->elf, dso->elf_len, e);
}

static int op_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	return op_result(self(s), put_dso(s, dso, e), e);
}

static int op_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	const struct profile_dso dso = { map->path, map->build_id, map->elf, map->elf_len };
	int ret = perfdata_write_map(&self(s)->w, map, e);

	ret = ret || !map->elf ? ret : put_dso(s, &dso, e);
	return op_result(self(s), ret, e);
}

/* Sampled kernel addresses that are kept; of more the profile has no text. */
#define MAX_HOT (1u << 20)

/* Best effort: beyond MAX_HOT, and without memory, nothing is new. */
static bool is_new_ip(struct sink_perfdata *p, uint64_t ip)
{
	bool fresh = false;

	return ip && p->hot.n < MAX_HOT && !table_add_number(&p->hot, ip, &fresh) && fresh;
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	struct sink_perfdata *p = self(s);
	int ret = need_kernel(s, e);

	if (ret || sample->stack->n == 0)
		return ret;
	if (sample->stack->n_kernel && is_new_ip(p, sample->stack->ip[0]) && !p->opt.single_file) {
		const struct profile_module *m = sink_perfdata_module_at(p, sample->stack->ip[0]);

		if (m)
			perfdata_text_module(p->text, m, sample->stack->ip[0]);
	}
	return perfdata_write_sample(&p->w, sample, e);
}

static int op_marker(struct sink *s, const struct profile_marker *marker, struct err *e)
{
	struct sink_perfdata *p = self(s);
	int ret = need_kernel(s, e);

	return ret || !p->info.markers ? ret : perfdata_write_marker(&p->w, marker, e);
}

static int op_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	return perfdata_write_lost(&self(s)->w, cpu, count, time_ns, e);
}

static int op_flush(struct sink *s, uint64_t before_ns, struct err *e)
{
	struct sink_perfdata *p = self(s);

	return p->have_kernel ? perfdata_write_flush(&p->w, before_ns, e) : 0;
}

static int op_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	/* What fails is remembered, and what can be kept is kept. */
	need_kernel(s, NULL);
	return sink_perfdata_end(self(s), totals, e);
}

static void op_destroy(struct sink *s)
{
	struct sink_perfdata *p = self(s);

	if (!p)
		return;
	perfdata_writer_close(&p->w);
	if (p->tmp && !p->published)
		file_remove_tree(p->tmp, NULL);
	for (size_t i = 0; i < p->nmodules; i++)
		free((char *)(uintptr_t)p->module[i].name);
	free(p->module);
	buf_deinit(&p->kallsyms);
	perfdata_text_deinit(&p->own_text);
	table_deinit(&p->hot);
	free(p->buildid_dir);
	free(p->path);
	free(p->tmp);
	free(p);
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e);

static int op_abandon(struct sink *s, enum sink_rest rest, struct err *e)
{
	return sink_perfdata_abandon(self(s), rest, e);
}

static const struct sink_ops perfdata_ops = {
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
	.lost = op_lost,
	.flush = op_flush,
	.end = op_end,
	.copy = op_copy,
	.abandon = op_abandon,
	.destroy = op_destroy,
};

/* -- creation --------------------------------------------------------------------- */

/* end() renames what is at path and removes what is at path.old: both must be ours to take. */
static int check_replaceable(const char *path, struct err *e)
{
	cleanup_free char *data = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : err_set(e, errno, "%s: cannot write: %s", path, strerror(errno));
	if (S_ISLNK(st.st_mode) && stat(path, &st) < 0)
		return err_set(e, EEXIST, "%s: is a link that leads nowhere; give another name",
			       path);
	if (S_ISREG(st.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return err_set(e, EEXIST, "%s: exists and is neither a file nor a directory", path);
	if (asprintf(&data, "%s/data", path) < 0) {
		data = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", path);
	}
	if (lstat(data, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, EEXIST,
			       "%s: is a directory but not a profile; give another output name",
			       path);
	return 0;
}

/* The data file: new, or what `of` has so far. */
static int open_data(struct sink_perfdata *p, const struct sink_perfdata *of, const char *path,
		     struct err *e)
{
	int ret = of ? perfdata_writer_copy(&p->w, &of->w, path, e)
		     : perfdata_writer_open(&p->w, path, e);

	/* By this others know that it is being written; it ends with us. See leftover.h. */
	if (!ret)
		flock(p->w.fd, LOCK_EX | LOCK_NB);
	return ret;
}

static int open_directory(struct sink_perfdata *p, const struct sink_perfdata *of, struct err *e)
{
	cleanup_free char *data = NULL, *kcore_dir = NULL, *dso_dir = NULL;

	if (asprintf(&data, "%s/data", p->tmp) < 0 ||
	    asprintf(&kcore_dir, "%s/kcore_dir", p->tmp) < 0 ||
	    asprintf(&dso_dir, "%s/dso", p->tmp) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	if (mkdir(kcore_dir, 0755) < 0 || mkdir(dso_dir, 0755) < 0)
		return err_set(e, errno, "%s: cannot write: %s", p->path, strerror(errno));
	return open_data(p, of, data, e);
}

/* What a killed process that had our pid has left stays: another name is tried. */
static int create_temporary(struct sink_perfdata *p, const struct sink_perfdata *of, struct err *e)
{
	for (unsigned int i = 0; i < MAX_LEFTOVERS; i++) {
		struct err why = { 0 };
		int ret;

		free(take_ptr(p->tmp));
		if (asprintf(&p->tmp, i ? "%s.tmp-%d-%u" : "%s.tmp-%d", p->path, (int)getpid(), i) <
		    0) {
			p->tmp = NULL;
			return err_set(e, ENOMEM, "out of memory");
		}
		if (p->opt.single_file)
			ret = open_data(p, of, p->tmp, &why);
		else
			ret = mkdir(p->tmp, 0755) < 0 ? -errno : 0;
		if (ret == -EEXIST)
			continue;
		if (ret) {
			/* What could not be created is not ours to remove. */
			if (p->w.fd < 0)
				free(take_ptr(p->tmp));
			return err_set(e, -ret, "%s: cannot create: %s", p->path, strerror(-ret));
		}
		return p->opt.single_file ? 0 : open_directory(p, of, e);
	}
	free(take_ptr(p->tmp));
	return err_set(e, EEXIST, "%s: %u unfinished profiles lie there: remove them", p->path,
		       MAX_LEFTOVERS);
}

static int sink_prepare(struct sink_perfdata *p, const struct sink_perfdata_options *opt,
			const struct sink_perfdata *of, struct err *e)
{
	cleanup_free char *old = NULL;
	const char *path = opt->path && *opt->path ? opt->path : "perf.data";
	size_t len;
	int ret;

	p->opt = *opt;
	/* A link stays, and what it leads to is replaced. */
	p->path = outfile_target(path);
	p->buildid_dir = opt->buildid_dir ? strdup(opt->buildid_dir) : buildid_default_dir();
	if (!p->path || (opt->buildid_dir && !p->buildid_dir))
		return err_set(e, ENOMEM, "out of memory");
	for (len = strlen(p->path); len > 1 && p->path[len - 1] == '/'; len--)
		p->path[len - 1] = '\0';
	if (asprintf(&old, "%s.old", p->path) < 0) {
		old = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	ret = check_replaceable(p->path, e);
	/* Only when something would be moved there. */
	if (!ret && access(p->path, F_OK) == 0)
		ret = check_replaceable(old, e);
	return ret ? ret : create_temporary(p, of, e);
}

/* One that op_destroy() takes, whatever it came to; NULL: no memory. */
static struct sink_perfdata *sink_new(void)
{
	struct sink_perfdata *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink.ops = &perfdata_ops;
	p->w.fd = -1;
	p->text = &p->own_text;
	perfdata_text_init(p->text);
	return p;
}

int sink_perfdata_create(struct sink **out, const struct sink_perfdata_options *opt, struct err *e)
{
	struct sink_perfdata *p = sink_new();
	struct err local = { 0 };
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	ret = sink_prepare(p, opt, NULL, e ? e : &local);
	if (ret) {
		op_destroy(&p->sink);
		return ret;
	}
	*out = &p->sink;
	return 0;
}

/* -- a copy ----------------------------------------------------------------------- */

/* Files of programs, which are never changed once written: linked where that can be. */
static int copy_dsos(struct sink_perfdata *p, const struct sink_perfdata *of, struct err *e)
{
	cleanup_free char *from = NULL, *to = NULL;

	if (p->opt.single_file)
		return 0;
	if (asprintf(&from, "%s/dso", of->tmp) < 0)
		from = NULL;
	if (asprintf(&to, "%s/dso", p->tmp) < 0)
		to = NULL;
	return from && to ? file_link_all(from, to, e)
			  : err_set(e, ENOMEM, "%s: out of memory", p->path);
}

static bool copy_modules(struct sink_perfdata *p, const struct sink_perfdata *of)
{
	p->module = calloc(of->nmodules + 1, sizeof(*p->module));
	if (!p->module)
		return false;
	p->module_cap = of->nmodules + 1;
	for (; p->nmodules < of->nmodules; p->nmodules++) {
		p->module[p->nmodules] = of->module[p->nmodules];
		p->module[p->nmodules].name = strdup(of->module[p->nmodules].name);
		if (!p->module[p->nmodules].name)
			return false;
	}
	return true;
}

static bool copy_facts(struct sink_perfdata *p, const struct sink_perfdata *of)
{
	const uint64_t *ip = of->hot.item;

	p->info = of->info;
	p->have_kernel = of->have_kernel;
	p->kernel = of->kernel;
	/* What has no kernel yet may be given another one than its copy. */
	if (of->have_kernel)
		p->text = of->text;
	if (of->kallsyms.len)
		buf_add(&p->kallsyms, of->kallsyms.data, of->kallsyms.len);
	for (size_t i = 0; i < of->hot.n; i++)
		if (!is_new_ip(p, ip[i]))
			return false;
	return !p->kallsyms.failed && copy_modules(p, of);
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	struct sink_perfdata *of = self(s), *p = sink_new();
	struct sink_perfdata_options opt = of->opt;
	struct err local = { 0 };
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	opt.path = path;
	opt.buildid_dir = of->buildid_dir;
	opt.note = NULL;
	ret = sink_prepare(p, &opt, of, e ? e : &local);
	if (!ret && !copy_facts(p, of))
		ret = err_set(e, ENOMEM, "%s: out of memory", path);
	if (!ret && !p->opt.single_file && p->have_kernel) {
		ret = sink_perfdata_put_file(p, "kcore_dir/kallsyms", p->kallsyms.data,
					     p->kallsyms.len, e);
		ret = ret ? ret : sink_perfdata_put_file(p, "kcore_dir/modules", NULL, 0, e);
		ret = ret ? ret : copy_dsos(p, of, e);
	}
	if (ret) {
		op_destroy(&p->sink);
		return ret;
	}
	*out = &p->sink;
	return 0;
}
