/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/jit.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/idmap.h"
#include "profile/format/files/userfile.h"
#include "profile/record/guest/dso.h"
#include "symbolizer/linux/tree.h"
#include "symbolizer/program/elfsynth.h"
#include "symbolizer/program/perfmap.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NAME_MAX_LEN 48u

struct region {
	uint64_t start, end;
	bool named;
};

/* One program in one process: another program with the same pid has another mm. */
struct jit_process {
	uint32_t pid;
	uint32_t turn; /* number of earlier programs of this pid with such code */
	uint64_t mm;
	bool settled; /* symbols were searched for */
	uint8_t build_id[GUEST_BUILD_ID];
	struct region *region; /* not overlapping; sorted when `settled` */
	size_t n, cap;
};

struct guest_jit {
	struct userfile_finder *finder;
	struct sink *sink;
	const struct jit_source *source; /* NULL: none */
	uint64_t run;			 /* distinguishes this run's build ids from another's */
	struct jit_process *process;
	struct idmap last; /* by pid: the last process that had it */
	size_t n, cap, nregions;
	struct guest_jit_stats stats;
};

int guest_jit_create(struct guest_jit **out, struct userfile_finder *finder, struct sink *sink,
		     struct err *e)
{
	struct guest_jit *j = calloc(1, sizeof(*j));

	if (!j)
		return err_nomem(e);
	j->finder = finder;
	j->sink = sink;
	if (getrandom(&j->run, sizeof(j->run), 0) != sizeof(j->run)) {
		free(j);
		return err_set(e, EIO, "cannot get a random number for this run's build ids");
	}
	*out = j;
	return 0;
}

void guest_jit_destroy(struct guest_jit *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n; i++)
		free(j->process[i].region);
	free(j->process);
	idmap_deinit(&j->last);
	free(j);
}

const struct guest_jit_stats *guest_jit_stats(const struct guest_jit *j)
{
	return &j->stats;
}

/*
 * perf identifies a DSO by its name only, so each program with symbols has its own: a second
 * program of a pid is `[jit:PID#2]`.
 */
static void dso_name(char name[NAME_MAX_LEN], const struct jit_process *p)
{
	if (p->turn)
		snprintf(name, NAME_MAX_LEN, "[jit:%" PRIu32 "#%" PRIu32 "]", p->pid, p->turn + 1);
	else
		snprintf(name, NAME_MAX_LEN, "[jit:%" PRIu32 "]", p->pid);
}

/* -- maps from the guest's memory ----------------------------------------------------- */

#define CHUNK 65536u

/* Returns the address of a task of that process, or of pid 1 if the process has none, or 0. */
static uint64_t find_task(const struct jit_source *s, uint32_t pid, uint64_t mm)
{
	struct linux_task_list list = { 0 };
	struct err ignored = { 0 };
	uint64_t found = 0;

	if (linux_task_list(&s->facts->task, s->memory, &list, &ignored) < 0)
		return 0;
	for (size_t i = 0; i < list.n; i++) {
		const struct linux_task *t = &list.task[i];

		if (t->tgid == 1 && t->pid == 1 && !found)
			found = t->task;
		if (t->tgid == pid && t->mm == mm) {
			found = t->task;
			break;
		}
	}
	linux_task_list_deinit(&list);
	return found;
}

static int read_all(const struct linux_file *f, struct buf *out, const char *path, struct err *e)
{
	uint64_t size = linux_file_size(f), off = 0;
	uint8_t chunk[CHUNK];

	if (size > USERFILE_MAX_PERFMAP)
		return err_set(e, EFBIG, "the guest's /%s has %" PRIu64 " bytes", path, size);
	while (off < size) {
		size_t n = linux_file_read(f, off, chunk, sizeof(chunk));

		buf_add(out, chunk, n);
		off += n;
		if (n < sizeof(chunk))
			break;
	}
	/* The meaning of an incomplete line is unknown. */
	while (out->len && off < size && out->data[out->len - 1] != '\n')
		out->len--;
	if (out->failed)
		return err_nomem(e);
	return out->len ? 0
			: err_set(e, ENODATA, "nothing of the guest's /%s is in its memory", path);
}

