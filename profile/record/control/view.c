/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/view.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "profile/record/control/request.h"
#include "symbolizer/core/demangle.h"
#include "profile/record/control/view_stacks.h"
#include "profile/format/names/tasks.h"
#include "profile/format/names/names.h"
#include "base/table.h"
#include "profile/format/sink/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_STACKS 1000u
#define USUAL_DEPTH 64u

/* -- names of tasks and functions while the guest runs ----------------------------------- */

/* A function, or an address without one. */
struct live_func {
	const char *name; /* "": none */
	const char *dso;
	uint64_t addr, size;
};

struct live_names {
	struct profile_kernel kernel;
	bool have_kernel;
	struct names *names;
	struct tasks *tasks;
	struct table func; /* struct live_func; a deinit discards them, and indexes change */
	struct display_names display;
};

/* Names belong to tables that stay, so equal ones have the same pointer. */
static bool equal_func(const void *a, const void *b, const void *ctx)
{
	const struct live_func *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->addr == y->addr;
}

static bool live_names_init(struct live_names *n)
{
	*n = (struct live_names){ .names = names_create_live(), .tasks = tasks_create() };
	n->func = TABLE_OF(struct live_func, equal_func);
	demangle_names_init(&n->display, DEMANGLE_PROGRAMS);
	return n->names && n->tasks;
}

static void live_names_deinit(struct live_names *n)
{
	demangle_names_deinit(&n->display);
	table_deinit(&n->func);
	tasks_destroy(n->tasks);
	names_destroy(n->names);
}

static void live_names_kernel(struct live_names *n, const struct profile_kernel *k)
{
	n->kernel = *k;
	n->have_kernel = true;
	names_kernel(n->names, k);
}

static bool has_room(const struct live_names *n, uint32_t tid)
{
	return tasks_threads(n->tasks) < LIVE_MAX_THREADS || tasks_known(n->tasks, tid);
}

static void live_names_fork(struct live_names *n, uint32_t pid, uint32_t tid, uint32_t ppid,
			    uint32_t ptid)
{
	if (pid == tid)
		(void)names_fork(n->names, pid, ppid, NULL);
	if (has_room(n, tid))
		(void)tasks_fork(n->tasks, tid, ptid, NULL);
}

static void live_names_comm(struct live_names *n, const struct profile_comm *c)
{
	if (c->exec)
		(void)names_exec(n->names, c->pid, NULL);
	if (has_room(n, c->tid))
		(void)tasks_comm(n->tasks, c->tid, c->name, NULL);
}

/* Returns the symbol at a kernel address, also in a module, or NULL. *dso is always set. */
static const struct symbol *live_names_kernel_symbol(const struct live_names *n, uint64_t addr,
						     const char **dso)
{
	struct name name;

	names_lookup(n->names, 0, NAMES_KERNEL, addr, &name);
	*dso = name.dso;
	return name.symbol;
}

/*
 * Returns an index in func, or UINT32_MAX beyond LIVE_MAX_FUNCS. NAMES_KERNEL: addr is of the
 * kernel's mode.
 */
static uint32_t live_names_func(struct live_names *n, uint32_t pid, enum names_of whose,
				uint64_t addr)
{
	struct live_func f = { "", NULL, addr, 0 };
	struct name name;
	uint32_t index;
	bool fresh;

	names_lookup(n->names, pid, whose, addr, &name);
	f.dso = name.dso;
	if (name.symbol) {
		f.name = demangle_shown(&n->display, name.symbol, whose);
		f.addr = name.symbol->addr;
		f.size = name.symbol->size;
	}
	if (n->func.n >= LIVE_MAX_FUNCS)
		return UINT32_MAX;
	return table_add(&n->func,
			 table_mix(f.addr, table_mix((uintptr_t)f.name, (uintptr_t)f.dso)), &f,
			 &index, &fresh)
		       ? UINT32_MAX
		       : index;
}

/* -- the sink ---------------------------------------------------------------------------- */

struct sink_live {
	struct sink_forward forward;
	struct profile_info info;
	struct live_names names;
	bool active;
	uint64_t until_ns; /* no request extends the gathering beyond this time */
	uint64_t *lost;	   /* for each vCPU: lost samples since gathering began */
	struct live_stacks stacks;
};

static struct sink_live *self(struct sink *s)
{
	return (struct sink_live *)s;
}

