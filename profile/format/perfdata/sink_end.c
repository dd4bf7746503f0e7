/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_perfdata_end: what is written when all samples are there, and what becomes of a profile
 * that can't be written whole.
 */
#include "profile/format/perfdata/sink_private.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/side.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KALLSYMS "kcore_dir/kallsyms"
#define KCORE "kcore_dir/kcore"
#define MODULES_FULL "kcore_dir/modules.full"
#define TEXT "text"
#define TOTALS "kvmprof.json"

/* -- code ------------------------------------------------------------------------------ */

/* False: there is none, for whatever reason. */
static bool put_kcore(struct sink_perfdata *p)
{
	cleanup_free char *path = NULL;
	int fd = sink_perfdata_create_in(p, KCORE, &path, NULL), ret;
	struct stat st = { 0 };

	if (fd < 0)
		return false;
	ret = perfdata_kcore(fd, path, &p->kernel, p->hot.item, p->hot.n, NULL);
	if (!ret && fstat(fd, &st) < 0)
		ret = -errno;
	if (close(fd) < 0 && !ret)
		ret = -errno;
	sink_perfdata_failed(p, KCORE, ret);
	/* No text bytes at all: perf takes the symbols without a kcore. */
	if (ret || !st.st_size)
		sink_perfdata_remove_in(p, KCORE);
	return !ret && st.st_size;
}

/* The module that came last to this place. */
const struct profile_module *sink_perfdata_module_at(void *ctx, uint64_t addr)
{
	const struct sink_perfdata *p = ctx;

	for (size_t i = p->nmodules; i-- > 0;)
		if (addr >= p->module[i].addr && addr - p->module[i].addr < p->module[i].len)
			return &p->module[i];
	return NULL;
}

static void put_text(struct sink_perfdata *p)
{
	struct buf out;

	buf_init(&out);
	perfdata_text_write(p->text, &out, p->hot.item, p->hot.n, sink_perfdata_module_at, p);
	if (out.failed)
		sink_perfdata_failed(p, TEXT, -ENOMEM);
	else if (out.len)
		sink_perfdata_put_file(p, TEXT, out.data, out.len, NULL);
	buf_deinit(&out);
}

/* -- modules --------------------------------------------------------------------------- */

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
static int put_early(struct sink_perfdata *p, const struct profile_module **m, size_t n, bool kcore,
		     struct err *e)
{
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
	/* With a kcore perf asks for addresses and takes all ranges; it looks for no name. */
	ret = list.failed ? err_set(e, ENOMEM, "%s: out of memory", p->path)
			  : perfdata_write_early(&p->w, kcore ? m : last, kcore ? n : nlast,
						 kcore ? PERFDATA_MAPS_KEPT : PERFDATA_MAPS_BY_NAME,
						 &left, e);
	if (!ret && !p->opt.single_file && !p->failed)
		ret = sink_perfdata_put_file(p, MODULES_FULL, list.data, list.len, e);
	buf_deinit(&list);
	return ret;
}

/*
 * Names and maps of all modules, now that all are known. kcore: there is one.
 * *kallsyms: with their functions.
 */
static int finish_modules(struct sink_perfdata *p, bool kcore, struct buf *kallsyms, struct err *e)
{
	cleanup_free const struct profile_module **shown = NULL;
	size_t n = 0;
	int ret;

	shown = shown_modules(p, &n);
	if (!shown)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	ret = put_early(p, shown, n, kcore, e);
	if (ret)
		return ret;
	perfdata_kallsyms_modules(kallsyms, &p->kallsyms, shown, n);
	if (kallsyms->failed)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	/* Where there is no room for another one, what was gathered on the way will do. */
	if (p->opt.single_file || p->failed)
		return 0;
	ret = sink_perfdata_put_file(p, KALLSYMS ".new", kallsyms->data, kallsyms->len, e);
	return ret ? ret : sink_perfdata_rename_in(p, KALLSYMS ".new", KALLSYMS, e);
}

/* The kernel's identity, and its names for a profile that does not carry them. */
static int finish_kernel(struct sink_perfdata *p, bool kcore, struct err *e)
{
	struct buf with_modules;
	const struct buf *kallsyms = &p->kallsyms;
	uint8_t id[KIMAGE_BUILD_ID_MAX];
	unsigned int len;
	int ret = 0;

	buf_init(&with_modules);
	if (p->nmodules) {
		ret = finish_modules(p, kcore, &with_modules, e);
		kallsyms = &with_modules;
	}
	len = perfdata_kernel_id(id, &p->kernel, &p->kallsyms);
	if (!ret && p->opt.single_file && kallsyms->len) {
		/* Modules lie elsewhere in each run: their names need a place of their own. */
		if (p->nmodules) {
			perfdata_hash_id(id, kallsyms->data, kallsyms->len);
			len = sizeof(id);
		}
		sink_perfdata_cache(p, &(struct buildid_file_entry){ PERFDATA_KERNEL_DSO, id, len,
								     "kallsyms", kallsyms->data,
								     kallsyms->len });
	}
	buf_deinit(&with_modules);
	return ret ? ret
		   : perfdata_write_build_id(&p->w, PERFDATA_MISC_KERNEL, id, len,
					     PERFDATA_KERNEL_DSO, e);
}

/* -- all together ------------------------------------------------------------------ */

