/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/phases.h"

#include "base/cleanup.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

/* Evidence that a function in a stack gives. */
enum clue {
	CLUE_START = 1 << 0,	/* start_kernel: it stays on the boot CPU's stack */
	CLUE_IDLE = 1 << 1,	/* the boot CPU's idle loop, after start_kernel's work */
	CLUE_INITCALL = 1 << 2, /* kernel_init's work */
	CLUE_ONE = 1 << 3,	/* do_one_initcall: also called later, for modules */
	CLUE_EXEC = 1 << 4,	/* a kernel thread becomes a program */
	CLUE_INIT = 1 << 5,	/* that thread is kernel_init */
	CLUE_USER = 1 << 6,
	CLUE_DECOMPRESSOR = 1 << 7,
	CLUE_SWITCH = 1 << 8, /* the stack may belong to the next task already */
};

/* Functions of init/main.c and their callers; 6.1 and 6.12. Clones ("name.isra.0") count, too. */
static const struct {
	const char *name;
	uint16_t clue;
} known[] = {
	{ "start_kernel", CLUE_START },
	{ "rest_init", CLUE_IDLE },
	{ "arch_call_rest_init", CLUE_IDLE },
	{ "cpu_startup_entry", CLUE_IDLE },
	{ "kernel_init_freeable", CLUE_INITCALL },
	{ "do_initcalls", CLUE_INITCALL },
	{ "do_one_initcall", CLUE_ONE },
	{ "run_init_process", CLUE_EXEC },
	{ "kernel_execve", CLUE_EXEC },
	{ "kernel_init", CLUE_INIT },
	{ "__schedule", CLUE_SWITCH },
	{ "__switch_to_asm", CLUE_SWITCH },
	{ "__switch_to", CLUE_SWITCH },
	{ "finish_task_switch", CLUE_SWITCH },
	/* Only programs make system calls; their own frames may be missing. */
	{ "do_syscall_64", CLUE_USER },
	{ "entry_SYSCALL_64", CLUE_USER },
	{ "entry_SYSCALL_64_after_hwframe", CLUE_USER },
};

static uint16_t clue_of(const struct stackset_func *f)
{
	if (!strcmp(f->dso, "[decompressor]"))
		return CLUE_DECOMPRESSOR;
	if (f->kind == STACKSET_KIND_USER || f->kind == STACKSET_KIND_JIT)
		return CLUE_USER;
	for (size_t i = 0; f->kind == STACKSET_KIND_KERNEL && i < ARRAY_SIZE(known); i++) {
		size_t len = strlen(known[i].name);

		if (!strncmp(f->name, known[i].name, len) && (!f->name[len] || f->name[len] == '.'))
			return known[i].clue;
	}
	return 0;
}

/*
 * Returns the latest phase that this stack proves to have begun; PHASE_FIRST if it proves nothing.
 */
static enum phase phase_of(const struct stackset *s, const struct stackset_stack *st,
			   const uint16_t *clue_of_func)
{
	const struct stackset_task *task = &s->task[st->task];
	uint16_t clues = st->mode == STACKSET_USER ? CLUE_USER : 0;

	for (uint32_t i = 0; i < st->n; i++)
		clues |= clue_of_func[s->frame[st->frame[i]].func];
	if (clues & CLUE_DECOMPRESSOR)
		return PHASE_DECOMPRESSOR;
	if ((clues & CLUE_USER) && task->pid > 1 && (clues & CLUE_SWITCH))
		return PHASE_FIRST;
	if (clues & CLUE_USER)
		return task->pid > 1 ? PHASE_USER : PHASE_INIT;
	if ((clues & CLUE_EXEC) && (task->pid == 1 || (clues & CLUE_INIT)))
		return PHASE_INIT;
	if (clues & CLUE_INITCALL)
		return PHASE_INITCALLS;
	if ((clues & CLUE_ONE) && task->pid <= 1)
		return PHASE_INITCALLS;
	if ((clues & CLUE_START) && !(clues & CLUE_IDLE))
		return PHASE_START_KERNEL;
	return PHASE_FIRST;
}

/* Helper programs that the kernel starts by itself run before /init and do not count. */
static enum phase advance(enum phase now, enum phase next)
{
	if (next == PHASE_USER && now < PHASE_INIT)
		return now;
	return next > now ? next : now;
}

/*
 * Returns true if a boot may begin with this stack, which is neither start_kernel's idle loop nor a
 * program.
 */
static bool begins_boot(const struct stackset *s, const struct stackset_stack *st,
			const uint16_t *clue_of_func, enum phase p)
{
	uint16_t clues = 0;

	for (uint32_t i = 0; i < st->n; i++)
		clues |= clue_of_func[s->frame[st->frame[i]].func];
	return p < PHASE_INITCALLS && !(clues & CLUE_IDLE);
}

