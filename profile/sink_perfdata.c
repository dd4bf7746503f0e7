/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/sink_perfdata.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/buildid_cache.h"
#include "profile/perfdata_format.h"
#include "profile/perfdata_side.h"
#include "profile/perfdata_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_HOT_IPS (1u << 20) /* distinct innermost addresses whose functions go into kcore */

/* An open-addressed set of addresses; 0 marks a free place. */
struct ip_set {
	uint64_t *slot;
	size_t cap, n;
};

struct sink_perfdata {
	struct sink sink;
	struct sink_perfdata_options opt; /* its strings are the ones below */
	char *path, *tmp, *buildid_dir;
	bool published;
	struct perfdata_writer w;
	struct profile_info info;
	struct buf kallsyms;
	uint8_t kernel_id[KIMAGE_BUILD_ID_MAX];
	unsigned int kernel_id_len;
	struct ip_set hot;
};

static struct sink_perfdata *self(struct sink *s)
{
	return (struct sink_perfdata *)s;
}

/* -- set of sampled addresses ----------------------------------------------------- */

static int ip_set_grow(struct ip_set *set)
{
	size_t cap = set->cap ? set->cap * 2 : 1024;
	uint64_t *slot = calloc(cap, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < set->cap; i++) {
		size_t at = (set->slot[i] * 0x9e3779b97f4a7c15u) >> 32;

		if (!set->slot[i])
			continue;
		while (slot[at & (cap - 1)])
			at++;
		slot[at & (cap - 1)] = set->slot[i];
	}
	free(set->slot);
	set->slot = slot;
	set->cap = cap;
	return 0;
}

/* Best effort: an address that finds no room costs annotate one function. */
static void ip_set_add(struct ip_set *set, uint64_t ip)
{
	size_t at = (ip * 0x9e3779b97f4a7c15u) >> 32;

	if (!ip || set->n >= MAX_HOT_IPS || (set->n * 2 >= set->cap && ip_set_grow(set) < 0))
		return;
	for (;; at++) {
		uint64_t *slot = &set->slot[at & (set->cap - 1)];

		if (*slot == ip)
			return;
		if (!*slot) {
			*slot = ip;
			set->n++;
			return;
		}
	}
}

static void ip_set_pack(struct ip_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->cap; i++)
		if (set->slot[i])
			set->slot[n++] = set->slot[i];
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

static int put_kcore(struct sink_perfdata *p, struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_close int fd = create_in(p, "kcore_dir/kcore", &path, e);
	struct stat st;
	int ret;

	if (fd < 0)
		return fd;
	ip_set_pack(&p->hot);
	ret = perfdata_kcore(fd, path, &p->info, p->hot.slot, p->hot.n, e);
	/* No text bytes at all: perf takes the symbols without a kcore. */
	if (!ret && fstat(fd, &st) == 0 && st.st_size == 0)
		unlink(path);
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
static void locate_kernel(struct profile_info *info)
{
	const struct symbol *text, *end;

	if (info->end > info->text)
		return;
	text = info->symbols ? symtab_find(info->symbols, "_text") : NULL;
	end = info->symbols ? symtab_find(info->symbols, "_end") : NULL;
	info->text = text ? text->addr : 0xffffffff80000000u;
	info->end = end && end->addr > info->text ? end->addr : 0xffffffffffe00000u;
	if (info->end <= info->text)
		info->text = info->end = 0;
}

static int op_begin(struct sink *s, const struct profile_info *unlocated, struct err *e)
{
	struct sink_perfdata *p = self(s);
	const struct profile_info *info = &p->info;
	int ret;

	p->info = *unlocated;
	locate_kernel(&p->info);
	perfdata_kallsyms(&p->kallsyms, info);
	if (p->kallsyms.failed)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	p->kernel_id_len = perfdata_kernel_id(p->kernel_id, info, &p->kallsyms);
	ret = perfdata_write_begin(&p->w, info, e);
	if (!ret)
		ret = perfdata_write_build_id(&p->w, true, p->kernel_id, p->kernel_id_len,
					      PERFDATA_KERNEL_DSO, e);
	/* Now and not at the end: a run that is killed leaves a readable temporary behind. */
	if (!ret && !p->opt.single_file) {
		ret = put_file(p, "kcore_dir/kallsyms", p->kallsyms.data, p->kallsyms.len, e);
		if (!ret)
			ret = put_file(p, "kcore_dir/modules", NULL, 0, e);
	}
	return ret;
}

static int op_comm(struct sink *s, uint32_t pid, uint32_t tid, const char *comm, uint64_t time_ns,
		   struct err *e)
{
	return perfdata_write_comm(&self(s)->w, pid, tid, comm, time_ns, e);
}

static int op_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	struct sink_perfdata *p = self(s);
	char name[8 + BUILDID_HEX_MAX] = "dso/";
	cleanup_free char *path = NULL;
	int ret = perfdata_write_map(&p->w, map, e);

	if (ret || !map->elf)
		return ret;
	cache_add(p, map->path, map->build_id, PERFDATA_BUILD_ID_SIZE, "elf", map->elf,
		  map->elf_len);
	if (p->opt.single_file)
		return 0;
	buildid_hex(name + 4, map->build_id, PERFDATA_BUILD_ID_SIZE);
	if (asprintf(&path, "%s/%s", p->tmp, name) < 0) {
		path = NULL;
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	}
	if (access(path, F_OK) == 0)
		return 0;
	return put_file(p, name, map->elf, map->elf_len, e);
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	struct sink_perfdata *p = self(s);

	if (sample->stack->n == 0)
		return 0;
	if (sample->stack->n_kernel)
		ip_set_add(&p->hot, sample->stack->ip[0]);
	return perfdata_write_sample(&p->w, sample, e);
}

