/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/live/maps.h"

#include "base/cleanup.h"
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
	uint64_t mm, program;	/* as in its task */
	uint64_t space;		/* its CR3 without CR3_FLAGS; 0: not known yet */
	struct linux_vmas vmas; /* announced since the sink heard of this program */
	bool was_read;
	uint64_t read_ns;  /* when it was tried last */
	uint64_t retry_ns; /* how long that is enough */
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
	struct linux_vmas fresh;
	struct guest_maps_stats stats;
};

int guest_maps_create(struct guest_maps **out, const struct linux_mm_layout *layout,
		      const struct memory *memory, const struct guest_tasks *tasks,
		      struct guest_dsos *dsos, struct guest_jit *jit, struct sink *sink,
		      struct err *e)
{
	struct guest_maps *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ENOMEM, "out of memory");
	g->layout = layout;
	g->memory = memory;
	g->tasks = tasks;
	g->dsos = dsos;
	g->jit = jit;
	g->sink = sink;
	*out = g;
	return 0;
}

static void forget_all(struct guest_maps *g)
{
	for (size_t i = 0; i < g->n; i++)
		linux_vmas_deinit(&g->process[i].vmas);
	g->n = 0;
	idmap_deinit(&g->by_pid);
}

void guest_maps_destroy(struct guest_maps *g)
{
	if (!g)
		return;
	forget_all(g);
	linux_vmas_deinit(&g->fresh);
	free(g->process);
	free(g);
}

const struct guest_maps_stats *guest_maps_stats(const struct guest_maps *g)
{
	return &g->stats;
}

static struct process *add(struct guest_maps *g, uint32_t pid)
{
	if (g->n >= GUEST_MAPS_MAX_PROCESSES)
		forget_all(g);
	if (g->n == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 64;
		struct process *grown = reallocarray(g->process, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		g->process = grown;
		g->cap = cap;
	}
	if (idmap_set(&g->by_pid, pid, (uint32_t)g->n) < 0)
		return NULL;
	g->process[g->n] = (struct process){ .pid = pid };
	return &g->process[g->n++];
}

/* What the sink knows of this task's process; NULL: no memory. */
static struct process *find(struct guest_maps *g, const struct guest_task *task)
{
	struct process *p;
	uint32_t i;

