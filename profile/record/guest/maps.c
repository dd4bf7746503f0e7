/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/maps.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* -- one process's mappings ---------------------------------------------------------- */

/*
 * The executable mappings of one process, and whether they are unchanged.
 *
 * The kernel reuses the addresses of structures. A mapping is therefore the same if its file is,
 * and a file is identified by the content of its inode (linux_file_id), in kernels without types by
 * its inode's address and its path.
 */
struct guest_mapped {
	struct linux_vmas vmas;
	struct guest_mark *mark; /* one for each of vmas */
	size_t cap;		 /* capacity of mark */
	/* `changes` was the process's number of changes before they were read */
	bool counted;
	uint32_t changes;
};

/* Returns the mark of v, which is one of m->vmas. */
static struct guest_mark *mapped_mark(const struct guest_mapped *m, const struct linux_vma *v)
{
	return &m->mark[v - m->vmas.v];
}

static void mapped_deinit(struct guest_mapped *m)
{
	linux_vmas_deinit(&m->vmas);
	free(m->mark);
	*m = (struct guest_mapped){ 0 };
}

/* Returns a hash that is never 0. */
static uint64_t path_hash(const struct linux_mm_layout *l, const struct memory *memory,
			  uint64_t file)
{
	char path[LINUX_PATH_MAX];

	linux_file_path(l, memory, file, path);
	return hash_text(HASH_START, path) | 1;
}

static void identify(struct guest_mark *mark, const struct linux_mm_layout *l,
		     const struct memory *memory, uint64_t file)
{
	memset(&mark->file, 0, sizeof(mark->file));
	mark->path = 0;
	if (!file)
		return;
	linux_file_identify(l, memory, file, &mark->file);
	if (l->inode_ino == LINUX_NO_MEMBER)
		mark->path = path_hash(l, memory, file);
}

/*
 * Reads all mappings again without reporting them; all existed at now_ns. A result other than
 * LINUX_OK means that only the first ones were found. LINUX_NO_MEMORY is our own lack of memory.
 */
static enum linux_why mapped_read(struct guest_mapped *m, const struct linux_mm_layout *l,
				  const struct memory *memory, uint64_t mm, uint64_t now_ns)
{
	enum linux_why why;

	/* Read first, so that a change during the read is noticed later. */
	m->counted = linux_mm_changes(l, memory, mm, &m->changes);
	why = linux_mm_vmas(l, memory, mm, LINUX_VM_EXEC, &m->vmas);
	if (ARRAY_FIT(m->mark, m->vmas.n, m->cap)) {
		m->vmas.n = 0;
		return LINUX_NO_MEMORY;
	}
	for (size_t i = 0; i < m->vmas.n; i++) {
		m->mark[i] = (struct guest_mark){ .since_ns = now_ns, .checked_ns = now_ns };
		identify(&m->mark[i], l, memory, m->vmas.v[i].file);
	}
	return why;
}

/*
 * Appends the mappings of *old behind the last one of m; *old is unchanged. Returns false if out of
 * memory.
 */
static bool mapped_append(struct guest_mapped *m, const struct guest_mapped *old)
{
	struct linux_vmas *to = &m->vmas;
	uint64_t end = to->n ? to->v[to->n - 1].end : 0;
	size_t i = 0, n;

	while (i < old->vmas.n && old->vmas.v[i].start < end)
		i++;
	n = old->vmas.n - i;
	if (ARRAY_FIT(m->mark, to->n + n, m->cap) || ARRAY_FIT(to->v, to->n + n, to->cap))
		return false;
	if (n) {
		memcpy(to->v + to->n, old->vmas.v + i, n * sizeof(*to->v));
		memcpy(m->mark + to->n, old->mark + i, n * sizeof(*m->mark));
	}
	to->n += n;
	return true;
}

static bool is_same_file(const struct guest_mark *a, const struct guest_mark *b)
{
	return a->path == b->path && !memcmp(&a->file, &b->file, sizeof(a->file));
}

/*
 * Returns whether mapping i of a and mapping k of b show the same bytes of the same file where they
 * overlap.
 */
