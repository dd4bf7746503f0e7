/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/sink.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/end.h"
#include "profile/format/perfdata/side.h"
#include "profile/format/perfdata/sink_files.h"
#include "profile/format/perfdata/window.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_MODULES 16384u /* ranges of modules during the whole run */
#define MAX_LEFTOVERS 1000u

static struct sink_perfdata *self(struct sink *s)
{
	return (struct sink_perfdata *)s;
}

#define KALLSYMS "kcore_dir/kallsyms"
#define KCORE "kcore_dir/kcore"
#define MODULES_FULL "kcore_dir/modules.full"
#define TEXT "text"
#define TOTALS "kvmprof.json"

/* -- code ------------------------------------------------------------------------------ */

/* Writes the kernel's code for perf annotate. Returns true if there is any. */
static bool put_kcore(struct sink_perfdata *p)
{
	cleanup_free char *path = NULL;
	int fd = perfdata_sink_create_in(p, KCORE, &path, NULL), ret;
	struct stat st = { 0 };

	if (fd < 0)
		return false;
	ret = perfdata_kcore(fd, path, &p->kernel, p->hot.item, p->hot.n, NULL);
	if (!ret && fstat(fd, &st) < 0)
		ret = -errno;
	if (close(fd) < 0 && !ret)
		ret = -errno;
	perfdata_sink_failed(p, KCORE, ret);
	/* Without text bytes, perf uses the symbols without a kcore. */
	if (ret || !st.st_size)
		perfdata_sink_remove_in(p, KCORE);
	return !ret && st.st_size;
}

/* Returns the module that was loaded last at this address. */
static const struct profile_module *sink_perfdata_module_at(void *ctx, uint64_t addr)
{
	const struct sink_perfdata *p = ctx;

	for (size_t i = p->nmodules; i-- > 0;)
		if (addr >= p->module[i].addr && addr - p->module[i].addr < p->module[i].len)
			return &p->module[i];
	return NULL;
}

static void put_text(struct sink_perfdata *p)
{
	cleanup_free uint64_t *ip = calloc(p->hot.n + p->callers.n + 1, sizeof(*ip));
	struct buf out;

	buf_init(&out);
	if (ip && p->hot.n)
		memcpy(ip, p->hot.item, p->hot.n * sizeof(*ip));
	if (ip && p->callers.n)
		memcpy(ip + p->hot.n, p->callers.item, p->callers.n * sizeof(*ip));
	if (ip)
		perfdata_text_write(p->text, &out, ip, p->hot.n + p->callers.n,
				    sink_perfdata_module_at, p);
	if (out.failed || !ip)
		perfdata_sink_failed(p, TEXT, -ENOMEM);
	else if (out.len)
		perfdata_sink_put_file(p, TEXT, out.data, out.len, NULL);
	buf_deinit(&out);
}

/* -- modules --------------------------------------------------------------------------- */

/*
 * Returns the modules of the whole run sorted by address, without those that a later one overlaps:
 * perf knows only one module for each address. The caller frees the array.
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

		/*
		 * shown is sorted and free of overlaps: find the first that ends after our start.
		 */
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
 * Writes the maps that must precede the first sample: for each name the last range. Earlier places
 * of a module have their own maps with their times. Also writes the list that makes perf annotate
 * accept the kcore: see docs/perf-data.md.
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
		/* Order of the calls: p->module is one array. */
		if (!last[k] || last[k] < m[i])
			last[k] = m[i];
	}
	for (size_t k = 0; k < nlast; k++)
		buf_printf(&list, "%s %" PRIu64 " 1 - Live 0x%016" PRIx64 "\n", last[k]->name,
			   last[k]->len, last[k]->addr);
	/* With a kcore perf searches by address and uses all ranges, whatever their names. */
	ret = list.failed ? err_set(e, ENOMEM, "%s: out of memory", p->path)
			  : perfdata_write_early(&p->w, kcore ? m : last, kcore ? n : nlast,
						 kcore ? PERFDATA_MAPS_KEPT : PERFDATA_MAPS_BY_NAME,
						 &left, e);
	if (!ret && !p->opt.single_file && !p->failed)
		ret = perfdata_sink_put_file(p, MODULES_FULL, list.data, list.len, e);
	buf_deinit(&list);
	return ret;
}