/* -- gathering ------------------------------------------------------------------------ */

static void gather(struct sink_live *l, const struct profile_sample *s)
{
	const struct stack *st = s->stack;
	uint32_t frame[LIVE_MAX_DEPTH];
	const char *dso;
	struct live_stack like = {
		.pid = s->pid,
		.tid = s->tid,
		.comm = tasks_known(l->names.tasks, s->tid),
		.cpu = s->cpu,
		.mode = s->mode,
		.event = s->event,
		.n = st->n < LIVE_MAX_DEPTH ? st->n : LIVE_MAX_DEPTH,
	};

	for (unsigned int i = 0; i < like.n; i++) {
		uint64_t addr = i == 0 || st->exact[i] || !st->ip[i] ? st->ip[i] : st->ip[i] - 1;

		frame[i] = live_names_func(&l->names, s->pid,
					   i < st->n_kernel ? NAMES_KERNEL : NAMES_PROGRAM, addr);
	}
	view_stacks_add(&l->stacks, &like, frame, s->period, s->time_ns);
	/* A bare-metal kernel's own program has its symbols in the kernel's image, too. */
	if (!s->event && (st->n_kernel || live_names_kernel_symbol(&l->names, st->ip[0], &dso)))
		view_stacks_hit(&l->stacks, st->ip[0], s->period);
}

static void view_forget(struct sink_live *l)
{
	view_stacks_end(&l->stacks);
	table_deinit(&l->names.func);
	l->active = false;
}

/* -- operations ----------------------------------------------------------------------- */

static int op_begin(struct sink *s, const struct profile_info *info, struct err *e)
{
	struct sink_live *l = self(s);

	l->info = *info;
	l->lost = calloc(info->vcpus, sizeof(*l->lost));
	if (!l->lost)
		return err_nomem(e);
	return sink_forward_begin(s, info, e);
}

static int op_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	struct sink_live *l = self(s);

	live_names_kernel(&l->names, k);
	return sink_forward_kernel(s, k, e);
}

static int op_fork(struct sink *s, const struct profile_fork *f, struct err *e)
{
	struct sink_live *l = self(s);

	live_names_fork(&l->names, f->pid, f->tid, f->ppid, f->ptid);
	return sink_forward_fork(s, f, e);
}

static int op_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	struct sink_live *l = self(s);

	live_names_comm(&l->names, c);
	return sink_forward_comm(s, c, e);
}

static int op_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	struct sink_live *l = self(s);

	/* A module without room has no name. */
	(void)names_module(l->names.names, m, NULL);
	return sink_forward_module(s, m, e);
}

static int op_map(struct sink *s, const struct profile_map *map, struct err *e)
{
	struct sink_live *l = self(s);

	(void)names_map(l->names.names, map, NULL);
	return sink_forward_map(s, map, e);
}

static int op_dso(struct sink *s, const struct profile_dso *dso, struct err *e)
{
	struct sink_live *l = self(s);

	(void)names_dso(l->names.names, dso, NULL);
	return sink_forward_dso(s, dso, e);
}

static int op_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	struct sink_live *l = self(s);

	if (l->active && sample->time_ns > l->until_ns)
		view_forget(l);
	if (l->active)
		gather(l, sample);
	return sink_forward_sample(s, sample, e);
}

static int op_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	struct sink_live *l = self(s);

	if (cpu < l->info.vcpus)
		l->lost[cpu] += count;
	return sink_forward_lost(s, cpu, count, time_ns, e);
}

static void op_destroy(struct sink *s)
{
	struct sink_live *l = self(s);

	if (!l)
		return;
	sink_forward_destroy(&l->forward);
	view_stacks_end(&l->stacks);
	live_names_deinit(&l->names);
	free(l->lost);
	free(l);
}

static const struct sink_ops live_ops = {
	.begin = op_begin,
	.kernel = op_kernel,
	.fork = op_fork,
	.exit = sink_forward_exit,
	.comm = op_comm,
	.module = op_module,
	.map = op_map,
	.dso = op_dso,
	.sample = op_sample,
	.lost = op_lost,
	.marker = sink_forward_marker,
	.flush = sink_forward_flush,
	.end = sink_forward_end,
	.copy = sink_forward_copy,
	.abandon = sink_forward_abandon,
	.destroy = op_destroy,
};