static bool mapped_agree(const struct guest_mapped *a, size_t i, const struct guest_mapped *b,
			 size_t k)
{
	const struct linux_vma *v = &a->vmas.v[i], *w = &b->vmas.v[k];

	if (!v->file || !w->file)
		return !v->file && !w->file;
	return v->start - v->file_off == w->start - w->file_off &&
	       is_same_file(&a->mark[i], &b->mark[k]);
}

/*
 * Returns whether nothing was unmapped or changed since they were read; false as well if that
 * cannot be known without reading.
 */
static bool mapped_unchanged(const struct guest_mapped *m, const struct linux_mm_layout *l,
			     const struct memory *memory, uint64_t mm)
{
	uint32_t changes;

	return m->counted && linux_mm_changes(l, memory, mm, &changes) && changes == m->changes;
}

/*
 * Returns whether the process has this mapping at this moment; false as well if that cannot be
 * known.
 */
static bool mapped_holds(const struct guest_mapped *m, const struct linux_mm_layout *l,
			 const struct memory *memory, uint64_t mm, const struct linux_vma *v)
{
	struct guest_mark now = { 0 };
	struct linux_vma w;

	/* Any address of it would do; it may have been split or joined with its neighbour since. */
	if (linux_mm_lookup(l, memory, mm, v->start, &w) != LINUX_OK || w.start != v->start ||
	    w.end != v->end || !(w.flags & LINUX_VM_EXEC) || !w.file != !v->file ||
	    w.file_off != v->file_off)
		return false;
	identify(&now, l, memory, w.file);
	return is_same_file(&now, mapped_mark(m, v));
}

/* -- all processes --------------------------------------------------------------------- */

/* The PCID, and which one of a pair of page tables it is (page-table isolation). */
#define CR3_FLAGS (UINT64_C(1) << 63 | 0x1fff)

#define MAPS_MAX_REUSED 256u

struct maps_range {
	uint64_t start, end;
};

struct maps_process {
	uint32_t pid;
	uint64_t mm, program;	    /* as in its task */
	uint64_t space;		    /* its CR3 without CR3_FLAGS; 0: not known yet */
	struct guest_mapped mapped; /* as reported to the sink for this program */
	/*
	 * Ranges that had another mapping before, or whose mapping is gone, since the program
	 * began.
	 */
	struct maps_range *reused;
	size_t nreused, reused_cap;
	bool reused_all; /* there are too many to tell them apart */
	bool was_read;
	bool ended;	   /* it was gone at the last read: its remaining samples are late ones */
	uint64_t read_ns;  /* time of the sample for which they were last read */
	uint64_t retry_ns; /* no further read within this time */
	/* On the clock: the mappings existed at whole_ns, and were completely read at done_ns. */
	uint64_t whole_ns, done_ns;
};

struct guest_maps {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	const struct guest_tasks *tasks;
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct sink *sink;
	struct maps_process *process;
	size_t n, cap;
	struct idmap by_pid; /* index of its process */
	struct guest_mapped fresh;
	uint64_t retry_ns;
	guest_maps_clock clock;
	void *clock_ctx;
	struct guest_maps_stats stats;
};

static uint64_t maps_mono_ns(void *ctx)
{
	(void)ctx;
	return clock_mono_ns();
}

int guest_maps_create(struct guest_maps **out, const struct guest_maps_parts *parts, struct err *e)
{
	struct guest_maps *g = calloc(1, sizeof(*g));

	if (!g)
		return err_nomem(e);
	g->layout = parts->layout;
	g->memory = parts->memory;
	g->tasks = parts->tasks;
	g->dsos = parts->dsos;
	g->jit = parts->jit;
	g->sink = parts->sink;
	g->retry_ns = GUEST_MAPS_RETRY_NS;
	g->clock = maps_mono_ns;
	*out = g;
	return 0;
}

void guest_maps_set_retry(struct guest_maps *g, uint64_t ns)
{
	g->retry_ns = ns;
}

void guest_maps_set_clock(struct guest_maps *g, guest_maps_clock clock, void *ctx)
{
	g->clock = clock;
	g->clock_ctx = ctx;
}