/*
 * Marks the modules whose addresses other modules had, too: perf has one list of names for all
 * times.
 */
static void mark_shared(struct sink_perfdata *p)
{
	for (size_t i = 0; i < p->nmodules; i++)
		for (size_t k = i + 1; k < p->nmodules; k++) {
			struct profile_module *a = &p->module[i], *b = &p->module[k];

			if (a->addr < b->addr + b->len && b->addr < a->addr + a->len &&
			    strcmp(a->name, b->name) != 0)
				a->shared = b->shared = true;
		}
}

/*
 * Writes names and maps of all modules, now that all are known. kcore: a kcore was written. Stores
 * kallsyms with their functions in *kallsyms.
 */
static int finish_modules(struct sink_perfdata *p, bool kcore, struct buf *kallsyms, struct err *e)
{
	cleanup_free const struct profile_module **shown = NULL;
	size_t n = 0;
	int ret;

	mark_shared(p);
	shown = shown_modules(p, &n);
	if (!shown)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	ret = put_early(p, shown, n, kcore, e);
	if (ret)
		return ret;
	perfdata_kallsyms_modules(kallsyms, &p->kallsyms, shown, n);
	if (kallsyms->failed)
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	/* If there is no space for another file, the names written during the run are kept. */
	if (p->opt.single_file || p->failed)
		return 0;
	ret = perfdata_sink_put_file(p, KALLSYMS ".new", kallsyms->data, kallsyms->len, e);
	return ret ? ret : perfdata_sink_rename_in(p, KALLSYMS ".new", KALLSYMS, e);
}

/* Writes the kernel's id, and its names for a profile that does not contain them. */
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
		/*
		 * Modules have other addresses in each run: their names need an entry of their own.
		 */
		if (p->nmodules) {
			perfdata_hash_id(id, kallsyms->data, kallsyms->len);
			len = sizeof(id);
		}
		perfdata_sink_cache(p, &(struct buildid_file_entry){ PERFDATA_KERNEL_DSO, id, len,
								     "kallsyms", kallsyms->data,
								     kallsyms->len });
	}
	buf_deinit(&with_modules);
	return ret ? ret
		   : perfdata_write_build_id(&p->w, PERFDATA_MISC_KERNEL, id, len,
					     PERFDATA_KERNEL_DSO, e);
}

/* -- all together ------------------------------------------------------------------ */

/* Removes the files that a profile does not need. */
static void drop_extras(struct sink_perfdata *p)
{
	perfdata_sink_remove_in(p, KCORE);
	perfdata_sink_remove_in(p, TEXT);
	perfdata_sink_remove_in(p, MODULES_FULL);
}

/* Writes the files that need no sample. Returns true if a kcore was written. */
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

/* Writes the data. The samples have precedence if there is not enough space for everything. */
static void put_data(struct sink_perfdata *p, const char *json)
{
	bool kcore = put_extras(p);
	const struct perfdata_about about = { &p->info, p->kernel.osrelease, json };
	int ret = finish_kernel(p, kcore, NULL);

	perfdata_sink_failed(p, KALLSYMS, ret);
	ret = p->w.failed ? p->w.failed : perfdata_write_drain(&p->w, NULL);
	perfdata_sink_failed(p, "", ret);
	if (ret && !p->opt.single_file) {
		drop_extras(p);
		/* The failure is recorded already, and the table of build ids has the kernel's. */
		if (p->nmodules && kcore)
			finish_kernel(p, false, NULL);
	}
	ret = perfdata_write_end(&p->w, &about, NULL);
	perfdata_sink_failed(p, "", ret);
}

static void put_totals(struct sink_perfdata *p, const char *json)
{
	struct buf b;

	if (p->opt.single_file)
		return;
	buf_init(&b);
	perfdata_put_totals(&b, &p->w, json);
	if (b.failed)
		perfdata_sink_failed(p, TOTALS, -ENOMEM);
	else
		perfdata_sink_put_file(p, TOTALS, b.data, b.len, NULL);
	buf_deinit(&b);
}

static int sink_perfdata_say_failed(const struct sink_perfdata *p, struct err *e)
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
		perfdata_sink_note(p, &left);
}

/*
 * Returns the path of the profile after a failed publication. It has its final name already if only
 * the removal of the previous profile failed.
 */
