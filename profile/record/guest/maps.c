/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/maps.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/idmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A PCID, and which half of a pair of tables it is (page-table isolation). */
#define CR3_FLAGS (UINT64_C(1) << 63 | 0x1fff)

struct process {
	uint32_t pid;
	uint64_t mm, program;	    /* as in its task */
	uint64_t space;		    /* its CR3 without CR3_FLAGS; 0: not known yet */
	struct guest_mapped mapped; /* since the sink heard of this program */
	bool was_read;
	bool ended;	   /* at the last look it was gone: its samples are late ones */
	uint64_t read_ns;  /* the sample for which it was tried last */
	uint64_t retry_ns; /* how long that is enough */
	/* On the host's clock: all was so at the first, and read completely at the second. */
	uint64_t whole_ns, done_ns;
};

struct guest_maps {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	const struct guest_tasks *tasks;
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct sink *sink;
	struct process *process;
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
		return err_set(e, ENOMEM, "out of memory");
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
	for (size_t i = 0; i < g->n; i++)
		guest_mapped_deinit(&g->process[i].mapped);
	g->n = 0;
	idmap_deinit(&g->by_pid);
}

void guest_maps_destroy(struct guest_maps *g)
{
	if (!g)
		return;
	forget_all(g);
	guest_mapped_deinit(&g->fresh);
	free(g->process);
	free(g);
}

const struct guest_maps_stats *guest_maps_stats(const struct guest_maps *g)
{
	return &g->stats;
}

static struct process *maps_add(struct guest_maps *g, uint32_t pid)
{
	if (g->n >= GUEST_MAPS_MAX_PROCESSES)
		forget_all(g);
	if (ARRAY_ROOM(g->process, g->n, g->cap))
		return NULL;
	if (idmap_set(&g->by_pid, pid, (uint32_t)g->n) < 0)
		return NULL;
	g->process[g->n] = (struct process){ .pid = pid };
	return &g->process[g->n++];
}

/* What the sink knows of this task's process; NULL: no memory. */
static struct process *maps_find(struct guest_maps *g, const struct guest_task *task)
{
	struct process *p;
	uint32_t i;

	p = idmap_get(&g->by_pid, task->pid, &i) ? &g->process[i] : maps_add(g, task->pid);
	if (!p || (p->mm == task->mm && p->program == task->program))
		return p;
	/* Another process or program: the sink has forgotten what there was. */
	g->stats.processes++;
	p->mm = task->mm;
	p->program = task->program;
	p->space = 0;
	p->mapped.vmas.n = 0;
	p->mapped.counted = false;
	p->was_read = p->ended = false;
	p->whole_ns = p->done_ns = 0;
	p->retry_ns = g->retry_ns;
	return p;
}

static struct guest_dso *dso_of(struct guest_maps *g, const struct process *p, uint64_t cr3,
				const struct linux_vma *v, const char *name)
{
	if (v->file)
		return guest_dso_of_file(g->dsos, v->file, name);
	if (!strcmp(name, "[vdso]"))
		return guest_dso_of_vdso(g->dsos, p->mm, cr3);
	return NULL;
}

/*
 * Was it made by the program itself? Also in memory that is mapped once for writing
 * and once for execution, as a file that no directory knows; name is as in
 * /proc/PID/maps, or "" when it could not be read.
 */