/* Of what was written so far this is what a profile can do without. */
static void drop_extras(struct sink_perfdata *p)
{
	sink_perfdata_remove_in(p, KCORE);
	sink_perfdata_remove_in(p, TEXT);
	sink_perfdata_remove_in(p, MODULES_FULL);
}

/* The files that need the data of no sample. True: with a kcore. */
static bool put_extras(struct sink_perfdata *p)
{
	bool kcore;

	if (p->opt.single_file || p->failed || p->w.failed)
		return false;
	kcore = put_kcore(p);
	if (!p->failed)
		put_text(p);
	if (!p->failed)
		return kcore;
	drop_extras(p);
	return false;
}

/* The data; the samples come first when there is no room for everything. */
static void put_data(struct sink_perfdata *p, const char *json)
{
	bool kcore = put_extras(p);
	const struct perfdata_about about = { &p->info, p->kernel.osrelease, json };
	int ret = finish_kernel(p, kcore, NULL);

	sink_perfdata_failed(p, KALLSYMS, ret);
	ret = p->w.failed ? p->w.failed : perfdata_write_drain(&p->w, NULL);
	sink_perfdata_failed(p, "", ret);
	if (ret && !p->opt.single_file) {
		drop_extras(p);
		/* What failed once is told already; the table of build ids has its kernel. */
		if (p->nmodules && kcore)
			finish_kernel(p, false, NULL);
	}
	ret = perfdata_write_end(&p->w, &about, NULL);
	sink_perfdata_failed(p, "", ret);
}

static void put_totals(struct sink_perfdata *p, const char *json)
{
	struct buf b;

	if (p->opt.single_file)
		return;
	buf_init(&b);
	perfdata_put_totals(&b, &p->w, json);
	if (b.failed)
		sink_perfdata_failed(p, TOTALS, -ENOMEM);
	else
		sink_perfdata_put_file(p, TOTALS, b.data, b.len, NULL);
	buf_deinit(&b);
}

int sink_perfdata_say_failed(const struct sink_perfdata *p, struct err *e)
{
	const char *where = p->opt.passed_on ? p->tmp : p->path;
	char kept[96];

	if (!p->published)
		return err_set(e, -p->failed,
			       "%s: cannot write%s%s: %s: there is no profile; make room there, or "
			       "%s",
			       where, *p->at_fault ? " " : "", p->at_fault, strerror(-p->failed),
			       p->opt.passed_on ? "set TMPDIR" : "name another place with -o");
	if (p->w.kept_samples == p->w.samples)
		snprintf(kept, sizeof(kept), "all %" PRIu64 " samples are", p->w.samples);
	else
		snprintf(kept, sizeof(kept), "only %" PRIu64 " of %" PRIu64 " samples are",
			 p->w.kept_samples, p->w.samples);
	if (p->opt.passed_on)
		return err_set(e, -p->failed,
			       "%s: cannot write: %s: %s in the profile on standard output; make "
			       "room there, or set TMPDIR",
			       where, strerror(-p->failed), kept);
	return err_set(e, -p->failed,
		       "%s: cannot write%s%s: %s: %s in it (`kvmprof report -i %s`); make room "
		       "there, or name another place with -o",
		       where, *p->at_fault ? " " : "", p->at_fault, strerror(-p->failed), kept,
		       p->path);
}

static void tell_left_out(struct sink_perfdata *p)
{
	struct err left = { 0 };

	if (p->modules_left_out)
		err_set(&left, E2BIG,
			"%s: %" PRIu64 " loads of modules are left out after the first %zu: there "
			"addresses in modules have no names",
			p->path, p->modules_left_out, p->nmodules);
	else if (p->w.ids_left_out)
		err_set(&left, E2BIG,
			"%s: the list of build ids has the first %zu programs: for `perf "
			"buildid-list` "
			"the others are missing",
			p->path, p->w.ids.n);
	if (left.code)
		sink_perfdata_note(p, &left);
}

int sink_perfdata_end(struct sink_perfdata *p, const struct profile_totals *totals, struct err *e)
{
	const char *json = totals && totals->json ? totals->json : "{}";
	struct err why = { 0 };
	int ret;

	sink_perfdata_failed(p, "", p->w.failed);
	put_data(p, json);
	/* A profile without any of its samples would only take the place of a better one. */
	if (!p->w.readable || (p->failed && !p->w.kept_samples))
		return sink_perfdata_say_failed(p, e);
	put_totals(p, json);
	tell_left_out(p);
	ret = file_publish(p->tmp, p->path, &why);
	p->published = true; /* or it stays where it is */
	if (ret)
		return err_set(e, -ret, "%s; the profile is %s", why.text, p->tmp);
	return p->failed ? sink_perfdata_say_failed(p, e) : 0;
}

int sink_perfdata_abandon(struct sink_perfdata *p, enum sink_rest rest, struct err *e)
{
	struct err why = { 0 };
	int ret;

	/* As the last flush has left it: see leftover.h. */
	if (rest == SINK_DROP || !p->w.told_size) {
		ret = file_remove_tree(p->tmp, e);
		if (ret || rest == SINK_DROP)
			return ret;
		return err_set(e, ENODATA, "nothing was written so far");
	}
	ret = file_publish(p->tmp, p->path, &why);
	return ret ? err_set(e, -ret, "%s; the profile is %s", why.text, p->tmp) : 0;
}