static const char *name_after_failure(const struct sink_perfdata *p)
{
	cleanup_free char *data = NULL;
	struct stat own, st;

	if (asprintf(&data, "%s%s", p->path, p->opt.single_file ? "" : "/data") < 0)
		data = NULL;
	return data && file_fstat(p->w.fd, &own) == 0 && stat(data, &st) == 0 &&
			       st.st_dev == own.st_dev && st.st_ino == own.st_ino
		       ? p->path
		       : p->tmp;
}

static int sink_perfdata_end(struct sink_perfdata *p, const struct profile_totals *totals,
			     struct err *e)
{
	const char *json = totals && totals->json ? totals->json : "{}";
	struct err why = { 0 };
	int ret;

	perfdata_sink_failed(p, "", p->w.failed);
	put_data(p, json);
	/* A profile without samples must not replace a better one. */
	if (!p->w.readable || (p->failed && !p->w.kept_samples))
		return sink_perfdata_say_failed(p, e);
	put_totals(p, json);
	tell_left_out(p);
	ret = perfdata_sink_publish(p, &why);
	p->published = true; /* even if renaming failed: the temporary is kept */
	if (ret)
		return err_set(e, -ret, "%s; the profile is %s", why.text, name_after_failure(p));
	return p->failed ? sink_perfdata_say_failed(p, e) : 0;
}

static int sink_perfdata_abandon(struct sink_perfdata *p, enum sink_leftover rest, struct err *e)
{
	struct err why = { 0 };
	int ret;

	/* Keep the file as the last flush has left it: see leftover.h. */
	if (rest == SINK_DROP || !p->w.told_size) {
		ret = perfdata_sink_remove(p, e);
		if (ret || rest == SINK_DROP)
			return ret;
		return err_set(e, ENODATA, "nothing was written so far");
	}
	ret = perfdata_sink_publish(p, &why);
	return ret ? err_set(e, -ret, "%s; the profile is %s", why.text, name_after_failure(p)) : 0;
}

/* -- operations ------------------------------------------------------------------- */

/*
 * Sets the kernel's range if the caller does not know it: from its symbols, otherwise the 2 GiB
 * into which x86-64 Linux links its image. Without any map perf warns about restrictions of the
 * host's kernel, which would mislead.
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

/* Before the first sample a failure ends the run at once: report it as end() would. */
static int op_result(struct sink_perfdata *p, int ret, struct err *e)
{
	if (!ret || p->w.samples)
		return ret;
	perfdata_sink_failed(p, "", p->w.failed);
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
	/*
	 * Write it now and not at the end: a run that is killed then leaves a readable temporary.
	 */
	if (!ret && !p->opt.single_file) {
		ret = perfdata_sink_put_file(p, "kcore_dir/kallsyms", p->kallsyms.data,
					     p->kallsyms.len, e);
		if (!ret)
			ret = perfdata_sink_put_file(p, "kcore_dir/modules", NULL, 0, e);
		if (!ret)
			perfdata_text_kernel(p->text, &p->kernel);
	}
	return op_result(p, ret, e);
}

/* Reports an unknown kernel if kernel() was not called before a call that needs one. */
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

/* Appends the names at once, for readers of the files of a killed run; end() sorts them. */
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
		ret = perfdata_sink_append(p, "kcore_dir/kallsyms", b.data, b.len, e);
	buf_deinit(&b);
	return ret;
}