	p = idmap_get(&g->by_pid, task->pid, &i) ? &g->process[i] : add(g, task->pid);
	if (!p || (p->mm == task->mm && p->program == task->program))
		return p;
	/* Another process or program: the sink has forgotten what there was. */
	g->stats.processes++;
	p->mm = task->mm;
	p->program = task->program;
	p->space = 0;
	p->vmas.n = 0;
	p->was_read = false;
	p->retry_ns = GUEST_MAPS_RETRY_NS;
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

/* No mapping has this offset: it is told when it is seen again. */
#define UNTOLD UINT64_MAX

static int announce(struct guest_maps *g, struct process *p, uint64_t cr3, struct linux_vma *v,
		    uint64_t time_ns, struct err *e)
{
	uint8_t name_id[GUEST_BUILD_ID];
	cleanup_free char *name = malloc(LINUX_PATH_MAX);
	struct profile_map map = {
		.pid = p->pid,
		.tid = p->pid,
		.addr = v->start,
		.len = v->end - v->start,
		.pgoff = v->file_off,
		.time_ns = time_ns,
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
	if (!v->file && (v->flags & LINUX_VM_DONTEXPAND) && !strcmp(name, "//anon")) {
		v->file_off = UNTOLD;
		return 0;
	}
	map.path = name;
	guest_dso_name_id(name_id, name);
	dso = dso_of(g, p, cr3, v, name);
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

static bool is_same(const struct linux_vma *a, const struct linux_vma *b)
{
	return a->start == b->start && a->end == b->end && a->file_off == b->file_off &&
	       a->file == b->file;
}

/* A walk that broke off tells nothing of what lies behind: it stays as it was. */
static bool keep_rest(struct linux_vmas *fresh, const struct linux_vmas *old)
{
	uint64_t end = fresh->n ? fresh->v[fresh->n - 1].end : 0;
	size_t i = 0;

	while (i < old->n && old->v[i].start < end)
		i++;
	if (fresh->cap < fresh->n + old->n - i) {
		size_t cap = fresh->n + old->n - i;
		struct linux_vma *grown = reallocarray(fresh->v, cap, sizeof(*grown));

		if (!grown)
			return false;
		fresh->v = grown;
		fresh->cap = cap;
	}
	if (i < old->n)
		memcpy(fresh->v + fresh->n, old->v + i, (old->n - i) * sizeof(*old->v));
	fresh->n += old->n - i;
	return true;
}

static int read_again(struct guest_maps *g, struct process *p, const struct guest_task *task,
		      uint64_t cr3, uint64_t time_ns, struct err *e)
{
	struct linux_vmas swap;
	unsigned int news = 0;
	enum linux_why why;
	int ret = 0;

	p->was_read = true;
	p->read_ns = time_ns;
	g->stats.reads++;
	why = linux_mm_vmas(g->layout, g->memory, p->mm, LINUX_VM_EXEC, &g->fresh);
	if (why != LINUX_OK) {
		g->stats.failed++;
		g->stats.why = linux_why_text(why);
	}
	/* An mm that was given back is soon another process's. */
	if (!guest_tasks_has_mm(g->tasks, task)) {
		g->stats.failed += why == LINUX_OK;
		g->stats.why = "the process has ended";
		return 0;
	}
	if (why != LINUX_OK && !keep_rest(&g->fresh, &p->vmas))
		return err_set(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < g->fresh.n && !ret; i++) {
		struct linux_vma *v = &g->fresh.v[i];
		const struct linux_vma *old = linux_vmas_find(&p->vmas, v->start);

		if (old && is_same(old, v))
			continue;
		news++;
		ret = announce(g, p, cr3, v, time_ns, e);
	}
	if (news)
		p->retry_ns = GUEST_MAPS_RETRY_NS;
	swap = p->vmas;
	p->vmas = g->fresh;
	g->fresh = swap;
	return ret;
}

int guest_maps_see(struct guest_maps *g, const struct guest_task *task, uint64_t cr3,
		   uint64_t time_ns, const uint64_t *ip, unsigned int n, struct err *e)
{
	struct process *p = find(g, task);
	bool known = true;
	uint64_t age, enough;
	int ret = 0;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	for (unsigned int i = 0; i < n; i++)
		known &= linux_vmas_find(&p->vmas, ip[i]) != NULL;
	/* Samples of several vCPUs may be a little out of order. */
	age = time_ns > p->read_ns ? time_ns - p->read_ns : 0;
	enough = known ? GUEST_MAPS_REFRESH_NS : p->retry_ns;
	if (!p->was_read || age > enough) {
		/* Addresses that are mapped nowhere come with each sample of a broken stack. */
		if (!known && p->was_read && p->retry_ns < GUEST_MAPS_REFRESH_NS)
			p->retry_ns *= 2;
		ret = read_again(g, p, task, cr3, time_ns, e);
	}
	for (unsigned int i = 0; i < n; i++) {
		g->stats.frames++;
		g->stats.unmapped += !linux_vmas_find(&p->vmas, ip[i]);
	}
	return ret;
}

bool guest_maps_owns(struct guest_maps *g, const struct guest_task *task, uint64_t cr3, bool user)
{
	struct process *p = task->mm ? find(g, task) : NULL;
	bool owns;

	if (p && user)
		p->space = cr3 & ~CR3_FLAGS;
	owns = p && (!p->space || p->space == (cr3 & ~CR3_FLAGS));
	g->stats.foreign += !owns;
	return owns;
}