static void forget_all(struct guest_maps *g)
{
	for (size_t i = 0; i < g->n; i++) {
		mapped_deinit(&g->process[i].mapped);
		free(g->process[i].reused);
	}
	g->n = 0;
	idmap_deinit(&g->by_pid);
}

void guest_maps_destroy(struct guest_maps *g)
{
	if (!g)
		return;
	forget_all(g);
	mapped_deinit(&g->fresh);
	free(g->process);
	free(g);
}

const struct guest_maps_stats *guest_maps_stats(const struct guest_maps *g)
{
	return &g->stats;
}

static struct maps_process *maps_add(struct guest_maps *g, uint32_t pid)
{
	if (g->n >= GUEST_MAPS_MAX_PROCESSES)
		forget_all(g);
	if (ARRAY_ROOM(g->process, g->n, g->cap))
		return NULL;
	if (idmap_set(&g->by_pid, pid, (uint32_t)g->n) < 0)
		return NULL;
	g->process[g->n] = (struct maps_process){ .pid = pid };
	return &g->process[g->n++];
}

static struct maps_process *maps_known(const struct guest_maps *g, const struct guest_task *task)
{
	struct maps_process *p;
	uint32_t i;

	if (!idmap_get(&g->by_pid, task->pid, &i))
		return NULL;
	p = &g->process[i];
	return p->mm == task->mm && p->program == task->program ? p : NULL;
}

struct guest_owner guest_maps_owner(const struct guest_maps *g, const struct guest_task *task)
{
	return (struct guest_owner){ .task = task, .maps = g && task ? maps_known(g, task) : NULL };
}

/*
 * Adds or resets the entry of a process, or of a new program of one. Returns NULL if out of memory.
 */
static struct maps_process *maps_enter(struct guest_maps *g, const struct guest_task *task)
{
	struct maps_process *p;
	uint32_t i;

	p = idmap_get(&g->by_pid, task->pid, &i) ? &g->process[i] : maps_add(g, task->pid);
	if (!p || (p->mm == task->mm && p->program == task->program))
		return p;
	/* A new process or program: the sink has dropped the earlier mappings. */
	g->stats.processes++;
	p->mm = task->mm;
	p->program = task->program;
	p->space = 0;
	p->mapped.vmas.n = 0;
	p->mapped.counted = false;
	p->was_read = p->ended = p->reused_all = false;
	p->nreused = 0;
	p->whole_ns = p->done_ns = 0;
	p->retry_ns = g->retry_ns;
	return p;
}

/* Returns what the sink knows of the owner's process, or NULL if out of memory. */
static struct maps_process *maps_of(struct guest_maps *g, struct guest_owner *owner)
{
	if (!owner->maps)
		owner->maps = maps_enter(g, owner->task);
	return owner->maps;
}

static struct guest_dso *dso_of(struct guest_maps *g, const struct maps_process *p, uint64_t cr3,
				const struct linux_vma *v, const char *name)
{
	if (v->file)
		return guest_dso_of_file(g->dsos, v->file, name);
	if (!strcmp(name, "[vdso]"))
		return guest_dso_of_vdso(g->dsos, p->mm, cr3);
	return NULL;
}

/*
 * Returns whether the program generated this code itself. Also true for memory that is mapped once
 * for writing and once for execution, as a file that no directory contains; name is as in
 * /proc/PID/maps, or "" if it could not be read.
 */