static int op_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	struct sink_perfdata *p = self(s);
	struct profile_module copy = *m;
	int ret = need_kernel(s, e);

	/* The values come from the guest: an impossible mapping costs names, not the profile. */
	if (ret || !module_is_sane(m))
		return ret;
	if (p->nmodules >= MAX_MODULES) {
		p->modules_left_out++;
		return 0;
	}
	if (ARRAY_ROOM(p->module, p->nmodules, p->module_cap))
		return err_set(e, ENOMEM, "%s: out of memory", p->path);
	copy.name = strndup(m->name, PROFILE_MODULE_NAME - 1);
	copy.build_id = NULL; /* written to the file at once */
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

	perfdata_sink_cache(
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
	return perfdata_sink_put_file(p, name, dso->elf, dso->elf_len, e);
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

/* Limit for the sampled kernel addresses stored; the profile has no text for more. */
#define MAX_HOT (1u << 20)

/*
 * Returns true for an address that was not stored yet. Best effort: false beyond MAX_HOT and if out
 * of memory.
 */
static bool is_new_ip(struct table *t, uint64_t ip)
{
	bool fresh = false;

	return ip && t->n < MAX_HOT && !table_add_number(t, ip, &fresh) && fresh;
}

/* Returns whether the caller was noted lately. This spares a search for each frame of a sample. */
static bool is_recent(struct sink_perfdata *p, uint64_t ip)
{
	uint64_t *slot = &p->recent[ip * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (SINK_RECENT - 1)];

	if (*slot == ip)
		return true;
	*slot = ip;
	return false;
}

/* Stores the kernel addresses of a sample whose functions the profile shall have the code of. */
static void note_code(struct sink_perfdata *p, const struct stack *stack)
{
	for (uint32_t i = 0; i < stack->n_kernel && !p->opt.single_file; i++) {
		const struct profile_module *m;

		if (i && is_recent(p, stack->ip[i]))
			continue;
		if (!is_new_ip(i ? &p->callers : &p->hot, stack->ip[i]))
			continue;
		m = sink_perfdata_module_at(p, stack->ip[i]);
		if (m)
			perfdata_text_module(p->text, m, stack->ip[i]);
	}
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	struct sink_perfdata *p = self(s);
	int ret = need_kernel(s, e);

	if (ret || sample->stack->n == 0)
		return ret;
	note_code(p, sample->stack);
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
	/* Record a failure, but write the rest. */
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
		perfdata_sink_remove(p, NULL);
	for (size_t i = 0; i < p->nmodules; i++)
		free((char *)(uintptr_t)p->module[i].name);
	free(p->module);
	buf_deinit(&p->kallsyms);
	perfdata_text_deinit(&p->own_text);
	table_deinit(&p->hot);
	table_deinit(&p->callers);
	free(p->buildid_dir);
	free(p->path);
	free(p->tmp);
	free(p);
}

static int op_copy(struct sink *s, const char *path, struct sink **out, struct err *e);

static int op_abandon(struct sink *s, enum sink_leftover rest, struct err *e)
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

/* Checks that path and path.old are profiles: end() renames the one and removes the other. */
static int check_replaceable(const char *path, struct err *e)
{
	cleanup_free char *data = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : err_set(e, errno, "%s: cannot write: %s", path, strerror(errno));
	if (S_ISLNK(st.st_mode) && stat(path, &st) < 0)
		return err_set(e, EEXIST, "%s: is a dangling link; give another name", path);
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

/* Opens the data file: new, or a copy of `of`. */
static int open_data(struct sink_perfdata *p, const struct sink_perfdata *of, const char *path,
		     struct err *e)
{
	int ret = of ? perfdata_writer_copy(&p->w, &of->w, path, e)
		     : perfdata_writer_open(&p->w, path, e);

	/*
	 * Locks the file, so that other processes know that it is being written; the lock ends with
	 * this process. See leftover.h.
	 */
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
	if (mkdir(kcore_dir, 0700) < 0 || mkdir(dso_dir, 0700) < 0)
		return err_set(e, errno, "%s: cannot write: %s", p->path, strerror(errno));
	return open_data(p, of, data, e);
}

/*
 * Creates the directory under its final name, because the caller's directory is a temporary itself.
 */
static int create_in_place(struct sink_perfdata *p, const struct sink_perfdata *of, struct err *e)
{
	p->tmp = strdup(p->path);
	if (!p->tmp)
		return err_nomem(e);
	if (mkdir(p->tmp, 0700) == 0)
		return open_directory(p, of, e);
	free(take_ptr(p->tmp));
	return err_set(e, errno, "%s: cannot create: %s", p->path, strerror(errno));
}

/*
 * Creates the temporary; a leftover of a killed process with the same pid is kept, and another name
 * is used.
 */
static int create_temporary(struct sink_perfdata *p, const struct sink_perfdata *of, struct err *e)
{
	for (unsigned int i = 0; i < MAX_LEFTOVERS; i++) {
		struct err why = { 0 };
		int ret;

		free(take_ptr(p->tmp));
		if (asprintf(&p->tmp, i ? "%s.tmp-%d-%u" : "%s.tmp-%d", p->path, (int)getpid(), i) <
		    0) {
			p->tmp = NULL;
			return err_nomem(e);
		}
		if (p->opt.single_file)
			ret = open_data(p, of, p->tmp, &why);
		else
			ret = mkdir(p->tmp, 0700) < 0 ? -errno : 0;
		if (ret == -EEXIST)
			continue;
		if (ret) {
			/* Do not remove a file that was not created here. */
			if (p->w.fd < 0)
				free(take_ptr(p->tmp));
			return err_set(e, -ret, "%s: cannot create: %s", p->path, strerror(-ret));
		}
		return p->opt.single_file ? 0 : open_directory(p, of, e);
	}
	free(take_ptr(p->tmp));
	return err_set(e, EEXIST, "%s: %u unfinished profiles are there: remove them", p->path,
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
	/* A symbolic link stays, and its target is replaced. */
	p->path = outfile_target(path);
	p->buildid_dir = opt->buildid_dir ? strdup(opt->buildid_dir) : buildid_default_dir();
	if (!p->path || (opt->buildid_dir && !p->buildid_dir))
		return err_nomem(e);
	for (len = strlen(p->path); len > 1 && p->path[len - 1] == '/'; len--)
		p->path[len - 1] = '\0';
	if (asprintf(&old, "%s.old", p->path) < 0) {
		old = NULL;
		return err_nomem(e);
	}
	if (opt->in_place)
		return create_in_place(p, of, e);
	ret = check_replaceable(p->path, e);
	if (ret)
		return ret;
	/* Needed only if a profile would be moved there. */
	if (access(p->path, F_OK) == 0) {
		ret = check_replaceable(old, e);
		if (ret)
			return ret;
	}
	ret = create_temporary(p, of, e);
	if (ret || !p->opt.publisher)
		return ret;
	ret = opt->publisher->add(opt->publisher->ctx, p->tmp, p->path, p->opt.single_file, e);
	p->registered = !ret;
	return ret;
}

/* Returns a sink that op_destroy() can free in any state; NULL if out of memory. */
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

int perfdata_sink_create(struct sink **out, const struct sink_perfdata_options *opt, struct err *e)
{
	struct sink_perfdata *p = sink_new();
	struct err local = { 0 };
	int ret;

	if (!p)
		return err_nomem(e);
	ret = sink_prepare(p, opt, NULL, e ? e : &local);
	if (ret) {
		op_destroy(&p->sink);
		return ret;
	}
	*out = &p->sink;
	return 0;
}

const char *perfdata_sink_directory(const struct sink *s)
{
	const struct sink_perfdata *p = (const struct sink_perfdata *)s;

	return s->ops == &perfdata_ops && !p->opt.single_file ? p->tmp : NULL;
}

/* -- a copy ----------------------------------------------------------------------- */

/* Files of programs never change once written: link them if possible. */
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
	const uint64_t *ip = of->hot.item, *caller = of->callers.item;

	p->info = of->info;
	p->have_kernel = of->have_kernel;
	p->kernel = of->kernel;
	/* Without kernel(), the original may get another kernel than its copy. */
	if (of->have_kernel)
		p->text = of->text;
	if (of->kallsyms.len)
		buf_add(&p->kallsyms, of->kallsyms.data, of->kallsyms.len);
	for (size_t i = 0; i < of->hot.n; i++)
		if (!is_new_ip(&p->hot, ip[i]))
			return false;
	for (size_t i = 0; i < of->callers.n; i++)
		if (!is_new_ip(&p->callers, caller[i]))
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
		return err_nomem(e);
	opt.path = path;
	opt.buildid_dir = of->buildid_dir;
	opt.note = NULL;
	opt.publisher = NULL;
	ret = sink_prepare(p, &opt, of, e ? e : &local);
	if (!ret && !copy_facts(p, of))
		ret = err_set(e, ENOMEM, "%s: out of memory", path);
	if (!ret && !p->opt.single_file && p->have_kernel) {
		ret = perfdata_sink_put_file(p, "kcore_dir/kallsyms", p->kallsyms.data,
					     p->kallsyms.len, e);
		ret = ret ? ret : perfdata_sink_put_file(p, "kcore_dir/modules", NULL, 0, e);
		ret = ret ? ret : copy_dsos(p, of, e);
	}
	if (ret) {
		op_destroy(&p->sink);
		return ret;
	}
	*out = &p->sink;
	return 0;
}