/*
 * Appends the map of process pid, whose mm_struct is at mm, as far as its lines are in memory.
 * Returns 0, -ENOENT if there is none or it cannot be found, -ENODATA if no part of it is in
 * memory, -EFBIG or -ENOMEM; *e has the reason.
 */
static int jit_source_read(const struct jit_source *s, uint32_t pid, uint64_t mm, struct buf *out,
			   struct err *e)
{
	const struct linux_tree tree = { &s->facts->tree, &s->facts->mm, s->memory };
	struct linux_place root;
	struct linux_file file;
	enum linux_why why = LINUX_NOT_THERE;
	uint64_t mapping, task;
	char path[32];

	if (!s->facts->have_tree || !s->facts->have_file)
		return err_set(e, ENOENT, "the guest's files cannot be found in its memory: %s",
			       s->facts->have_file ? s->facts->tree_note.text
						   : s->facts->file_note.text);
	snprintf(path, sizeof(path), "tmp/perf-%" PRIu32 ".map", pid);
	task = find_task(s, pid, mm);
	if (task)
		why = linux_tree_root(&tree, task, &root);
	if (task && why == LINUX_OK)
		why = linux_tree_find(&tree, &root, path, &mapping);
	if (why == LINUX_OK)
		why = linux_file_of_mapping(&file, &s->facts->file, s->memory, mapping);
	if (why != LINUX_OK)
		return err_set(e, ENOENT, "no /%s is in the guest's memory (%s)", path,
			       linux_why_text(why));
	return read_all(&file, out, path, e);
}

/* -- names ----------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

#define JIT_DOUBT " [or older code]"

/*
 * Adds a symbol. Code in the place of another function's is marked: a sample may be older than it.
 */
static int add_name(struct guest_jit *j, const struct perfmap *m, const struct symbol *s,
		    struct symtab *out, uint64_t from, uint64_t to)
{
	static const size_t most = SYMTAB_MAX_NAME - sizeof(JIT_DOUBT);
	char name[SYMTAB_MAX_NAME];

	j->stats.names++;
	if (!perfmap_is_uncertain(m, s))
		return symtab_add(out, from, to - from, 't', s->name);
	j->stats.doubtful++;
	snprintf(name, sizeof(name), "%.*s" JIT_DOUBT, (int)most, s->name);
	return symtab_add(out, from, to - from, 't', name);
}

/* Adds the map's symbols that lie in the regions; both are sorted by address. */
static int take_names(struct guest_jit *j, struct jit_process *p, const struct perfmap *m,
		      struct symtab *out)
{
	size_t r = 0;

	for (size_t i = 0; i < perfmap_pieces(m); i++) {
		uint64_t start, end;
		const struct symbol *s = perfmap_piece(m, i, &start, &end);

		while (r < p->n && p->region[r].end <= start)
			r++;
		for (size_t k = r; s && k < p->n && p->region[k].start < end; k++) {
			struct region *g = &p->region[k];
			uint64_t from = start > g->start ? start : g->start;
			uint64_t to = end < g->end ? end : g->end;
			int ret = add_name(j, m, s, out, from, to);

			/* The symbols that fit are better than none. */
			if (ret)
				return ret == -E2BIG ? 0 : ret;
			j->stats.named += !g->named;
			g->named = true;
		}
	}
	return 0;
}

/* Writes an ELF file whose file offsets are the process's addresses. */
static int write_elf(struct buf *out, const struct jit_process *p, const char *name,
		     const struct symtab *symbols, struct err *e)
{
	uint64_t start = p->region[0].start, len = p->region[p->n - 1].end - start;
	struct userelf u = {
		.name = name,
		.type = ET_DYN,
		.nseg = 1,
		.seg = { { .va = start,
			   .file_off = start,
			   .file_len = len,
			   .mem_len = len,
			   .align = 1,
			   .flags = PF_R | PF_X } },
	};

	return elfsynth_write(out, &u, p->build_id, GUEST_BUILD_ID, symbols, e);
}