int view_sink_create(struct sink **out, struct sink *to, struct err *e)
{
	struct sink_live *l = calloc(1, sizeof(*l));

	if (!l) {
		to->ops->destroy(to);
		return err_nomem(e);
	}
	l->forward = (struct sink_forward){ { &live_ops }, to };
	if (!live_names_init(&l->names)) {
		op_destroy(&l->forward.sink);
		return err_nomem(e);
	}
	*out = &l->forward.sink;
	return 0;
}

/* -- the reply to `profile` ----------------------------------------------------------- */

/* The content of a reply, and the numbers of its parts in it. */
struct view_view {
	struct sink_live *l;
	const struct live_mark *from; /* NULL: from the beginning */
	uint32_t depth;
	struct shown {
		struct live_count count;
		uint32_t index; /* index of the stack */
	} * shown;
	size_t n;
	uint32_t *func; /* number of each function in the reply; UINT32_MAX: not written yet */
	uint32_t nfuncs;
	struct live_count rest[PROFILE_MAX_EVENTS];
};

static struct live_count minus(struct live_count a, struct live_count b)
{
	return (struct live_count){ a.weight - b.weight, a.count - b.count };
}

static int compare_shown(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	if (x->count.weight != y->count.weight)
		return x->count.weight > y->count.weight ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Chooses the stacks that changed, heaviest first; those beyond max are added to the rest. */
static void view_choose(struct view_view *v, size_t max)
{
	const struct live_stacks *s = &v->l->stacks;

	for (size_t i = 0; i < s->n; i++) {
		struct live_count c = s->stack[i].total;

		if (v->from && i < v->from->n)
			c = minus(c, v->from->stack[i]);
		if (c.count)
			v->shown[v->n++] = (struct shown){ c, (uint32_t)i };
	}
	qsort(v->shown, v->n, sizeof(*v->shown), compare_shown);
	for (; v->n > max; v->n--) {
		const struct shown *x = &v->shown[v->n - 1];
		struct live_count *r = &v->rest[s->stack[x->index].event];

		r->weight += x->count.weight;
		r->count += x->count.count;
	}
	for (unsigned int i = 0; i < PROFILE_MAX_EVENTS; i++) {
		struct live_count r = s->totals.rest[i];

		if (v->from)
			r = minus(r, v->from->totals.rest[i]);
		v->rest[i].weight += r.weight;
		v->rest[i].count += r.count;
	}
}

static void put_counts(struct view_view *v, struct json_writer *w, bool rest)
{
	static const char *const key[2][2] = { { "weight", "count" },
					       { "rest_weight", "rest_count" } };

	for (unsigned int what = 0; what < 2; what++) {
		json_array_begin(w, key[rest][what]);
		for (unsigned int i = 0; i < v->l->info.nevents; i++) {
			struct live_count c = v->l->stacks.totals.all[i];

			if (rest)
				c = v->rest[i];
			else if (v->from)
				c = minus(c, v->from->totals.all[i]);
			json_u64(w, NULL, what ? c.count : c.weight);
		}
		json_array_end(w);
	}
}

static void put_cpus(struct view_view *v, struct json_writer *w)
{
	const struct live_stacks *s = &v->l->stacks;
	uint64_t lost = 0;

	json_array_begin(w, "cpus");
	for (unsigned int i = 0; i < s->vcpus; i++) {
		const struct live_cpu none = { 0 }, *old = v->from ? &v->from->cpu[i] : &none;
		const struct live_cpu *now = &s->cpu[i];

		json_put_object(w, NULL, "cpu", i, "kernel", now->mode[1] - old->mode[1], "user",
				now->mode[2] - old->mode[2], "idle", now->mode[3] - old->mode[3],
				"lost", now->lost - old->lost);
		lost += now->lost - old->lost;
	}
	json_array_end(w);
	json_u64(w, "lost", lost);
}

static bool is_same_task(const struct live_stack *x, const struct live_stack *y)
{
	return x->tid == y->tid && x->pid == y->pid && x->comm == y->comm;
}

/*
 * Writes the tasks; task[i] becomes the number of that of shown[i]. Few stacks are shown, with
 * fewer tasks.
 */
static void put_tasks(struct view_view *v, struct json_writer *w, uint32_t *task)
{
	const struct live_stack *s = v->l->stacks.stack;
	cleanup_free uint32_t *first = malloc((v->n + 1) * sizeof(*first));
	uint32_t n = 0;

	if (!first) {
		w->b->failed = true;
		return;
	}
	json_array_begin(w, "tasks");
	for (size_t i = 0; i < v->n; i++) {
		const struct live_stack *x = &s[v->shown[i].index];
		uint32_t k;

		for (k = 0; k < n && !is_same_task(&s[first[k]], x); k++)
			;
		task[i] = k;
		if (k < n)
			continue;
		first[n++] = v->shown[i].index;
		json_put_object(w, NULL, "pid", x->pid, "tid", x->tid, "comm",
				x->tid ? tasks_text(v->l->names.tasks, x->comm) : "swapper");
	}
	json_array_end(w);
}

/* Writes the number of a function of live_names in the reply, which v->func keeps. */
static void put_func(struct view_view *v, struct json_writer *w, uint32_t func)
{
	const struct live_func beyond = { "", "[unknown]", 0, 0 };
	const struct live_names *n = &v->l->names;
	size_t at = func < n->func.n ? func : n->func.n;
	const struct live_func *f =
		func < n->func.n ? (const struct live_func *)n->func.item + func : &beyond;

	if (v->func[at] != UINT32_MAX)
		return;
	v->func[at] = v->nfuncs++;
	json_put_object(w, NULL, "name", f->name, "dso", f->dso, "addr", json_address(f->addr),
			"size", f->size);
}

static uint32_t frames_of(const struct view_view *v, const struct live_stack *x)
{
	return x->n < v->depth ? x->n : v->depth;
}

static void put_stack(struct view_view *v, struct json_writer *w, const struct shown *shown,
		      uint32_t task)
{
	static const char *const mode[4] = { "", "kernel", "user", "idle" };
	const struct live_stack *x = &v->l->stacks.stack[shown->index];
	const uint32_t *frame = v->l->stacks.frame + x->first;

	json_object_begin(w, NULL);
	json_put(w, "task", task, "mode", mode[x->mode & 3], "cpu", x->cpu, "event", x->event,
		 "weight", shown->count.weight, "count", shown->count.count);
	json_array_begin(w, "frames");
	for (uint32_t i = 0; i < frames_of(v, x); i++) {
		size_t n = v->l->names.func.n, at = frame[i] < n ? frame[i] : n;

		json_u64(w, NULL, v->func[at]);
	}
	json_array_end(w);
	json_object_end(w);
}

static void put_stacks(struct view_view *v, struct json_writer *w)
{
	const struct live_stacks *s = &v->l->stacks;
	cleanup_free uint32_t *task = malloc((v->n + 1) * sizeof(*task));

	if (!task) {
		w->b->failed = true;
		return;
	}
	put_tasks(v, w, task);
	json_array_begin(w, "funcs");
	for (size_t i = 0; i < v->n; i++) {
		const struct live_stack *x = &s->stack[v->shown[i].index];

		for (uint32_t k = 0; k < frames_of(v, x); k++)
			put_func(v, w, s->frame[x->first + k]);
	}
	json_array_end(w);
	json_array_begin(w, "stacks");
	for (size_t i = 0; i < v->n; i++)
		put_stack(v, w, &v->shown[i], task[i]);
	json_array_end(w);
}

static void put_events(const struct sink_live *l, struct json_writer *w)
{
	json_array_begin(w, "events");
	for (unsigned int i = 0; i < l->info.nevents; i++)
		json_put_object(w, NULL, "name", l->info.event[i].name);
	json_array_end(w);
}

static void put_view(struct view_view *v, size_t max_stacks, uint64_t now_ns, struct json_writer *w)
{
	struct sink_live *l = v->l;
	size_t nfunc = l->names.func.n + 1;
	cleanup_free struct shown *shown = malloc((l->stacks.n + 1) * sizeof(*shown));
	cleanup_free uint32_t *func = malloc(nfunc * sizeof(*func));

	if (!shown || !func) {
		w->b->failed = true;
		return;
	}
	memset(func, 0xff, nfunc * sizeof(*func));
	v->shown = shown;
	v->func = func;
	view_choose(v, max_stacks);
	json_put(w, "seq", l->stacks.seq + 1, "since", v->from ? v->from->seq : 0, "from_ns",
		 v->from ? v->from->time_ns : l->stacks.began_ns, "to_ns", now_ns);
	put_events(l, w);
	put_cpus(v, w);
	put_stacks(v, w);
	put_counts(v, w, false);
	put_counts(v, w, true);
}

/* Begins to gather, or begins again if the tables have been full for long. */
static bool view_begin(struct sink_live *l, uint64_t now_ns)
{
	bool full = l->stacks.full_ns || l->names.func.n >= LIVE_MAX_FUNCS;

	if (full && !l->stacks.full_ns)
		l->stacks.full_ns = now_ns;
	if (l->active && (now_ns > l->until_ns ||
			  (full && clock_is_due(now_ns, l->stacks.full_ns, LIVE_FULL_NS))))
		view_forget(l);
	l->until_ns = now_ns + LIVE_ASKED_NS;
	if (l->active)
		return true;
	memset(l->lost, 0, l->info.vcpus * sizeof(*l->lost));
	l->active = view_stacks_begin(&l->stacks, l->info.vcpus, now_ns);
	return l->active;
}

void view_sink_profile(struct sink *s, const struct live_query *q, struct buf *reply)
{
	struct sink_live *l = self(s);
	struct view_view v = { .l = l, .depth = q->max_depth ? q->max_depth : USUAL_DEPTH };
	struct json_writer w;

	if (!view_begin(l, q->now_ns)) {
		reply->failed = true;
		return;
	}
	json_begin_members(&w, reply);
	for (unsigned int i = 0; i < l->info.vcpus; i++)
		l->stacks.cpu[i].lost = l->lost[i];
	v.from = view_stacks_find_mark(&l->stacks, q->since);
	put_view(&v, q->max_stacks ? q->max_stacks : USUAL_STACKS, q->now_ns, &w);
	/* Last, because it may replace the mark to which the request refers. */
	view_stacks_mark(&l->stacks, q->now_ns);
}

/* -- the reply to `text` -------------------------------------------------------------- */

static void put_hits(const struct sink_live *l, uint64_t addr, size_t len, struct json_writer *w)
{
	json_array_begin(w, "hits");
	for (size_t i = 0; l->active && i < l->stacks.hits.n; i++) {
		const struct live_hit *h = (const struct live_hit *)l->stacks.hits.item + i;

		if (h->addr >= addr && h->addr - addr < len)
			json_put_object(w, NULL, "addr", json_address(h->addr), "weight",
					h->weight);
	}
	json_array_end(w);
}

int view_sink_text(struct sink *s, uint64_t addr, uint32_t len, struct buf *reply, struct err *e)
{
	struct sink_live *l = self(s);
	const struct profile_kernel *k = &l->names.kernel;
	const struct symbol *sym;
	cleanup_free uint8_t *code = NULL;
	cleanup_free char *hex = NULL;
	struct json_writer w;
	const char *dso;
	size_t n;

	if (!l->names.have_kernel || !k->read_text)
		return err_set(e, EAGAIN, "the address of the guest's kernel is not known yet");
	sym = live_names_kernel_symbol(&l->names, addr, &dso);
	if (!(addr >> 63) && !sym)
		return err_set(e, EINVAL,
			       "0x%" PRIx64 ": not an address of the kernel or of a module", addr);
	if (!len) {
		if (!sym)
			return err_set(e, ENOENT,
				       "0x%" PRIx64 ": no function is known there: give 'len'",
				       addr);
		addr = sym->addr;
		len = sym->size < CONTROL_MAX_TEXT ? (uint32_t)sym->size : CONTROL_MAX_TEXT;
	}
	code = malloc(len + 1);
	if (!code)
		return err_nomem(e);
	n = k->read_text(k->read_ctx, addr, code, len);
	if (!n)
		return err_set(e, EFAULT, "0x%" PRIx64 ": nothing is mapped there", addr);
	hex = malloc(2 * n + 1);
	if (!hex)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", code[i]);
	json_begin_members(&w, reply);
	json_put(&w, "addr", json_address(addr), "code", hex, "symbol", sym ? sym->name : "");
	if (sym)
		json_put(&w, "symbol_addr", json_address(sym->addr), "symbol_size", sym->size);
	json_str(&w, "dso", dso);
	put_hits(l, addr, n, &w);
	return 0;
}
