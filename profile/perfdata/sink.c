/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/perfdata/sink.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/files/buildid_cache.h"
#include "base/ip_set.h"
#include "profile/perfdata/format.h"
#include "profile/perfdata/side.h"
#include "profile/perfdata/text.h"
#include "profile/perfdata/write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_MODULES 16384u /* ranges of modules over the whole run */

struct sink_perfdata {
	struct sink sink;
	struct sink_perfdata_options opt; /* its strings are the ones below */
	char *path, *tmp, *buildid_dir;
	bool published;
	struct perfdata_writer w;
	struct profile_info info;
	bool have_kernel;
	struct profile_kernel kernel;
	struct buf kallsyms; /* of the kernel proper */
	struct profile_module *module;
	size_t nmodules, module_cap;
	struct ip_set hot;
	struct perfdata_text own_text;
	struct perfdata_text *text; /* a copy's is that of what it was copied from */
	unsigned int copies;	    /* made so far: each has a temporary of its own */
};

static struct sink_perfdata *self(struct sink *s)
{
	return (struct sink_perfdata *)s;
}

/* -- files of the directory ------------------------------------------------------- */

static int create_in(struct sink_perfdata *p, const char *name, char **path, struct err *e)
{
	int fd;

	if (asprintf(path, "%s/%s", p->tmp, name) < 0) {
		*path = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	}
	fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return fd < 0 ? err_set(e, errno, "%s: cannot create: %s", *path, strerror(errno)) : fd;
}

static int put_file(struct sink_perfdata *p, const char *name, const void *data, size_t len,
		    struct err *e)
{
	cleanup_free char *path = NULL;
	int fd = create_in(p, name, &path, e), ret;

	if (fd < 0)
		return fd;
	ret = len ? file_write_all(fd, data, len) : 0;
	if (close(fd) < 0 && !ret)
		ret = -errno;
	return ret ? err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret)) : 0;
}

static int rename_in(struct sink_perfdata *p, const char *from, const char *to, struct err *e)
{
	cleanup_free char *a = NULL, *b = NULL;

	if (asprintf(&a, "%s/%s", p->tmp, from) < 0)
		a = NULL;
	if (asprintf(&b, "%s/%s", p->tmp, to) < 0)
		b = NULL;
	if (!a || !b)
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	return rename(a, b) < 0 ? err_set(e, errno, "%s: cannot rename: %s", a, strerror(errno))
				: 0;
}

static int put_kcore(struct sink_perfdata *p, struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_close int fd = create_in(p, "kcore_dir/kcore", &path, e);
	struct stat st;
	int ret;

	if (fd < 0)
		return fd;
	ret = perfdata_kcore(fd, path, &p->kernel, p->hot.slot, p->hot.n, e);
	/* No text bytes at all: perf takes the symbols without a kcore. */
	if (!ret && fstat(fd, &st) == 0 && st.st_size == 0)
		unlink(path);
	return ret;
}

/* The module that came last to this place. */
static const struct profile_module *module_at(void *ctx, uint64_t addr)
{
	const struct sink_perfdata *p = ctx;

	for (size_t i = p->nmodules; i-- > 0;)
		if (addr >= p->module[i].addr && addr - p->module[i].addr < p->module[i].len)
			return &p->module[i];
	return NULL;
}

static int put_text(struct sink_perfdata *p, struct err *e)
{
	struct buf out;
	int ret = 0;

	buf_init(&out);
	perfdata_text_write(p->text, &out, p->hot.slot, p->hot.n, module_at, p);
	if (out.failed)
		ret = err_set(e, ENOMEM, "%s: out of memory", p->path);
	else if (out.len)
		ret = put_file(p, "text", out.data, out.len, e);
	buf_deinit(&out);
	return ret;
}

/* What could not be done outside the profile is told, but does not fail the run. */
static void note(struct sink_perfdata *p, const struct err *ce)
{
	if (p->opt.note)
		err_set(p->opt.note, ce->code, "%s", ce->text);
}

static void cache_add(struct sink_perfdata *p, const char *name, const uint8_t *id, size_t id_len,
		      const char *file, const void *data, size_t len)
{
	struct err ce = { 0 };

	if (p->opt.no_buildid_cache)
		return;
	if (!p->buildid_dir)
		err_set(&ce, ENOENT, "HOME is not set: %s was not put into perf's build-id cache",
			name);
	else
		buildid_cache_add(p->buildid_dir, name, id, id_len, file, data, len, &ce);
	if (ce.code)
		note(p, &ce);
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

static int op_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	struct sink_perfdata *p = self(s);

	p->info = *info;
	/* perf then sorts the file as a whole. */
	p->w.rounds_off = p->opt.late_samples;
	return perfdata_write_begin(&p->w, info, e);
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
		ret = put_file(p, "kcore_dir/kallsyms", p->kallsyms.data, p->kallsyms.len, e);
		if (!ret)
			ret = put_file(p, "kcore_dir/modules", NULL, 0, e);
		if (!ret)
			perfdata_text_kernel(p->text, &p->kernel);
	}
	return ret;
}