static bool is_made_at_run_time(const struct linux_vma *v, const struct guest_dso *dso,
				const char *name)
{
	if (!v->file)
		return !*name || !strcmp(name, "//anon");
	return !(dso && dso->named) &&
	       (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/dev/zero", 9));
}

/* perf would look for names in the host's /tmp/perf-PID.map under these. */
#define ANONYMOUS "[anonymous code]"

/* As is_anon_memory() and is_no_dso_memory() of perf's util/map.c have it. */
static bool is_anonymous_to_perf(const char *name)
{
	static const char *const start[] = { "//anon", "/dev/zero", "/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(start); i++)
		if (!strncmp(name, start[i], strlen(start[i])))
			return true;
	return false;
}

/* Over what may have been mapped there, where that isn't known. */
#define CHANGED "[changed mapping]"

/* *told: the sink knows it. Else it is told when it is seen again. */
static int maps_announce(struct guest_maps *g, const struct process *p, const struct sample *s,
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
		return err_set(e, ENOMEM, "out of memory");
	if (linux_vma_name(g->layout, g->memory, p->mm, v, name) != LINUX_OK || !*name)
		snprintf(name, LINUX_PATH_MAX, "%s", v->file ? "[unknown file]" : "");
	/* exec maps the vDSO first and says afterwards where that is. */
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
		guest_dso_told(dso);
	return ret;
}

/* From now on nothing is known of this part of the process. */
static int forget_range(struct guest_maps *g, const struct process *p, uint64_t start, uint64_t end,
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

	guest_dso_name_id(id, CHANGED);
	return g->sink->ops->map(g->sink, &map, e);
}

/*
 * What the sink was told of the i-th old mapping and isn't so any more. A file's names
 * must not stay; code without a file has its names by address, and stays what it is
 * until a file takes its place.
 */
static int forget_old(struct guest_maps *g, const struct process *p, size_t i, uint64_t time_ns,
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
		agree = guest_mapped_agree(&p->mapped, i, &g->fresh, k);
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

/* What is known of the k-th fresh mapping from what there was. */
enum news {
	NEWS_NONE,  /* told before */
	NEWS,	    /* there was nothing in its place, or a part of it */
	NEWS_OTHER, /* there was another: a sample from before it was noticed may be of either */
};

static enum news news_of(const struct guest_maps *g, const struct process *p, size_t k)
{
	const struct guest_mapped *m = &p->mapped;
	const struct linux_vma *v = &g->fresh.vmas.v[k];
	enum news news = NEWS;

	for (size_t i = 0; i < m->vmas.n && m->vmas.v[i].start < v->end; i++) {
		const struct linux_vma *old = &m->vmas.v[i];

		if (old->end <= v->start)
			continue;
		if (m->mark[i].told && !guest_mapped_agree(m, i, &g->fresh, k))
			return NEWS_OTHER;
		if (m->mark[i].told && old->start == v->start && old->end == v->end &&
		    old->file_off == v->file_off)
			news = NEWS_NONE;
	}
	return news;
}

/* Tell the sink what is different in the first `found` fresh mappings; the rest is kept. */
static int tell_news(struct guest_maps *g, struct process *p, const struct sample *s, size_t found,
		     struct err *e)
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
		if (news == NEWS || (news == NEWS_OTHER && s->time_ns > p->done_ns))
			ret = maps_announce(g, p, s, &g->fresh.vmas.v[k], &mark->told, e);
	}
	if (n)
		p->retry_ns = g->retry_ns;
	return ret;
}

/*
 * A walk that broke off tells nothing of what lies behind, which stays as it was. But what
 * cannot be shown to be there still may be another by now: its names must not stay.
 */
static int keep_rest(struct guest_maps *g, struct process *p, uint64_t time_ns, struct err *e)
{
	struct guest_mapped *old = &p->mapped;
	uint64_t end = g->fresh.vmas.n ? g->fresh.vmas.v[g->fresh.vmas.n - 1].end : 0;
	bool same = guest_mapped_unchanged(old, g->layout, g->memory, p->mm);
	int ret = 0;

	for (size_t i = 0; i < old->vmas.n && !same && !ret; i++) {
		const struct linux_vma *v = &old->vmas.v[i];

		if (v->start < end || !v->file || !old->mark[i].told ||
		    guest_mapped_holds(old, g->layout, g->memory, p->mm, v))
			continue;
		old->mark[i].told = false;
		ret = forget_range(g, p, v->start, v->end, time_ns, e);
	}
	if (ret)
		return ret;
	if (!guest_mapped_append(&g->fresh, old))
		return err_set(e, ENOMEM, "out of memory");
	/* They are as old as this number, not as the fresh ones. */
	g->fresh.counted = old->counted;
	g->fresh.changes = old->changes;
	return 0;
}

static int read_again(struct guest_maps *g, struct process *p, const struct guest_task *task,
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
	why = guest_mapped_read(&g->fresh, g->layout, g->memory, p->mm, begun);
	if (why != LINUX_OK) {
		g->stats.failed++;
		g->stats.why = linux_why_text(why);
	}
	/* An mm that was given back is soon another process's. */
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

/* A stack's frames mostly lie in the mapping that the one before lies in; NULL: there was none. */
static const struct linux_vma *vma_near(const struct linux_vmas *s, const struct linux_vma *before,
					uint64_t va)
{
	return before && va - before->start < before->end - before->start ? before
									  : linux_vmas_find(s, va);
}

/*
 * Is the sample later than what is known of the mappings its frames lie in, and are they
 * others now? Samples come in batches: one look is enough for all those taken before it.
 */
static bool has_changed(const struct guest_maps *g, struct process *p, uint64_t time_ns,
			const uint64_t *ip, unsigned int n)
{
	const struct linux_vma *v = NULL;
	struct guest_mark *mark;
	uint64_t begun;

	if (time_ns <= p->whole_ns || p->ended)
		return false;
	begun = g->clock(g->clock_ctx);
	if (guest_mapped_unchanged(&p->mapped, g->layout, g->memory, p->mm)) {
		p->whole_ns = begun;
		return false;
	}
	for (unsigned int i = 0; i < n; i++) {
		v = vma_near(&p->mapped.vmas, v, ip[i]);
		mark = v ? guest_mapped_mark(&p->mapped, v) : NULL;
		if (!mark || time_ns <= mark->checked_ns)
			continue;
		if (!guest_mapped_holds(&p->mapped, g->layout, g->memory, p->mm, v))
			return true;
		mark->checked_ns = begun;
	}
	return false;
}

/* What is known of a sample's frames: how many lie in no mapping, and in one that is not told. */
struct placed {
	unsigned int unmapped, untold;
};

static struct placed place_frames(const struct process *p, const uint64_t *ip, unsigned int n)
{
	const struct linux_vma *v = NULL;
	struct placed is = { 0, 0 };

	for (unsigned int i = 0; i < n; i++) {
		v = vma_near(&p->mapped.vmas, v, ip[i]);
		is.unmapped += !v;
		is.untold += v && v->file && !guest_mapped_mark(&p->mapped, v)->told;
	}
	return is;
}

/* Are the mappings to be read for this sample? */
static bool is_due(struct guest_maps *g, struct process *p, uint64_t time_ns, const uint64_t *ip,
		   unsigned int n, const struct placed *is)
{
	bool known = !is->unmapped;
	uint64_t age, enough;

	if (!p->was_read)
		return true;
	/* Samples of several vCPUs may be a little out of order. */
	age = time_ns > p->read_ns ? time_ns - p->read_ns : 0;
	enough = known ? GUEST_MAPS_REFRESH_NS : p->retry_ns;
	if (age > enough) {
		/* Addresses that are mapped nowhere come with each sample of a broken stack. */
		if (!known && p->retry_ns < GUEST_MAPS_REFRESH_NS)
			p->retry_ns *= 2;
		return true;
	}
	/* What had taken another's place when it was noticed is certain now. */
	return (is->untold && time_ns > p->done_ns) || has_changed(g, p, time_ns, ip, n);
}

int guest_maps_see(struct guest_maps *g, const struct guest_task *task, const struct sample *s,
		   const uint64_t *ip, unsigned int n, struct err *e)
{
	struct process *p = maps_find(g, task);
	struct placed is;
	int ret = 0;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	is = place_frames(p, ip, n);
	if (is_due(g, p, s->time_ns, ip, n, &is)) {
		ret = read_again(g, p, task, s, e);
		is = place_frames(p, ip, n);
	}
	g->stats.frames += n;
	g->stats.unmapped += is.unmapped;
	g->stats.doubtful += is.untold;
	return ret;
}

const struct linux_vma *guest_maps_at(const struct guest_maps *g, const struct guest_task *task,
				      uint64_t va, struct guest_mark **mark)
{
	const struct linux_vma *v;
	const struct process *p;
	uint32_t i;

	if (!idmap_get(&g->by_pid, task->pid, &i))
		return NULL;
	p = &g->process[i];
	if (p->mm != task->mm || p->program != task->program)
		return NULL;
	v = linux_vmas_find(&p->mapped.vmas, va);
	if (v)
		*mark = guest_mapped_mark(&p->mapped, v);
	return v;
}

bool guest_maps_owns(struct guest_maps *g, const struct guest_task *task, const struct sample *s)
{
	const uint64_t space = s->regs.cr3 & ~CR3_FLAGS;
	struct process *p = task->mm ? maps_find(g, task) : NULL;
	bool owns;

	if (p && s->mode == SAMPLE_USER)
		p->space = space;
	owns = p && (!p->space || p->space == space);
	g->stats.foreign += !owns;
	return owns;
}