static int tell_names(struct guest_jit *j, struct jit_process *p, const struct symtab *symbols,
		      struct err *e)
{
	char name[NAME_MAX_LEN];
	struct profile_dso dso = { .path = name, .build_id = p->build_id };
	struct err bad = { 0 };
	struct buf elf;
	int ret = 0;

	dso_name(name, p);
	buf_init(&elf);
	if (write_elf(&elf, p, name, symbols, &bad) == 0) {
		dso.elf = elf.data;
		dso.elf_len = elf.len;
		ret = j->sink->ops->dso(j->sink, &dso, e);
	} else if (!j->stats.why[0]) {
		snprintf(j->stats.why, sizeof(j->stats.why), "%.199s", bad.text);
	}
	buf_deinit(&elf);
	return ret;
}

void guest_jit_use_guest(struct guest_jit *j, const struct jit_source *source)
{
	j->source = source;
}

struct jit_text {
	const uint8_t *data;
	size_t len;
};

/* Adds the symbols of a map's text. */
static int take_map(struct guest_jit *j, struct jit_process *p, struct symtab *out,
		    const char *path, const struct jit_text *text, struct err *e)
{
	struct perfmap *m = NULL;
	const uint64_t before = j->stats.names;
	int ret = perfmap_parse(&m, path, text->data, text->len, NULL, e);

	if (!ret) {
		const size_t lines = perfmap_pieces(m);

		ret = take_names(j, p, m, out);
		if (!ret && lines && j->stats.names == before)
			ret = -ESTALE;
		ret = ret == -ESTALE
			      ? err_set(e, ESTALE,
					"%s: none of its lines is of code that was sampled: it "
					"is of another process, or not written yet",
					path)
		      : ret ? err_set(e, -ret, "%s: %s", path, strerror(-ret))
			    : symtab_freeze(out, e);
	}
	perfmap_destroy(m);
	return ret;
}

static int read_guests_map(struct guest_jit *j, struct jit_process *p, struct symtab *out,
			   struct err *e)
{
	char path[NAME_MAX_LEN];
	struct buf text;
	int ret;

	snprintf(path, sizeof(path), "the guest's /tmp/perf-%" PRIu32 ".map", p->pid);
	buf_init(&text);
	ret = jit_source_read(j->source, p->pid, p->mm, &text, e);
	if (!ret)
		ret = take_map(j, p, out, path, &(struct jit_text){ text.data, text.len }, e);
	if (!ret)
		j->stats.from_memory++;
	buf_deinit(&text);
	return ret;
}

static int read_map(struct guest_jit *j, struct jit_process *p, struct symtab *out, struct err *e)
{
	struct userfile file = { 0 };
	struct err why = { 0 };
	int ret;

	if (j->source && read_guests_map(j, p, out, &why) == 0)
		return 0;
	if (!j->finder || !j->finder->opt.guest_root)
		return err_set(e, ENOENT,
			       "%s%sgive --guest-root DIR with its /tmp/perf-%" PRIu32 ".map",
			       why.code ? why.text : "the guest's /tmp is not known",
			       why.code ? "; " : ": ", p->pid);
	ret = userfile_open_perfmap(&file, j->finder, p->pid, e);
	if (!ret)
		ret = take_map(j, p, out, file.path ? file.path : "perf map",
			       &(struct jit_text){ file.map.data, file.map.len }, e);
	userfile_close(&file);
	return ret;
}

/* Reads the symbols of one program, once. Missing symbols are not an error. */
static int jit_settle(struct guest_jit *j, struct jit_process *p, struct err *e)
{
	struct symtab *symbols;
	struct err why = { 0 };
	int ret = 0;

	if (p->settled || !p->n)
		return 0;
	p->settled = true;
	symbols = symtab_create();
	if (!symbols)
		return err_nomem(e);
	qsort(p->region, p->n, sizeof(*p->region), by_start);
	if (read_map(j, p, symbols, &why) == 0) {
		if (symtab_count(symbols))
			ret = tell_names(j, p, symbols, e);
	} else {
		j->stats.without_map += p->n;
		if (!j->stats.why[0])
			snprintf(j->stats.why, sizeof(j->stats.why), "%.199s", why.text);
	}
	symtab_destroy(symbols);
	return ret;
}