/* Before anything that needs a kernel in front of it: nobody told us of one. */
static int need_kernel(struct sink *s, struct err *e)
{
	const struct profile_kernel unknown = { 0 };

	return self(s)->have_kernel ? 0 : op_kernel(s, &unknown, e);
}

static int op_fork(struct sink *s, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid,
		   uint64_t time_ns, struct err *e)
{
	return perfdata_write_fork(&self(s)->w, false, pid, tid, ppid, ptid, time_ns, e);
}

static int op_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e)
{
	return perfdata_write_fork(&self(s)->w, true, pid, tid, 0, 0, time_ns, e);
}

static int op_comm(struct sink *s, uint32_t pid, uint32_t tid, const char *comm, bool exec,
		   uint64_t time_ns, struct err *e)
{
	return perfdata_write_comm(&self(s)->w, pid, tid, comm, exec, time_ns, e);
}

/* -- modules ---------------------------------------------------------------------- */

static bool module_is_sane(const struct profile_module *m)
{
	return m->len && m->len <= UINT64_MAX - m->addr && *m->name && !strpbrk(m->name, "]\n/") &&
	       m->build_id_len <= PERFDATA_BUILD_ID_SIZE;
}

static int op_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	struct sink_perfdata *p = self(s);
	struct profile_module *grown, copy = *m;
	int ret = need_kernel(s, e);

	/* The guest's words: a mapping that cannot be costs names, not the profile. */
	if (ret || p->nmodules >= MAX_MODULES || !module_is_sane(m))
		return ret;
	if (p->nmodules == p->module_cap) {
		size_t cap = p->module_cap ? p->module_cap * 2 : 64;

		grown = reallocarray(p->module, cap, sizeof(*grown));
		if (!grown)
			return err_set(e, ENOMEM, "%s: out of memory", p->path);
		p->module = grown;
		p->module_cap = cap;
	}
	copy.name = strndup(m->name, PROFILE_MODULE_NAME - 1);
	copy.build_id = NULL; /* goes into the file at once */
	if (!copy.name)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	p->module[p->nmodules++] = copy;
	return perfdata_write_module(&p->w, m, e);
}

/*
 * The modules of the whole run by address, less those that a later one lies
 * over: perf knows only one module for each address. Freed by the caller.
 */
static const struct profile_module **shown_modules(struct sink_perfdata *p, size_t *n)
{
	const struct profile_module **shown = calloc(p->nmodules + 1, sizeof(*shown));
	size_t out = 0;

	if (!shown)
		return NULL;
	for (size_t i = p->nmodules; i-- > 0;) {
		const struct profile_module *m = &p->module[i];
		size_t at = 0, end = out;

		/* shown is sorted and free of overlaps: the first that ends behind our start. */
		while (at < end) {
			size_t mid = at + (end - at) / 2;

			if (shown[mid]->addr + shown[mid]->len <= m->addr)
				at = mid + 1;
			else
				end = mid;
		}
		if (at < out && shown[at]->addr < m->addr + m->len)
			continue;
		memmove(shown + at + 1, shown + at, (out - at) * sizeof(*shown));
		shown[at] = m;
		out++;
	}
	*n = out;
	return shown;
}

/*
 * What goes before the first sample: one range for each name, the last; its
 * earlier places have maps of their own, in their time. And, for those who want
 * perf annotate, the list that makes perf accept the kcore: see docs/perf-data.md.
 */
static int put_early(struct sink_perfdata *p, const struct profile_module **m, size_t n,
		     struct err *e)
{
	/* With a kcore perf asks for addresses and takes all ranges; it looks for no name. */
	bool kcore = !p->opt.single_file && p->kernel.read_text && p->kernel.symbols;
	cleanup_free const struct profile_module **last = calloc(n + 1, sizeof(*last));
	struct buf list;
	size_t nlast = 0, left;
	int ret = 0;

	if (!last)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	buf_init(&list);
	for (size_t i = 0; i < n; i++) {
		size_t k;

		for (k = 0; k < nlast && strcmp(last[k]->name, m[i]->name); k++)
			;
		if (k == nlast)
			nlast++;
		/* In the order of the calls: p->module is one array. */
		if (!last[k] || last[k] < m[i])
			last[k] = m[i];
	}
	for (size_t k = 0; k < nlast; k++)
		buf_printf(&list, "%s %" PRIu64 " 1 - Live 0x%016" PRIx64 "\n", last[k]->name,
			   last[k]->len, last[k]->addr);
	ret = list.failed ? err_set(e, ENOMEM, "%s: out of memory", p->path)
			  : perfdata_write_early(&p->w, kcore ? m : last, kcore ? n : nlast, kcore,
						 &left, e);
	if (!ret && !p->opt.single_file)
		ret = put_file(p, "kcore_dir/modules.full", list.data, list.len, e);
	buf_deinit(&list);
	return ret;
}