/*
 * Adds a sample, which covers the time before it: a phase begins with that time, but not before
 * `before`.
 */
static void add_sample(struct phases *out, enum phase p, const struct stackset_sample *m,
		       bool weight_is_ns, uint64_t before)
{
	struct phase_span *span = &out->span[p];

	if (!span->seen) {
		uint64_t length = weight_is_ns ? m->weight : 1;
		uint64_t from = m->time_ns > length ? m->time_ns - length : 0;

		span->seen = true;
		span->from_ns = from < before ? before : from;
	}
	span->to_ns = m->time_ns;
	span->samples++;
	span->weight += m->weight;
}

/* Extends each phase to the next one that occurred. */
static void close_gaps(struct phases *out)
{
	struct phase_span *last = NULL;

	for (unsigned int p = 0; p < PHASES; p++) {
		if (!out->span[p].seen)
			continue;
		if (last)
			last->to_ns = out->span[p].from_ns;
		last = &out->span[p];
	}
}

/* -- what the run itself says --------------------------------------------------------------------- */

/* The times at which phases began, as the run recorded them; 0: not recorded. */
struct told {
	uint64_t ns[PHASES];
	bool any;
};

static struct told told_by(const struct stackset *s)
{
	struct told t = { 0 };
	json_t *totals = s->json ? json_loads(s->json, 0, NULL) : NULL;
	const json_t *list = json_object_get(json_object_get(totals, "engine"), "phases");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *p = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(p, "name"));
		json_int_t ns = json_integer_value(json_object_get(p, "mono_ns"));
		enum phase phase;

		if (!name || ns <= 0 || !phase_parse(name, &phase))
			continue;
		t.ns[phase] = (uint64_t)ns;
		t.any = true;
	}
	json_decref(totals);
	return t;
}

/*
 * Returns the phase that a sample proves if the run recorded some: by its time, and by its stack
 * for phases that were not recorded.
 */
static enum phase told_phase(const struct told *t, const struct stackset_sample *m, bool counted,
			     enum phase by_stack, enum phase before)
{
	enum phase at = before;

	for (unsigned int p = 0; p < PHASES; p++)
		if (t->ns[p] && m->time_ns >= t->ns[p] && p > at)
			at = (enum phase)p;
	if (counted || by_stack <= at)
		return at;
	return (by_stack == PHASE_DECOMPRESSOR && at == PHASE_FIRST) ||
			       (by_stack == PHASE_USER && at == PHASE_INIT)
		       ? by_stack
		       : at;
}

/* -- the whole -------------------------------------------------------------------------------------- */

int phases_find(struct phases *out, const struct stackset *s, struct err *e)
{
	cleanup_free uint16_t *clue = calloc(s->nfuncs + 1, sizeof(*clue));
	cleanup_free uint8_t *phase = calloc(s->nstacks + 1, 1);
	enum phase now = PHASE_FIRST;
	struct phases found = { 0 };
	struct told told;

	if (!clue || !phase)
		return err_set(e, ENOMEM, "out of memory for the boot's phases");
	*out = found;
	if (!s->sample || !s->nsamples)
		return 0;
	for (size_t i = 0; i < s->nfuncs; i++)
		clue[i] = clue_of(&s->func[i]);
	for (size_t i = 0; i < s->nstacks; i++)
		phase[i] = (uint8_t)phase_of(s, &s->stack[i], clue);
	told = told_by(s);
	if (!told.any &&
	    !begins_boot(s, &s->stack[s->sample[0].stack], clue, phase[s->sample[0].stack]))
		return 0;
	for (size_t i = 0; i < s->nsamples; i++) {
		enum phase by_stack = (enum phase)phase[s->sample[i].stack];

		now = told.any ? told_phase(&told, &s->sample[i], s->counted, by_stack, now)
			       : advance(now, by_stack);
		add_sample(&found, now, &s->sample[i], s->weight_is_ns,
			   i ? s->sample[i - 1].time_ns : 0);
	}
	/* Some sample must prove that this is Linux during its boot. */
	found.boot = told.any || (now >= PHASE_START_KERNEL && found.span[PHASE_START_KERNEL].seen);
	if (!found.boot)
		return 0;
	for (unsigned int p = 0; p < PHASES; p++)
		if (found.span[p].seen && told.ns[p])
			found.span[p].from_ns = told.ns[p] - 1;
	close_gaps(&found);
	*out = found;
	return 0;
}

enum phase phases_at(const struct phases *p, uint64_t time_ns)
{
	enum phase at = PHASES;

	for (unsigned int i = 0; i < PHASES; i++)
		if (p->span[i].seen && (at == PHASES || time_ns >= p->span[i].from_ns))
			at = (enum phase)i;
	return at == PHASES ? PHASE_FIRST : at;
}