static int op_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	return perfdata_write_lost(&self(s)->w, cpu, count, time_ns, e);
}

static int op_end(struct sink *s, const struct profile_totals *totals, struct err *e)
{
	struct sink_perfdata *p = self(s);
	const char *json = totals && totals->json ? totals->json : "{}";
	int ret = perfdata_write_end(&p->w, &p->info, json, e);

	if (ret)
		return ret;
	if (p->opt.single_file) {
		if (p->kallsyms.len)
			cache_add(p, PERFDATA_KERNEL_DSO, p->kernel_id, p->kernel_id_len,
				  "kallsyms", p->kallsyms.data, p->kallsyms.len);
	} else {
		ret = put_kcore(p, e);
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
	buf_deinit(&p->kallsyms);
	free(p->hot.slot);
	free(p->buildid_dir);
	free(p->path);
	free(p->tmp);
	free(p);
}

static const struct sink_ops perfdata_ops = {
	.begin = op_begin,
	.comm = op_comm,
	.map = op_map,
	.sample = op_sample,
	.lost = op_lost,
	.end = op_end,
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

static int create_temporary(struct sink_perfdata *p, struct err *e)
{
	cleanup_free char *data = NULL, *kcore_dir = NULL, *dso_dir = NULL;

	/* Left by a killed process that had our pid. */
	if (file_remove_tree(p->tmp, e) < 0)
		return -e->code;
	if (p->opt.single_file)
		return perfdata_writer_open(&p->w, p->tmp, e);
	if (asprintf(&data, "%s/data", p->tmp) < 0 ||
	    asprintf(&kcore_dir, "%s/kcore_dir", p->tmp) < 0 ||
	    asprintf(&dso_dir, "%s/dso", p->tmp) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	if (mkdir(p->tmp, 0755) < 0)
		return err_set(e, errno, "%s: cannot create: %s", p->path, strerror(errno));
	if (mkdir(kcore_dir, 0755) < 0 || mkdir(dso_dir, 0755) < 0)
		return err_set(e, errno, "%s: cannot write: %s", p->path, strerror(errno));
	return perfdata_writer_open(&p->w, data, e);
}

static int prepare(struct sink_perfdata *p, const struct sink_perfdata_options *opt, struct err *e)
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
	if (asprintf(&p->tmp, "%s.tmp-%d", p->path, (int)getpid()) < 0)
		p->tmp = NULL;
	if (!old || !p->tmp)
		return err_set(e, ENOMEM, "out of memory");
	ret = check_replaceable(p->path, e);
	/* Only when something would be moved there. */
	if (!ret && access(p->path, F_OK) == 0)
		ret = check_replaceable(old, e);
	return ret ? ret : create_temporary(p, e);
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
	ret = prepare(p, opt, e ? e : &local);
	if (ret) {
		op_destroy(&p->sink);
		return ret;
	}
	*out = &p->sink;
	return 0;
}