/* Names and maps of all modules, now that all are known. *kallsyms: with their functions. */
static int finish_modules(struct sink_perfdata *p, struct buf *kallsyms, struct err *e)
{
	cleanup_free const struct profile_module **shown = NULL;
	size_t n = 0;
	int ret;

	shown = shown_modules(p, &n);
	if (!shown)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	ret = put_early(p, shown, n, e);
	if (ret)
		return ret;
	perfdata_kallsyms_modules(kallsyms, &p->kallsyms, shown, n);
	if (kallsyms->failed)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	if (p->opt.single_file)
		return 0;
	ret = put_file(p, "kcore_dir/kallsyms.new", kallsyms->data, kallsyms->len, e);
	return ret ? ret : rename_in(p, "kcore_dir/kallsyms.new", "kcore_dir/kallsyms", e);
}

/* -- user programs ---------------------------------------------------------------- */

static int op_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	struct sink_perfdata *p = self(s);
	char name[8 + BUILDID_HEX_MAX] = "dso/";
	cleanup_free char *path = NULL;

	cache_add(p, dso->path, dso->build_id, PERFDATA_BUILD_ID_SIZE, buildid_file(dso->path),
		  dso->elf, dso->elf_len);
	if (p->opt.single_file)
		return 0;
	buildid_hex(name + 4, dso->build_id, PERFDATA_BUILD_ID_SIZE);
	if (asprintf(&path, "%s/%s", p->tmp, name) < 0) {
		path = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	}
	if (access(path, F_OK) == 0)
		return 0;
	return put_file(p, name, dso->elf, dso->elf_len, e);
}

static int op_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	const struct profile_dso dso = { map->path, map->build_id, map->elf, map->elf_len };
	int ret = perfdata_write_map(&self(s)->w, map, e);

	return ret || !map->elf ? ret : op_dso(s, &dso, e);
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	struct sink_perfdata *p = self(s);
	int ret = need_kernel(s, e);

	if (ret || sample->stack->n == 0)
		return ret;
	if (sample->stack->n_kernel && ip_set_add(&p->hot, sample->stack->ip[0]) &&
	    !p->opt.single_file) {
		const struct profile_module *m = module_at(p, sample->stack->ip[0]);

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

/* The kernel's identity, and its names for a profile that does not carry them. */
static int finish_kernel(struct sink_perfdata *p, struct err *e)
{
	struct buf with_modules;
	const struct buf *kallsyms = &p->kallsyms;
	uint8_t id[KIMAGE_BUILD_ID_MAX];
	unsigned int len;
	int ret = 0;

	buf_init(&with_modules);
	if (p->nmodules) {
		ret = finish_modules(p, &with_modules, e);
		kallsyms = &with_modules;
	}
	len = perfdata_kernel_id(id, &p->kernel, &p->kallsyms);
	if (!ret && p->opt.single_file && kallsyms->len) {
		/* Modules lie elsewhere in each run: their names need a place of their own. */
		if (p->nmodules) {
			perfdata_hash_id(id, kallsyms->data, kallsyms->len);
			len = sizeof(id);
		}
		cache_add(p, PERFDATA_KERNEL_DSO, id, len, "kallsyms", kallsyms->data,
			  kallsyms->len);
	}
	buf_deinit(&with_modules);
	return ret ? ret : perfdata_write_build_id(&p->w, true, id, len, PERFDATA_KERNEL_DSO, e);
}

static int op_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	struct sink_perfdata *p = self(s);
	const char *json = totals && totals->json ? totals->json : "{}";
	struct err full = { 0 };
	int ret = need_kernel(s, &full);

	/* A file that cannot take more is cut back and published by perfdata_write_end(). */
	if (ret && !p->w.failed)
		return err_set(e, -ret, "%s", full.text);
	ret = finish_kernel(p, e);
	ret = ret ? ret : perfdata_write_end(&p->w, &p->info, p->kernel.osrelease, json, e);
	if (ret)
		return ret;
	if (!p->opt.single_file) {
		ip_set_pack(&p->hot);
		ret = put_kcore(p, e);
		if (!ret)
			ret = put_text(p, e);
		if (!ret)
			ret = put_file(p, "kvmprof.json", json, strlen(json), e);
		if (ret)
			return ret;
	}
	ret = file_publish(p->tmp, p->path, e);
	p->published = !ret;
	return ret;
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
	ip_set_deinit(&p->hot);
	free(p->buildid_dir);
	free(p->path);
	free(p->tmp);
	free(p);
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e);

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
	.end = op_end,
	.copy = op_copy,
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
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
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
	return of ? perfdata_writer_copy(&p->w, &of->w, path, e)
		  : perfdata_writer_open(&p->w, path, e);
}

