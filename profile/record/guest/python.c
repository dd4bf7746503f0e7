/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/python.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "symbolizer/program/userelf.h"
#include "symbolizer/python/python_layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROGRAMS 65536u
#define ASKED 1024u /* threads that were examined recently */

/* Whether a file contains the interpreter. */
struct python_file {
	enum { FILE_NEW, FILE_WITHOUT, FILE_WITH } state;
	/* distance of the variable from the address of file offset 0, as its code is mapped */
	uint64_t runtime;
	uint64_t tried_ns;
};

/* One program in one process. */
struct python_process {
	uint32_t pid;
	uint64_t mm, program;
	enum { PROCESS_NEW, PROCESS_RUNS, PROCESS_KNOWN, PROCESS_FOREIGN } state;
	uint64_t runtime;
	unsigned int layout;
	uint64_t tried_ns;
	bool told; /* the sink has its map */
};

struct asked {
	uint64_t mm, fs_base, time_ns;
};

struct guest_python {
	struct guest_python_parts p;
	struct python_names *names;
	struct python_file *file; /* by dso number */
	size_t nfiles;
	struct python_process *process;
	size_t n, cap;
	struct idmap by_pid;
	struct python_layout layout[CAPTURE_PYTHON_LAYOUTS];
	unsigned int nlayouts;
	struct asked asked[ASKED];
	struct guest_python_stats stats;
};

int guest_python_create(struct guest_python **out, const struct guest_python_parts *parts,
			struct err *e)
{
	struct guest_python *g = calloc(1, sizeof(*g));
	int ret;

	if (!g)
		return err_nomem(e);
	g->p = *parts;
	ret = python_names_create(&g->names, e);
	if (ret) {
		free(g);
		return ret;
	}
	*out = g;
	return 0;
}

void guest_python_destroy(struct guest_python *g)
{
	if (!g)
		return;
	python_names_destroy(g->names);
	idmap_deinit(&g->by_pid);
	free(g->file);
	free(g->process);
	free(g);
}

void guest_python_stats(const struct guest_python *g, struct guest_python_stats *out)
{
	*out = g->stats;
	out->names = *python_names_stats(g->names);
}

int guest_python_finish(struct guest_python *g, struct err *e)
{
	return python_names_finish(g->names, g->p.sink, e);
}

/* -- which programs run Python --------------------------------------------------------- */

/* Returns false if out of memory. */
static bool runtime_in(const struct file_source *src, uint64_t code_off, struct python_file *f)
{
	struct userelf u;
	struct err e = { 0 };
	uint64_t va, code;
	int ret = userelf_open(&u, "", src, &e);

	ret = ret ? ret : userelf_object(&u, "_PyRuntime", &va);
	if (ret == -ENODATA)
		return false;
	f->state = FILE_WITHOUT;
	if (ret == 0 && userelf_va_of(&u, code_off, &code)) {
		f->state = FILE_WITH;
		f->runtime = va - code + code_off;
	}
	return true;
}

static void look_into(struct guest_python *g, struct python_file *f, const struct guest_dso *dso,
		      const struct linux_vma *v)
{
	struct linux_file pages;
	struct file_source src;
	struct userfile host = { 0 };
	struct file_bytes bytes;

	if (guest_dso_pages(g->p.dsos, dso, v->file, &pages)) {
		src = (struct file_source){ linux_file_read_cb, &pages, linux_file_size(&pages) };
		if (runtime_in(&src, v->file_off, f))
			return;
	}
	if (!guest_dso_open_on_host(g->p.dsos, dso, GUEST_DSO_PROGRAM, &host))
		return;
	bytes = (struct file_bytes){ host.map.data, host.map.len };
	src = filepiece_source_of_bytes(&bytes);
	(void)runtime_in(&src, v->file_off, f);
	userfile_close(&host);
}

/*
 * Returns whether the mapping at ip is of a file with the interpreter; *out is then the address of
 * its variable.
 */
static bool runtime_near(struct guest_python *g, const struct guest_owner *owner, uint64_t ip,
			 uint64_t now_ns, uint64_t *out)
{
	struct guest_mark *mark;
	const struct linux_vma *v = guest_maps_at(owner, ip, &mark);
	const struct guest_dso *dso;
	struct python_file *f;

	if (!v || !v->file)
		return false;
	dso = mark->dso ? guest_dsos_at(g->p.dsos, mark->dso - 1)
			: guest_dso_find(g->p.dsos, &mark->file);
	if (!dso || ARRAY_FIT_ZERO(g->file, dso->number + 1u, g->nfiles))
		return false;
	f = &g->file[dso->number];
	if (f->state == FILE_NEW && clock_is_due(now_ns, f->tried_ns, GUEST_PYTHON_RETRY_NS)) {
		f->tried_ns = now_ns;
		look_into(g, f, dso, v);
	}
	*out = v->start - v->file_off + f->runtime;
	return f->state == FILE_WITH;
}

/*
 * Returns what is known of the task's program, or NULL if out of memory or if there are too many.
 */