static bool is_made_at_run_time(const struct linux_vma *v, const struct guest_dso *dso,
				const char *name)
{
	if (!v->file)
		return !*name || !strcmp(name, "//anon");
	return !(dso && dso->named) &&
	       (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/dev/zero", 9));
}

/* For these names perf would read symbols from the host's /tmp/perf-PID.map. */
#define ANONYMOUS "[anonymous code]"

/* Follows is_anon_memory() and is_no_dso_memory() of perf's util/map.c. */
static bool is_anonymous_to_perf(const char *name)
{
	static const char *const start[] = { "//anon", "/dev/zero", "/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(start); i++)
		if (!strncmp(name, start[i], strlen(start[i])))
			return true;
	return false;
}

/* Replaces a mapping where it is unknown what was mapped. */
#define CHANGED "[changed mapping]"

/* *told: it was reported to the sink. Otherwise it is reported when it is seen again. */
static int maps_announce(struct guest_maps *g, const struct maps_process *p, const struct sample *s,
			 const struct linux_vma *v, bool *told, struct err *e)
{
	uint8_t name_id[GUEST_BUILD_ID];
	cleanup_free char *name = malloc(LINUX_PATH_MAX);
	struct profile_map map = {
		.pid = p->pid,
		.tid = p->pid,
		.addr = v->start,
		.len = v->end - v->start,
		.pgoff = v->file_off,
		.time_ns = s->time_ns,
		.prot = (v->flags & LINUX_VM_READ ? PROT_READ : 0) |
			(v->flags & LINUX_VM_WRITE ? PROT_WRITE : 0) | PROT_EXEC,
		.build_id = name_id,
	};
	struct guest_dso *dso;
	int ret;

	if (!name)
		return err_nomem(e);
	if (linux_vma_name(g->layout, g->memory, p->mm, v, name) != LINUX_OK || !*name)
		snprintf(name, LINUX_PATH_MAX, "%s", v->file ? "[unknown file]" : "");
	/* exec maps the vDSO first and stores its address later. */
	if (!v->file && (v->flags & LINUX_VM_DONTEXPAND) && !strcmp(name, "//anon"))
		return 0;
	*told = true;
	map.path = name;
	guest_dso_name_id(name_id, name);
	dso = dso_of(g, p, s->regs.cr3, v, name);
	if (is_made_at_run_time(v, dso, name))
		return guest_jit_map(g->jit, p->mm, &map, e);
	if (is_anonymous_to_perf(name)) {
		snprintf(name, LINUX_PATH_MAX, ANONYMOUS);
		guest_dso_name_id(name_id, name);
	}
	if (dso) {
		map.build_id = dso->build_id;
		map.elf = dso->elf;
		map.elf_len = dso->elf_len;
	}
	ret = g->sink->ops->map(g->sink, &map, e);
	if (!ret && dso)
		guest_dso_free_elf(dso);
	return ret;
}

/* -- ranges that are reused ----------------------------------------------------------- */

/* From now on a name is valid there only for the time for which it is proven. */
static void note_reused(struct maps_process *p, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < p->nreused; i++)
		if (p->reused[i].start <= start && end <= p->reused[i].end)
			return;
	if (p->nreused == MAPS_MAX_REUSED || ARRAY_ROOM(p->reused, p->nreused, p->reused_cap))
		p->reused_all = true;
	else
		p->reused[p->nreused++] = (struct maps_range){ start, end };
}

static bool is_reused(const struct maps_process *p, const struct linux_vma *v)
{
	for (size_t i = 0; i < p->nreused; i++)
		if (p->reused[i].start < v->end && v->start < p->reused[i].end)
			return true;
	return p->reused_all;
}

/*
 * Returns whether the mappings at the sample were those that were read; false as well if that
 * cannot be known.
 */
static bool is_of_state(const struct guest_mapped *m, const struct sample *s)
{
	return s->task.has_changes && m->counted && s->mm_changes == m->changes;
}

/* Discards what is known of this range of the process. */
static int forget_range(struct guest_maps *g, struct maps_process *p, uint64_t start, uint64_t end,
			uint64_t time_ns, struct err *e)
{
	uint8_t id[GUEST_BUILD_ID];
	const struct profile_map map = {
		.pid = p->pid,
		.tid = p->pid,
		.addr = start,
		.len = end - start,
		.time_ns = time_ns,
		.prot = PROT_READ | PROT_EXEC,
		.path = CHANGED,
		.build_id = id,
	};

	note_reused(p, start, end);
	guest_dso_name_id(id, CHANGED);
	return g->sink->ops->map(g->sink, &map, e);
}

/*
 * Withdraws what the sink was told of old mapping i and is no longer true. A file's symbols must
 * not stay; code without a file has its symbols by address, and stays until a file takes its place.
 */
static int forget_old(struct guest_maps *g, struct maps_process *p, size_t i, uint64_t time_ns,
		      struct err *e)
{
	const struct linux_vma *old = &p->mapped.vmas.v[i];
	uint64_t from = old->start;
	int ret = 0;

	if (!p->mapped.mark[i].told)
		return 0;
	for (size_t k = 0; k < g->fresh.vmas.n && !ret; k++) {
		const struct linux_vma *v = &g->fresh.vmas.v[k];
		uint64_t start = v->start > old->start ? v->start : old->start;
		uint64_t end = v->end < old->end ? v->end : old->end;
		bool agree;

		if (start >= end)
			continue;
		agree = mapped_agree(&p->mapped, i, &g->fresh, k);
		if (old->file && agree && start > from)
			ret = forget_range(g, p, from, start, time_ns, e);
		else if (!old->file && !agree)
			ret = forget_range(g, p, start, end, time_ns, e);
		if (agree)
			from = end;
	}
	if (!ret && old->file && from < old->end)
		ret = forget_range(g, p, from, old->end, time_ns, e);
	return ret;
}

/* The relation of fresh mapping k to the earlier ones. */
enum news {
	NEWS_NONE,  /* reported before */
	NEWS,	    /* nothing was in its place, or a part of it */
	NEWS_AGAIN, /* something was there earlier, and is gone */
	/* another mapping was there: a sample from before this was noticed may be of either */
	NEWS_OTHER,
};

static enum news news_of(const struct guest_maps *g, const struct maps_process *p, size_t k)
{
	const struct guest_mapped *m = &p->mapped;
	const struct linux_vma *v = &g->fresh.vmas.v[k];
	enum news news = NEWS;

	for (size_t i = 0; i < m->vmas.n && m->vmas.v[i].start < v->end; i++) {
		const struct linux_vma *old = &m->vmas.v[i];

		if (old->end <= v->start)
			continue;
		if (m->mark[i].told && !mapped_agree(m, i, &g->fresh, k))
			return NEWS_OTHER;
		if (m->mark[i].told && old->start == v->start && old->end == v->end &&
		    old->file_off == v->file_off)
			news = NEWS_NONE;
	}
	/* An earlier mapping there may have disappeared between two reads. */
	return news == NEWS && v->file && is_reused(p, v) ? NEWS_AGAIN : news;
}

/*
 * Fresh mapping k is old mapping i. It existed all the time if nothing has changed since; in a
 * reused range another mapping may have been there in between.
 */
static void keep_since(const struct guest_maps *g, const struct maps_process *p, size_t k)
{
	const struct guest_mapped *old = &p->mapped, *fresh = &g->fresh;
	const struct linux_vma *v = &fresh->vmas.v[k], *w = linux_vmas_find(&old->vmas, v->start);

	if (w && w->start == v->start && w->end == v->end && w->at == v->at && w->file == v->file &&
	    is_same_file(mapped_mark(old, w), &fresh->mark[k]) && old->counted == fresh->counted &&
	    (!fresh->counted || old->changes == fresh->changes))
		fresh->mark[k].since_ns = mapped_mark(old, w)->since_ns;
}

/* Reports the differences in the first `found` fresh mappings to the sink; the rest is kept. */
static int tell_news(struct guest_maps *g, struct maps_process *p, const struct sample *s,
		     size_t found, struct err *e)
{
	unsigned int n = 0;
	int ret = 0;

	for (size_t i = 0; i < p->mapped.vmas.n && !ret; i++)
		ret = forget_old(g, p, i, s->time_ns, e);
	for (size_t k = 0; k < found && !ret; k++) {
		struct guest_mark *mark = &g->fresh.mark[k];
		enum news news = news_of(g, p, k);

		mark->told = news == NEWS_NONE;
		n += news != NEWS_NONE;
		g->stats.changed += news == NEWS_OTHER;
		keep_since(g, p, k);
		if (news == NEWS ||
		    (news > NEWS && (s->time_ns >= mark->since_ns || is_of_state(&g->fresh, s))))
			ret = maps_announce(g, p, s, &g->fresh.vmas.v[k], &mark->told, e);
	}
	if (n)
		p->retry_ns = g->retry_ns;
	return ret;
}

/*
 * A walk that was cut short shows nothing of the mappings behind that point, which stay as they
 * were. But those that cannot be shown to exist may be others by now: their names must not stay.
 */
static int keep_rest(struct guest_maps *g, struct maps_process *p, uint64_t time_ns, struct err *e)
{
	struct guest_mapped *old = &p->mapped;
	uint64_t end = g->fresh.vmas.n ? g->fresh.vmas.v[g->fresh.vmas.n - 1].end : 0;
	bool same = mapped_unchanged(old, g->layout, g->memory, p->mm);
	int ret = 0;

	for (size_t i = 0; i < old->vmas.n && !same && !ret; i++) {
		const struct linux_vma *v = &old->vmas.v[i];

		if (v->start < end || !v->file || !old->mark[i].told ||
		    mapped_holds(old, g->layout, g->memory, p->mm, v))
			continue;
		old->mark[i].told = false;
		ret = forget_range(g, p, v->start, v->end, time_ns, e);
	}
	if (ret)
		return ret;
	if (!mapped_append(&g->fresh, old))
		return err_nomem(e);
	/* These are as old as this number of changes, not as the fresh ones. */
	g->fresh.counted = old->counted;
	g->fresh.changes = old->changes;
	return 0;
}

static int read_again(struct guest_maps *g, struct maps_process *p, const struct guest_task *task,
		      const struct sample *s, struct err *e)
{
	uint64_t begun = g->clock(g->clock_ctx);
	struct guest_mapped swap;
	enum linux_why why;
	size_t found;
	int ret;

	p->was_read = true;
	p->read_ns = s->time_ns;
	g->stats.reads++;
	why = mapped_read(&g->fresh, g->layout, g->memory, p->mm, begun);
	if (why != LINUX_OK) {
		g->stats.failed++;
		g->stats.why = linux_why_text(why);
	}
	/* A freed mm_struct is soon reused by another process. */
	if (!guest_tasks_has_mm(g->tasks, task)) {
		g->stats.failed += why == LINUX_OK;
		g->stats.why = "the process has ended";
		p->ended = true;
		return 0;
	}
	found = g->fresh.vmas.n;
	ret = why == LINUX_OK ? 0 : keep_rest(g, p, s->time_ns, e);
	if (why == LINUX_OK)
		p->whole_ns = begun;
	p->done_ns = g->clock(g->clock_ctx);
	ret = ret ? ret : tell_news(g, p, s, found, e);
	swap = p->mapped;
	p->mapped = g->fresh;
	g->fresh = swap;
	return ret;
}

/* Most frames of a stack lie in the same mapping as the frame before; NULL: there was none. */
static const struct linux_vma *vma_near(const struct linux_vmas *s, const struct linux_vma *before,
					uint64_t va)
{
	return before && va - before->start < before->end - before->start ? before
									  : linux_vmas_find(s, va);
}

/*
 * Returns whether the sample is later than what is known of the mappings its frames lie in, and
 * these have changed. Samples come in batches: one check serves all samples that were taken before
 * it.
 */
static bool has_changed(const struct guest_maps *g, struct maps_process *p, const struct sample *s,
			const uint64_t *ip, unsigned int n)
{
	const uint64_t time_ns = s->time_ns;
	const struct linux_vma *v = NULL;
	struct guest_mark *mark;
	uint64_t begun;

	if (time_ns <= p->whole_ns || p->ended || is_of_state(&p->mapped, s))
		return false;
	begun = g->clock(g->clock_ctx);
	if (mapped_unchanged(&p->mapped, g->layout, g->memory, p->mm)) {
		p->whole_ns = begun;
		return false;
	}
	for (unsigned int i = 0; i < n; i++) {
		v = vma_near(&p->mapped.vmas, v, ip[i]);
		mark = v ? mapped_mark(&p->mapped, v) : NULL;
		if (!mark || time_ns <= mark->checked_ns)
			continue;
		/* Finding a mapping again proves nothing where others had its place. */
		if ((p->mapped.counted && is_reused(p, v)) ||
		    !mapped_holds(&p->mapped, g->layout, g->memory, p->mm, v))
			return true;
		mark->checked_ns = begun;
	}
	return false;
}

/* The number of a sample's frames in no mapping, and in mappings that were not reported. */
struct maps_placed {
	unsigned int unmapped, untold;
};

static struct maps_placed place_frames(const struct maps_process *p, const uint64_t *ip,
				       unsigned int n)
{
	const struct linux_vma *v = NULL;
	struct maps_placed is = { 0, 0 };

	for (unsigned int i = 0; i < n; i++) {
		v = vma_near(&p->mapped.vmas, v, ip[i]);
		is.unmapped += !v;
		is.untold += v && v->file && !mapped_mark(&p->mapped, v)->told;
	}
	return is;
}

/* Returns whether the mappings are to be read for this sample. */
static bool is_due(struct guest_maps *g, struct maps_process *p, const struct sample *s,
		   const uint64_t *ip, unsigned int n, const struct maps_placed *is)
{
	const uint64_t time_ns = s->time_ns;
	bool known = !is->unmapped;
	uint64_t age, enough;

	if (!p->was_read)
		return true;
	/* Samples of several vCPUs may be slightly out of order. */
	age = time_ns > p->read_ns ? time_ns - p->read_ns : 0;
	enough = known ? GUEST_MAPS_REFRESH_NS : p->retry_ns;
	if (age > enough) {
		/* Each sample of a broken stack has addresses that are mapped nowhere. */
		if (!known && p->retry_ns < GUEST_MAPS_REFRESH_NS)
			p->retry_ns *= 2;
		return true;
	}
	/* A mapping that had replaced another one when this was noticed is certain now. */
	return (is->untold && time_ns > p->done_ns) || has_changed(g, p, s, ip, n);
}

/*
 * Removes the names from mappings in reused ranges that are not proven for the time of the sample.
 */
static int doubt_frames(struct guest_maps *g, struct maps_process *p, const struct sample *s,
			const uint64_t *ip, unsigned int n, struct err *e)
{
	const struct linux_vma *v = NULL;
	int ret = 0;

	if ((!p->nreused && !p->reused_all) || is_of_state(&p->mapped, s))
		return 0;
	for (unsigned int i = 0; i < n && !ret; i++) {
		struct guest_mark *mark;

		v = vma_near(&p->mapped.vmas, v, ip[i]);
		mark = v ? mapped_mark(&p->mapped, v) : NULL;
		if (!mark || !mark->told || !v->file || s->time_ns >= mark->since_ns ||
		    !is_reused(p, v))
			continue;
		mark->told = false;
		ret = forget_range(g, p, v->start, v->end, s->time_ns, e);
	}
	return ret;
}

int guest_maps_update(struct guest_maps *g, struct guest_owner *owner, const struct sample *s,
		      const uint64_t *ip, unsigned int n, struct err *e)
{
	struct maps_process *p = maps_of(g, owner);
	struct maps_placed is;
	int ret = 0;

	if (!p)
		return err_nomem(e);
	is = place_frames(p, ip, n);
	if (is_due(g, p, s, ip, n, &is))
		ret = read_again(g, p, owner->task, s, e);
	ret = ret ? ret : doubt_frames(g, p, s, ip, n, e);
	is = place_frames(p, ip, n);
	g->stats.frames += n;
	g->stats.unmapped += is.unmapped;
	g->stats.doubtful += is.untold;
	return ret;
}

const struct linux_vma *guest_maps_at(const struct guest_owner *owner, uint64_t va,
				      struct guest_mark **mark)
{
	const struct guest_mapped *m = owner->maps ? &owner->maps->mapped : NULL;
	const struct linux_vma *v = m ? linux_vmas_find(&m->vmas, va) : NULL;

	if (v)
		*mark = mapped_mark(m, v);
	return v;
}

bool guest_maps_owns(struct guest_maps *g, struct guest_owner *owner, const struct sample *s)
{
	const uint64_t space = s->regs.cr3 & ~CR3_FLAGS;
	struct maps_process *p = owner->task->mm ? maps_of(g, owner) : NULL;
	bool owns;

	if (p && s->mode == SAMPLE_USER)
		p->space = space;
	owns = p && (!p->space || p->space == space);
	g->stats.foreign += !owns;
	return owns;
}