static int create_temporary(struct sink_perfdata *p, const struct sink_perfdata *of, struct err *e)
{
	cleanup_free char *data = NULL, *kcore_dir = NULL, *dso_dir = NULL;

	/* Left by a killed process that had our pid. */
	if (file_remove_tree(p->tmp, e) < 0)
		return -e->code;
	if (p->opt.single_file)
		return open_data(p, of, p->tmp, e);
	if (asprintf(&data, "%s/data", p->tmp) < 0 ||
	    asprintf(&kcore_dir, "%s/kcore_dir", p->tmp) < 0 ||
	    asprintf(&dso_dir, "%s/dso", p->tmp) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	if (mkdir(p->tmp, 0755) < 0)
		return err_set(e, errno, "%s: cannot create: %s", p->path, strerror(errno));
	if (mkdir(kcore_dir, 0755) < 0 || mkdir(dso_dir, 0755) < 0)
		return err_set(e, errno, "%s: cannot write: %s", p->path, strerror(errno));
	return open_data(p, of, data, e);
}

static int prepare(struct sink_perfdata *p, const struct sink_perfdata_options *opt,
		   struct sink_perfdata *of, struct err *e)
{
	cleanup_free char *old = NULL;
	size_t len;
	int ret;

	p->opt = *opt;
	p->path = strdup(opt->path && *opt->path ? opt->path : "perf.data");
	p->buildid_dir = opt->buildid_dir ? strdup(opt->buildid_dir) : buildid_default_dir();
	if (!p->path || (opt->buildid_dir && !p->buildid_dir))
		return err_set(e, ENOMEM, "out of memory");
	for (len = strlen(p->path); len > 1 && p->path[len - 1] == '/'; len--)
		p->path[len - 1] = '\0';
	if (asprintf(&old, "%s.old", p->path) < 0)
		old = NULL;
	if (asprintf(&p->tmp, of ? "%s.tmp-%d-%u" : "%s.tmp-%d", p->path, (int)getpid(),
		     of ? ++of->copies : 0) < 0)
		p->tmp = NULL;
	if (!old || !p->tmp)
		return err_set(e, ENOMEM, "out of memory");
	ret = check_replaceable(p->path, e);
	/* Only when something would be moved there. */
	if (!ret && access(p->path, F_OK) == 0)
		ret = check_replaceable(old, e);
	return ret ? ret : create_temporary(p, of, e);
}

int sink_perfdata_create(struct sink **out, const struct sink_perfdata_options *opt, struct err *e)
{
	struct sink_perfdata *p = calloc(1, sizeof(*p));
	struct err local = { 0 };
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	p->sink.ops = &perfdata_ops;
	p->w.fd = -1;
	p->text = &p->own_text;
	perfdata_text_init(p->text);
	ret = prepare(p, opt, NULL, e ? e : &local);
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
	p->info = of->info;
	p->have_kernel = of->have_kernel;
	p->kernel = of->kernel;
	/* What has no kernel yet may be given another one than its copy. */
	if (of->have_kernel)
		p->text = of->text;
	if (of->kallsyms.len)
		buf_add(&p->kallsyms, of->kallsyms.data, of->kallsyms.len);
	return !p->kallsyms.failed && ip_set_copy(&p->hot, &of->hot) && copy_modules(p, of);
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e)
{
	struct sink_perfdata *of = self(s), *p = calloc(1, sizeof(*p));
	struct sink_perfdata_options opt = of->opt;
	struct err local = { 0 };
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	p->sink.ops = &perfdata_ops;
	p->w.fd = -1;
	p->text = &p->own_text;
	perfdata_text_init(p->text);
	opt.path = path;
	opt.buildid_dir = of->buildid_dir;
	opt.note = NULL;
	ret = prepare(p, &opt, of, e ? e : &local);
	if (!ret && !copy_facts(p, of))
		ret = err_set(e, ENOMEM, "%s: out of memory", path);
	if (!ret && !p->opt.single_file && p->have_kernel) {
		ret = put_file(p, "kcore_dir/kallsyms", p->kallsyms.data, p->kallsyms.len, e);
		ret = ret ? ret : put_file(p, "kcore_dir/modules", NULL, 0, e);
		ret = ret ? ret : copy_dsos(p, of, e);
	}
	if (ret) {
		op_destroy(&p->sink);
		return ret;
	}
	*out = &p->sink;
	return 0;
}