static struct python_process *process_of(struct guest_python *g, const struct guest_task *task)
{
	struct python_process *p;
	uint32_t i;

	if (idmap_get(&g->by_pid, task->pid, &i)) {
		p = &g->process[i];
	} else {
		if (g->n >= MAX_PROGRAMS) {
			idmap_deinit(&g->by_pid);
			g->n = 0;
		}
		if (ARRAY_ROOM(g->process, g->n, g->cap) ||
		    idmap_set(&g->by_pid, task->pid, (uint32_t)g->n) < 0)
			return NULL;
		p = &g->process[g->n++];
		*p = (struct python_process){ .pid = task->pid };
	}
	if (p->mm != task->mm || p->program != task->program)
		*p = (struct python_process){ .pid = task->pid,
					      .mm = task->mm,
					      .program = task->program };
	return p;
}

static struct python_program program_of(const struct guest_python *g,
					const struct python_process *p, const struct sample *s)
{
	return (struct python_program){
		.memory = g->p.memory,
		.space = s->regs.cr3,
		.runtime = p->runtime,
	};
}

/* -- layouts --------------------------------------------------------------------------- */

static struct capture_python_layout plan_of(const struct python_layout *l)
{
	struct capture_python_layout c = {
		.thread_id = l->thread_id,
		.current = l->thread_current,
		.top = l->thread_top == PYTHON_NONE ? CAPTURE_NONE : l->thread_top,
		.cframe = l->cframe,
		.cframe_current = l->cframe_current,
		.cframe_previous = l->cframe_previous,
		.code = l->frame_code,
		.previous = l->frame_previous,
		.instr = l->frame_instr,
		.owner = l->frame_owner,
		.span = l->frame_span,
		.is_entry = l->frame_is_entry == PYTHON_NONE ? CAPTURE_NONE : l->frame_is_entry,
		.shim = l->owner_c,
		.heap_owner = l->owner_thread,
	};

	python_code_id_offsets(l, c.id);
	return c;
}

/* Returns the number of a layout that the capture path knows, or -1 if there are too many. */
static int layout_number(struct guest_python *g, const struct python_layout *l)
{
	struct capture_python_layout plan = plan_of(l);
	int ret;

	for (unsigned int i = 0; i < g->nlayouts; i++)
		if (!memcmp(&g->layout[i], l, sizeof(*l)))
			return (int)i;
	if (g->nlayouts >= CAPTURE_PYTHON_LAYOUTS)
		return -1;
	ret = g->p.host->add_python_layout(g->p.host->ctx, &plan);
	if (ret < 0)
		return -1;
	g->layout[g->nlayouts++] = *l;
	return ret;
}

static void find_layout(struct guest_python *g, struct python_process *p, const struct sample *s)
{
	struct python_program program = program_of(g, p, s);
	struct python_layout l;
	int number;

	memset(&l, 0, sizeof(l));
	if (!clock_is_due(s->time_ns, p->tried_ns, GUEST_PYTHON_RETRY_NS))
		return;
	p->tried_ns = s->time_ns;
	if (python_layout_find(&l, &program, s->regs.fs_base) != PYTHON_FOUND)
		return;
	g->stats.foreign--;
	number = layout_number(g, &l);
	g->stats.foreign += number < 0;
	p->state = number < 0 ? PROCESS_FOREIGN : PROCESS_KNOWN;
	p->layout = number < 0 ? 0 : (unsigned int)number;
	g->stats.programs += number >= 0;
}

/* Finds out which Python the program runs, if any, as far as this sample's frames show it. */
static void learn(struct guest_python *g, struct python_process *p, const struct guest_owner *owner,
		  const struct sample *s, const struct stack *st)
{
	for (unsigned int i = st->n_kernel; i < st->n && p->state == PROCESS_NEW; i++)
		if (runtime_near(g, owner, st->ip[i] - !st->exact[i], s->time_ns, &p->runtime)) {
			p->state = PROCESS_RUNS;
			g->stats.foreign++;
		}
	if (p->state == PROCESS_RUNS)
		find_layout(g, p, s);
}

/* Tells the capture path about this thread, if it is one of Python's. */
static void find_thread(struct guest_python *g, const struct python_process *p,
			const struct sample *s)
{
	uint64_t h = (s->task.mm ^ s->regs.fs_base << 9) * 0x9e3779b97f4a7c15u;
	struct asked *a = &g->asked[h >> 54 & (ASKED - 1)];
	struct python_program program = program_of(g, p, s);
	uint64_t t;

	if (a->mm == s->task.mm && a->fs_base == s->regs.fs_base &&
	    !clock_is_due(s->time_ns, a->time_ns, GUEST_PYTHON_RETRY_NS))
		return;
	*a = (struct asked){ s->task.mm, s->regs.fs_base, s->time_ns };
	t = python_thread(&g->layout[p->layout], &program, s->regs.fs_base);
	if (!t)
		return;
	g->p.host->add_python_thread(g->p.host->ctx,
				     &(struct capture_python_thread){ s->task.mm, s->regs.fs_base,
								      t, p->layout });
	g->stats.threads++;
}

