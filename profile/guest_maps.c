/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/guest_maps.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct process {
	uint32_t pid;
	uint64_t mm;
	struct linux_vmas vmas; /* announced */
	uint64_t read_ns;	/* when they were read last */
};

struct guest_maps {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct sink *sink;
	struct process *process;
	size_t n, cap;
	struct linux_vmas fresh;
	struct guest_maps_stats stats;
};

int guest_maps_create(struct guest_maps **out, const struct linux_mm_layout *layout,
		      const struct memory *memory, struct guest_dsos *dsos, struct guest_jit *jit,
		      struct sink *sink, struct err *e)
{
	struct guest_maps *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ENOMEM, "out of memory");
	g->layout = layout;
	g->memory = memory;
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

/* The newest first: a pid's last program is the one that runs. */
static struct process *find(struct guest_maps *g, uint32_t pid, uint64_t mm)
{
	for (size_t i = g->n; i-- > 0;)
		if (g->process[i].pid == pid && g->process[i].mm == mm)
			return &g->process[i];
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
	g->process[g->n] = (struct process){ .pid = pid, .mm = mm };
	g->stats.processes++;
	return &g->process[g->n++];
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
	return !(dso && dso->elf) && (!strncmp(name, "/memfd:", 7) || !strcmp(name, "/dev/zero"));
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
	if (dso) {
		map.build_id = dso->build_id;
		map.elf = dso->told ? NULL : dso->elf;
		map.elf_len = map.elf ? dso->elf_len : 0;
	}
	ret = g->sink->ops->map(g->sink, &map, e);
	if (!ret && dso)
		dso->told = true;
	return ret;
}

static bool is_same(const struct linux_vma *a, const struct linux_vma *b)
{
	return a->start == b->start && a->end == b->end && a->file_off == b->file_off &&
	       a->file == b->file;
}

static int read_again(struct guest_maps *g, struct process *p, uint64_t cr3, uint64_t time_ns,
		      struct err *e)
{
	enum linux_why why;
	int ret = 0;

	p->read_ns = time_ns;
	g->stats.reads++;
	why = linux_mm_vmas(g->layout, g->memory, p->mm, LINUX_VM_EXEC, &g->fresh);
	if (why != LINUX_OK) {
		g->stats.failed++;
		g->stats.why = linux_why_text(why);
	}
	/* What was found until then is in order, but not all: it adds, and takes nothing. */
	for (size_t i = 0; i < g->fresh.n && !ret; i++) {
		struct linux_vma *v = &g->fresh.v[i];
		const struct linux_vma *old = linux_vmas_find(&p->vmas, v->start);

		if (!old || !is_same(old, v))
			ret = announce(g, p, cr3, v, time_ns, e);
	}
	if (why == LINUX_OK || g->fresh.n) {
		struct linux_vmas swap = p->vmas;

		p->vmas = g->fresh;
		g->fresh = swap;
	}
	return ret;
}

int guest_maps_see(struct guest_maps *g, uint32_t pid, uint64_t mm, uint64_t cr3, uint64_t time_ns,
		   const uint64_t *ip, unsigned int n, struct err *e)
{
	struct process *p = find(g, pid, mm);
	bool known = true;
	int ret = 0;

	if (!p)
		return err_set(e, ENOMEM, "out of memory");
	for (unsigned int i = 0; i < n; i++)
		known &= linux_vmas_find(&p->vmas, ip[i]) != NULL;
	if (!p->read_ns || time_ns - p->read_ns > GUEST_MAPS_REFRESH_NS ||
	    (!known && time_ns - p->read_ns > GUEST_MAPS_RETRY_NS))
		ret = read_again(g, p, cr3, time_ns, e);
	for (unsigned int i = 0; i < n; i++) {
		g->stats.frames++;
		g->stats.unmapped += !linux_vmas_find(&p->vmas, ip[i]);
	}
	return ret;
}