int guest_jit_finish(struct guest_jit *j, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < j->n && !ret; i++)
		ret = jit_settle(j, &j->process[i], e);
	return ret;
}

/* -- regions --------------------------------------------------------------------------- */

static void make_build_id(const struct guest_jit *j, struct jit_process *p, uint64_t addr)
{
	char text[96];

	snprintf(text, sizeof(text), "jit %" PRIx64 " %" PRIu32 " %" PRIu32 " %" PRIx64 " %" PRIx64,
		 j->run, p->pid, p->turn, p->mm, addr);
	guest_dso_name_id(p->build_id, text);
}

static int add_process(struct guest_jit *j, uint32_t pid, uint32_t turn, uint64_t mm, uint64_t addr)
{
	if (ARRAY_ROOM(j->process, j->n, j->cap) || idmap_set(&j->last, pid, (uint32_t)j->n))
		return -ENOMEM;
	j->process[j->n] = (struct jit_process){ .pid = pid, .turn = turn, .mm = mm };
	make_build_id(j, &j->process[j->n++], addr);
	j->stats.processes++;
	return 0;
}

/*
 * *out stays NULL if there are too many processes. If another program has the pid now, the former
 * one's map is about to be overwritten, so it is read now.
 */
static int find_process(struct guest_jit *j, const struct profile_map *map, uint64_t mm,
			struct jit_process **out, struct err *e)
{
	uint32_t turn = 0, i;
	int ret;

	*out = NULL;
	if (idmap_get(&j->last, map->pid, &i)) {
		struct jit_process *p = &j->process[i];

		if (p->mm == mm) {
			*out = p;
			return 0;
		}
		ret = jit_settle(j, p, e);
		if (ret)
			return ret;
		turn = p->turn + 1;
	}
	if (j->n >= GUEST_JIT_MAX_PROCESSES)
		return 0;
	if (add_process(j, map->pid, turn, mm, map->addr) < 0)
		return err_nomem(e);
	*out = &j->process[j->n - 1];
	return 0;
}

/* Joins the region with those that it overlaps: they are the same one, which has grown. */
static int add_region(struct guest_jit *j, struct jit_process *p, uint64_t start, uint64_t end)
{
	struct region fresh = { start, end, false };
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct region *g = &p->region[i];

		if (g->start >= end || g->end <= start) {
			p->region[n++] = *g;
			continue;
		}
		fresh.start = g->start < fresh.start ? g->start : fresh.start;
		fresh.end = g->end > fresh.end ? g->end : fresh.end;
	}
	j->stats.regions += 1 - (p->n - n);
	j->nregions -= p->n - n;
	p->n = n;
	if (p->n >= GUEST_JIT_MAX_OF_ONE || j->nregions >= GUEST_JIT_MAX_REGIONS) {
		j->stats.beyond++;
		return 0;
	}
	if (ARRAY_ROOM(p->region, p->n, p->cap))
		return -ENOMEM;
	p->region[p->n++] = fresh;
	j->nregions++;
	return 0;
}

int guest_jit_map(struct guest_jit *j, uint64_t mm, const struct profile_map *map, struct err *e)
{
	char name[NAME_MAX_LEN] = "[jit]";
	uint8_t no_process_id[GUEST_BUILD_ID];
	struct profile_map m = *map;
	struct jit_process *p;
	int ret = find_process(j, map, mm, &p, e);

	if (ret)
		return ret;
	m.path = name;
	m.pgoff = m.addr;
	m.elf = NULL;
	m.elf_len = 0;
	guest_dso_name_id(no_process_id, name);
	m.build_id = no_process_id;
	if (!p) {
		j->stats.regions++;
		j->stats.beyond++;
	} else {
		dso_name(name, p);
		m.build_id = p->build_id;
		if (!p->settled && add_region(j, p, m.addr, m.addr + m.len) < 0)
			return err_nomem(e);
	}
	return j->sink->ops->map(j->sink, &m, e);
}