/* -- the interpreter's frames and those of C code as one stack ------------------------- */

/* Finds for each Python frame the native frame above which it belongs; n: above none. */
static bool python_tie(const struct stack *st, const struct python_frames *p,
		       uint16_t above[SAMPLE_MAX_PYTHON])
{
	unsigned int at = st->n_kernel, begin = 0;
	uint64_t before = 0;

	for (unsigned int i = 0; i < p->n; i++) {
		uint64_t entry = p->f[i].entry & ~(uint64_t)SAMPLE_PYTHON_SKIPPED;

		if (!entry)
			continue;
		/* It must be below the innermost frame and below the previous call. */
		if (entry < st->sp[st->n_kernel] || entry <= before)
			return false;
		before = entry;
		while (at + 1 < st->n && st->sp[at + 1] <= entry)
			at++;
		/* The end of the outermost frame is not known. */
		if (at + 1 == st->n && st->user_end != STACK_END_CUT)
			return false;
		for (; begin <= i; begin++)
			above[begin] = (uint16_t)(at + 1 == st->n ? st->n : at);
	}
	/* The place of the remaining frames is not known. */
	return begin == p->n;
}

struct joined {
	struct stack *st;
	unsigned int n;
	bool full;
};

static void join_put(struct joined *j, uint64_t ip, uint64_t sp, uint8_t quality, uint8_t exact)
{
	struct stack *st = j->st;

	if (j->n == STACK_MAX_FRAMES) {
		j->full = true;
		return;
	}
	st->ip[j->n] = ip;
	st->sp[j->n] = sp;
	st->quality[j->n] = quality;
	st->exact[j->n++] = exact;
}

enum python_joined guest_python_join(struct stack *st, const struct python_frames *p)
{
	uint16_t above[SAMPLE_MAX_PYTHON];
	struct joined j = { .st = st };
	const struct stack was = *st;
	unsigned int k = 0;

	if (p->n == 0 || p->n > SAMPLE_MAX_PYTHON || st->n == st->n_kernel ||
	    !python_tie(st, p, above))
		return PYTHON_UNTIED;
	j.n = st->n_kernel;
	for (unsigned int i = st->n_kernel; i <= was.n; i++) {
		for (; k < p->n && above[k] == i; k++) {
			uint64_t sp = i < was.n ? was.sp[i] : 0;

			join_put(&j, p->ip[k], sp, FRAME_REGS, 1);
			if (p->f[k].entry & SAMPLE_PYTHON_SKIPPED)
				join_put(&j, p->unknown, sp, FRAME_REGS, 1);
		}
		if (i < was.n)
			join_put(&j, was.ip[i], was.sp[i], was.quality[i], was.exact[i]);
	}
	st->n = (uint16_t)j.n;
	if (j.full) {
		st->user_end = STACK_END_DEPTH;
		if (!st->n_kernel)
			st->end = STACK_END_DEPTH;
	}
	return PYTHON_JOINED;
}

/* -- samples --------------------------------------------------------------------------- */

static int show(struct guest_python *g, struct python_process *p, const struct sample *s,
		struct stack *st, struct err *e)
{
	const struct sample_python *f =
		(const struct sample_python *)(const void *)(s->stack + s->python.off);
	struct python_names_program names = { .layout = &g->layout[p->layout],
					      .program = program_of(g, p, s),
					      .mm = p->mm };
	uint64_t ip[SAMPLE_MAX_PYTHON];
	struct python_frames frames = {
		.f = f,
		.ip = ip,
		.n = s->python.len / (uint32_t)sizeof(*f),
		.unknown = PYTHON_NAMES_BASE,
	};

	for (unsigned int i = 0; i < frames.n; i++)
		ip[i] = python_names_ip(g->names, &names, &f[i]);
	if (guest_python_join(st, &frames) != PYTHON_JOINED) {
		g->stats.untied++;
		return 0;
	}
	g->stats.samples++;
	g->stats.frames += frames.n;
	g->stats.cut += s->python_state == SAMPLE_PYTHON_CUT;
	if (p->told)
		return 0;
	p->told = true;
	return python_names_map(g->names, g->p.sink, p->pid, s->time_ns, e);
}

int guest_python_add_frames(struct guest_python *g, const struct guest_owner *owner,
			    const struct sample *s, struct stack *st, struct err *e)
{
	struct python_process *p = owner->task->mm ? process_of(g, owner->task) : NULL;

	if (!p)
		return 0;
	if (p->state != PROCESS_KNOWN)
		learn(g, p, owner, s, st);
	if (p->state != PROCESS_KNOWN)
		return 0;
	switch (s->python_state) {
	case SAMPLE_PYTHON_NONE:
		g->stats.before++;
		find_thread(g, p, s);
		return 0;
	case SAMPLE_PYTHON_WHOLE:
	case SAMPLE_PYTHON_CUT:
		return s->python.len ? show(g, p, s, st, e) : 0;
	default:
		g->stats.changing++;
		return 0;
	}
}
