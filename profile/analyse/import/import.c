/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/import/import.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sample.h"
#include "base/utf8.h"
#include "profile/analyse/stacks/coded.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/side.h"
#include "base/table.h"
#include "base/texts.h"
#include "symbolizer/program/elfsynth.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum bytes of a text that is copied. symtab_add() cuts longer names and marks them. */
#define MAX_BYTES (SYMTAB_MAX_NAME + 8)

/* Addresses that are given to functions. Text of kernel and modules is where x86-64 has it. */
#define KERNEL_TEXT 0xffffffff81000000u
#define KERNEL_TEXT_END 0xffffffffa0000000u
#define MODULES 0xffffffffc0000000u
#define MODULES_END 0xfffffffffe000000u
#define NOWHERE_KERNEL 0xfffffe0000000000u /* kernel addresses without a name */
#define USER_STEP 0x100000000u		   /* distance of DSOs; the first is at one step */
#define FILE_TEXT 0x1000u /* offset and address of the first function in the file */
/* addresses without a DSO are kept if they are from here to USER_STEP, ... */
#define USER_LEAST 0x1000u
#define NOWHERE_USER             \
	((IMPORT_MAX_DSOS + 1) * \
	 (uint64_t)USER_STEP) /* other addresses without a DSO begin after all DSOs */
#define USER_FREE (NOWHERE_USER + USER_STEP) /* ... or from here on */
#define USER_END 0x800000000000u	     /* up to here */
/* no symbol without a size reaches this far beyond its page; perf lets it reach two */
#define UNNAMED_GAP 0x4000u
#define MODULE_GAP (2 * SYMTAB_MAX_GAP)
#define MODULE_MOST 0x4000000u
#define FENCE "[unknown]" /* the name of gaps between the kernel's functions */

#define NO_TIME_START 5000000000u /* perf treats small times as missing */
#define NO_TIME_STEP 1000000u

#define NO_DSO UINT32_MAX

enum place { PLACE_KERNEL, PLACE_MODULE, PLACE_USER };

struct import_dso {
	const char *name;
	uint64_t base, len;   /* run-time range */
	uint64_t first, last; /* first and last place in the text; last 0: none, or 0 */
	struct symtab *symbols;
	uint8_t id[20];
	bool kernel, has_unnamed;
	uint8_t place;
};

struct import_func {
	const char *name; /* NULL: identified by its address */
	uint64_t addr;	  /* if it is placed: its start in its DSO */
	uint32_t dso;	  /* index; NO_DSO: none */
	uint32_t told;	  /* bytes, according to the text; 0: unknown */
	uint32_t size;	  /* bytes; more than the largest offset seen */
	uint64_t place;	  /* address given to the function */
	bool kernel, placed;
};

struct task {
	const char *comm;
	uint32_t pid, tid;
	bool has_numbers;
};

struct import_row_frame {
	uint32_t func, off;
};

struct text_sample {
	uint64_t time_ns, weight;
	size_t first;
	uint32_t task, cpu;
	uint16_t n, n_kernel;
	uint8_t event; /* index into import.event, or NO_EVENT */
};

#define NO_EVENT UINT8_MAX /* one more than a profile may have */

/* The DSOs that each process has mapped already. */
struct import_mapped {
	uint32_t pid, dso;
};

struct import {
	struct import_options opt;
	struct texts texts;
	struct table dso, func, task, mapped;
	struct import_row_frame *frame;
	size_t nframes, frame_cap;
	struct text_sample *sample;
	size_t nsamples, sample_cap;
	uint64_t weight, cut, earliest_ns;
	uint64_t moved; /* frames that cannot have the place in the text */
	uint32_t next_pid;
	bool has_time;
	const char *event[PROFILE_MAX_EVENTS]; /* names; "": not in the text */
	uint64_t of_event[PROFILE_MAX_EVENTS]; /* number of samples */
	uint64_t other;			       /* samples of NO_EVENT */
	unsigned int nevents;
	int chosen;	    /* index of the only event that is written; -1: all events */
	struct stack stack; /* the call chain of the sample that is being written */
};

/* -- collecting ---------------------------------------------------------------------------- */

static struct import_dso *dso_at(const struct import *i, uint32_t index)
{
	return (struct import_dso *)i->dso.item + index;
}

static bool equal_dso(const void *a, const void *b, const void *ctx)
{
	const struct import_dso *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->kernel == y->kernel;
}

static bool equal_func(const void *a, const void *b, const void *ctx)
{
	const struct import_func *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->addr == y->addr && x->dso == y->dso &&
	       x->kernel == y->kernel && x->placed == y->placed && x->told == y->told;
}

static bool equal_task(const void *a, const void *b, const void *ctx)
{
	const struct task *x = a, *y = b;

	(void)ctx;
	return x->comm == y->comm && x->has_numbers == y->has_numbers &&
	       (!x->has_numbers || (x->pid == y->pid && x->tid == y->tid));
}

/*
 * Returns a copy of a text, decoded if `coded`, in the form of utf8_clean(), of at most `max`
 * characters and MAX_BYTES bytes; NULL if out of memory.
 */
static const char *import_keep(struct import *i, struct import_text t, size_t max, bool coded)
{
	char raw[MAX_BYTES + 1], copy[MAX_BYTES + 1];
	size_t n = t.len < MAX_BYTES ? t.len : MAX_BYTES, at = 0;

	if (coded)
		n = coded_read(raw, MAX_BYTES, t.s, t.len);
	else
		memcpy(raw, t.s, n);
	for (size_t k = 0; k < n; k++)
		raw[k] = raw[k] ? raw[k] : '?';
	raw[n] = '\0';
	utf8_clean(copy, sizeof(copy), raw);
	for (size_t len; copy[at] && max; at += len, max--)
		len = utf8_len(copy + at);
	copy[at] = '\0';
	return texts_add(&i->texts, copy);
}

/*
 * Returns the module's name in "[ext4]", "/lib/modules/x/virtio-net.ko.xz" or "module", as kallsyms
 * has it, without brackets.
 */
static struct import_text module_text(struct import_text t)
{
	const char *slash = memrchr(t.s, '/', t.len), *end;

	if (slash)
		t = (struct import_text){ slash + 1, t.len - (size_t)(slash + 1 - t.s) };
	end = memmem(t.s, t.len, ".ko", 3);
	if (end && end > t.s)
		t.len = (size_t)(end - t.s);
	if (t.len > 2 && t.s[0] == '[' && t.s[t.len - 1] == ']')
		t = (struct import_text){ t.s + 1, t.len - 2 };
	return t;
}

/* Returns a name that a module may have, in perf's brackets; NULL if out of memory. */
static const char *keep_module(struct import *i, struct import_text t, bool coded)
{
	char raw[3 * PROFILE_MODULE_NAME], name[PROFILE_MODULE_NAME];
	size_t n = t.len < sizeof(raw) - 1 ? t.len : sizeof(raw) - 1;

	if (coded)
		n = coded_read(raw, sizeof(raw) - 1, t.s, t.len);
	else
		memcpy(raw, t.s, n);
	for (size_t k = 0; k < n; k++)
		raw[k] = raw[k] && raw[k] != ']' && raw[k] != '/' ? raw[k] : '?';
	raw[n] = '\0';
	utf8_clean(name, sizeof(name), *raw ? raw : "?");
	return texts_add(&i->texts, name);
}

static bool is_unknown(struct import_text t)
{
	return !t.len || import_equals(t, "[unknown]");
}

static int dso_of(struct import *i, const struct import_frame *f, bool kernel, uint32_t *out)
{
	struct import_text t = f->dso;
	struct import_dso like = { .kernel = kernel, .place = PLACE_USER, .len = FILE_TEXT };
	bool fresh;

	*out = NO_DSO;
	/* This is a mark of folded text, not the name of a module. */
	if (kernel && import_equals(t, IMPORT_JIT_DSO))
		t = (struct import_text){ 0 };
	if (is_unknown(t) && !f->name.len)
		return 0;
	if (kernel &&
	    (is_unknown(t) || import_begins(t, "[kernel") || import_begins(t, "[guest.kernel"))) {
		like.place = PLACE_KERNEL;
		like.len = 0;
		like.name = texts_add(&i->texts, PERFDATA_KERNEL_DSO);
	} else if (kernel) {
		like.place = PLACE_MODULE;
		like.len = 0;
		like.name = keep_module(i, module_text(t), f->dso_coded);
	} else if (is_unknown(t)) {
		like.name = texts_add(&i->texts, IMPORT_USER_DSO);
	} else {
		like.name = import_keep(i, t, IMPORT_MAX_NAME, f->dso_coded);
	}
	if (!like.name ||
	    table_add(&i->dso, table_mix((uintptr_t)like.name, kernel), &like, out, &fresh) < 0)
		return -ENOMEM;
	return i->dso.n > IMPORT_MAX_DSOS ? -E2BIG : 0;
}

/*
 * Returns true if the frame can have its place in its DSO: the address range of each DSO is
 * limited. Places in code without a file are addresses, so for programs their distance counts.
 */
static bool in_reach(struct import *i, uint32_t dso, const struct import_frame *f)
{
	static const uint64_t most[] = { [PLACE_KERNEL] = KERNEL_TEXT_END - KERNEL_TEXT,
					 [PLACE_MODULE] = MODULE_MOST,
					 [PLACE_USER] = USER_STEP };
	struct import_dso *d = dso_at(i, dso);
	uint64_t start = f->addr - f->off, first = start, last = f->addr;

	if (f->off > f->addr || f->off >= IMPORT_MAX_OFFSET || f->addr >= USER_END)
		return false;
	if (d->place != PLACE_USER)
		first = 0;
	else if (d->last && d->first < first)
		first = d->first;
	if (d->last > last)
		last = d->last;
	if (last - first >= most[d->place] - 2 * IMPORT_MAX_OFFSET)
		return false;
	d->first = first;
	d->last = last;
	return true;
}

static int func_of(struct import *i, const struct import_frame *f, bool kernel,
		   struct import_row_frame *out)
{
	struct import_func like = { .kernel = kernel,
				    .told = f->size <= IMPORT_MAX_OFFSET ? (uint32_t)f->size : 0 };
	uint32_t off = f->off < IMPORT_MAX_OFFSET ? (uint32_t)f->off : IMPORT_MAX_OFFSET;
	struct import_func *func;
	bool fresh;
	int ret = dso_of(i, f, kernel, &like.dso);

	if (ret)
		return ret;
	if (f->name.len)
		like.name = import_keep(i, f->name, MAX_BYTES, f->name_coded);
	if (f->placed && like.dso != NO_DSO && in_reach(i, like.dso, f))
		like.placed = true;
	if (like.placed)
		like.addr = f->addr - (f->name.len ? off : 0);
	else if (!f->name.len)
		like.addr = f->addr;
	if ((f->name.len && !like.name) ||
	    table_add(&i->func,
		      table_mix((uintptr_t)like.name ^ like.addr ^ like.told,
				(uint64_t)like.dso << 1 | kernel),
		      &like, &out->func, &fresh) < 0)
		return -ENOMEM;
	func = (struct import_func *)i->func.item + out->func;
	out->off = f->name.len ? off : 0;
	if (like.told > func->size)
		func->size = like.told;
	if (out->off >= func->size)
		func->size = (out->off + 16u) & ~15u;
	i->moved += f->placed && !like.placed && like.dso != NO_DSO;
	return 0;
}

static int task_of(struct import *i, const struct import_sample *s, uint32_t *out)
{
	static const struct import_text unnamed = { "imported", 8 };
	struct task like = { .pid = s->pid, .tid = s->tid, .has_numbers = s->has_task }, *t;
	bool fresh;

	like.comm = import_keep(i, s->comm.len ? s->comm : unnamed, IMPORT_MAX_COMM, false);
	if (!like.comm ||
	    table_add(&i->task,
		      table_mix((uintptr_t)like.comm,
				s->has_task ? (uint64_t)s->pid << 32 | s->tid : UINT64_MAX),
		      &like, out, &fresh) < 0)
		return -ENOMEM;
	t = (struct task *)i->task.item + *out;
	/* A task without a number gets one for each name. The idle task is 0. */
	if (fresh && !s->has_task)
		t->pid = t->tid = !strncmp(like.comm, "swapper", 7) ? 0 : i->next_pid++;
	return 0;
}

/*
 * Stores the index of the sample's event in *out. A sample without one has the first event of the
 * text.
 */
static int event_of(struct import *i, struct import_text name, uint8_t *out)
{
	const char *text = name.len ? import_keep(i, name, 60, false) : "";
	unsigned int k = 0;

	if (!text)
		return -ENOMEM;
	if (i->nevents && !i->event[0][0])
		i->event[0] = text;
	while (k < i->nevents && *text && strcmp(i->event[k], text) != 0)
		k++;
	if (k == PROFILE_MAX_EVENTS) {
		*out = NO_EVENT;
		i->other++;
		return 0;
	}
	if (k == i->nevents)
		i->event[i->nevents++] = text;
	i->of_event[k]++;
	*out = (uint8_t)k;
	return 0;
}

static int make_room(struct import *i)
{
	int ret = ARRAY_FIT(i->frame, i->nframes + STACK_MAX_FRAMES, i->frame_cap);

	return ret ? ret : ARRAY_ROOM(i->sample, i->nsamples, i->sample_cap);
}

static bool in_kernel(const struct import *i, const struct import_frame *f)
{
	return i->opt.kernel || (f->kernel && !i->opt.no_kernel);
}

int import_add(void *ctx, const struct import_sample *s)
{
	struct import *i = ctx;
	uint32_t n = s->n < STACK_MAX_FRAMES ? s->n : STACK_MAX_FRAMES, n_kernel = 0;
	struct text_sample *out;
	int ret = make_room(i);

	if (ret)
		return ret;
	if (__builtin_add_overflow(i->weight, s->weight, &i->weight))
		return -EOVERFLOW;
	out = &i->sample[i->nsamples];
	*out = (struct text_sample){ .time_ns = s->time_ns, .weight = s->weight, .cpu = s->cpu };
	out->first = i->nframes;
	/* A caller of a kernel frame is kernel code, even if the text marks it as user code. */
	for (uint32_t k = 0; k < n; k++)
		if (in_kernel(i, &s->frame[k]))
			n_kernel = k + 1;
	for (uint32_t k = 0; k < n; k++) {
		ret = func_of(i, &s->frame[k], k < n_kernel, &i->frame[i->nframes + k]);
		if (ret)
			return ret;
	}
	ret = task_of(i, s, &out->task);
	if (ret)
		return ret;
	ret = event_of(i, s->event, &out->event);
	if (ret)
		return ret;
	out->n = (uint16_t)n;
	out->n_kernel = (uint16_t)n_kernel;
	i->cut += s->n > n;
	i->nframes += n;
	i->nsamples++;
	if (s->has_time && (!i->has_time || s->time_ns < i->earliest_ns))
		i->earliest_ns = s->time_ns;
	i->has_time |= s->has_time;
	return 0;
}

const char *import_error(int ret)
{
	switch (ret) {
	case -E2BIG:
		return "more different DSOs than a profile may have";
	case -EOVERFLOW:
		return "the weights are too large";
	default:
		return strerror(-ret);
	}
}

/* -- places --------------------------------------------------------------------------------- */

/* Returns true if no function is placed at the function's own address. */
static bool is_free(const struct import_func *f)
{
	if (f->kernel)
		return f->addr >> 63 && (f->addr < KERNEL_TEXT || f->addr >= MODULES_END);
	return f->addr >= USER_LEAST && f->addr < USER_END &&
	       (f->addr < USER_STEP || f->addr >= USER_FREE);
}

/* Gives a function that has no place in the text a place in its DSO, or a free one. */
static void place_anywhere(struct import_func *f, struct import_dso *d, uint64_t nowhere[2])
{
	/* Addresses without a DSO are kept if they are free. */
	if (!d && is_free(f)) {
		f->place = f->addr;
	} else if (!d) {
		f->place = nowhere[f->kernel];
		nowhere[f->kernel] += 16;
	} else {
		/* After the functions placed by the text. */
		if (d->last && d->len < d->last + IMPORT_MAX_OFFSET)
			d->len = d->last + IMPORT_MAX_OFFSET;
		f->place = d->len; /* counted from the DSO's start */
		d->len += f->size;
	}
}

/* Returns the file offset at which the mapping of a program begins. */
static uint64_t dso_start(const struct import_dso *d)
{
	return d->first & ~4095ull;
}

/*
 * Places functions in their DSOs. In the kernel, unnamed ones are placed far after the last name,
 * which would include them otherwise.
 */
static int place_functions(struct import *i, struct err *e)
{
	uint64_t nowhere[2] = { NOWHERE_USER, NOWHERE_KERNEL };
	struct import_func *f = i->func.item;

	for (unsigned int pass = 0; pass < 2; pass++)
		for (size_t k = 0; k < i->func.n; k++) {
			struct import_dso *d = f[k].dso == NO_DSO ? NULL : dso_at(i, f[k].dso);
			bool late = d && f[k].kernel && !f[k].name;

			if (late != (pass == 1))
				continue;
			if (f[k].placed) {
				d->has_unnamed |= late;
				f[k].place = f[k].addr;
				if (d->len < f[k].addr + f[k].size)
					d->len = f[k].addr + f[k].size;
				continue;
			}
			if (late && !d->has_unnamed)
				d->len += UNNAMED_GAP;
			if (d)
				d->has_unnamed |= late;
			place_anywhere(&f[k], d, nowhere);
			if (d && d->len - dso_start(d) >= USER_STEP)
				return err_set(e, E2BIG, "%s: too many functions", d->name);
		}
	return 0;
}

static int place_dsos(struct import *i, struct err *e)
{
	uint64_t module = MODULES;

	for (uint32_t k = 0; k < i->dso.n; k++) {
		struct import_dso *d = dso_at(i, k);

		/* Includes the fence after the last function. */
		d->len = (d->len + 4096) & ~4095ull;
		if (d->place == PLACE_USER) {
			d->base = (k + 1) * (uint64_t)USER_STEP - dso_start(d);
		} else if (d->place == PLACE_KERNEL) {
			d->base = KERNEL_TEXT;
			if (d->len > KERNEL_TEXT_END - KERNEL_TEXT)
				return err_set(e, E2BIG, "too many kernel functions");
		} else {
			d->base = module;
			if (d->len > MODULES_END - module)
				return err_set(e, E2BIG, "too many functions of modules");
			module += d->len + (d->has_unnamed ? MODULE_GAP : 0);
		}
		d->symbols = symtab_create();
		if (!d->symbols)
			return err_nomem(e);
	}
	return 0;
}

/* The run-time range of a function of the kernel. */
struct import_span {
	uint64_t start, end;
};

/* qsort order: by start. */
static int compare_spans(const void *a, const void *b)
{
	const struct import_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Returns how many of the sorted functions begin at or before `at`. */
static size_t count_up_to(const struct import_span *span, size_t n, uint64_t at)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (span[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Stores the named functions of the kernel sorted by address. Returns their number. */
static size_t list_spans(const struct import *i, struct import_span *span)
{
	const struct import_func *f = i->func.item;
	size_t n = 0;

	for (size_t k = 0; k < i->func.n; k++)
		if (f[k].kernel && f[k].name) {
			uint64_t at = dso_at(i, f[k].dso)->base + f[k].place;

			span[n++] = (struct import_span){ at, at + f[k].size };
		}
	qsort(span, n, sizeof(*span), compare_spans);
	return n;
}

/*
 * Returns true if a symbol without a size at the end of the function before `at` would reach `at`.
 * See symtab.h.
 */
static bool is_reached(const struct import_span *span, size_t n, uint64_t at)
{
	size_t behind = count_up_to(span, n, at);
	uint64_t end = behind ? span[behind - 1].end : 0;

	return behind && (at < (end | 4095) + 1 ||
			  (behind < n && span[behind].start - end <= SYMTAB_MAX_GAP));
}

/*
 * Marks the ends of the kernel's functions: kallsyms has no sizes, so a fence symbol is placed
 * after a function that no other one follows at once, and at unnamed code that would get that name.
 * Returns 0, -ENOMEM or -E2BIG.
 */
static int fence_functions(struct import *i)
{
	cleanup_free struct import_span *span = calloc(i->func.n + 1, sizeof(*span));
	struct import_func *f = i->func.item;
	size_t n = span ? list_spans(i, span) : 0;
	int ret = span ? 0 : -ENOMEM;

	for (size_t k = 0; k < i->func.n && !ret; k++) {
		if (!f[k].placed || !f[k].kernel || f[k].name ||
		    !is_reached(span, n, dso_at(i, f[k].dso)->base + f[k].place))
			continue;
		f[k].name = texts_add(&i->texts, FENCE);
		ret = f[k].name ? 0 : -ENOMEM;
	}
	n = ret ? 0 : list_spans(i, span);
	for (size_t k = 0; k < i->func.n && !ret; k++) {
		struct import_dso *d = f[k].dso == NO_DSO ? NULL : dso_at(i, f[k].dso);
		uint64_t at = d ? d->base + f[k].place : 0, end = at + f[k].size;
		size_t behind = count_up_to(span, n, at);

		if (d && f[k].kernel && f[k].name && (behind == n || span[behind].start > end))
			ret = symtab_add(d->symbols, end, 1, 'T', FENCE);
	}
	return ret;
}

/* Symbols of user DSOs have addresses in the file, others run-time addresses. */
static int name_functions(struct import *i, struct err *e)
{
	struct import_func *f = i->func.item;
	int ret = fence_functions(i);

	for (size_t k = 0; k < i->func.n && !ret; k++) {
		struct import_dso *d = f[k].dso == NO_DSO ? NULL : dso_at(i, f[k].dso);
		uint64_t off = f[k].place;

		if (!d)
			continue;
		f[k].place = d->base + off;
		if (f[k].name)
			ret = symtab_add(d->symbols, d->place == PLACE_USER ? off : f[k].place,
					 f[k].size, 'T', f[k].name);
	}
	for (uint32_t k = 0; k < i->dso.n && !ret; k++)
		ret = symtab_freeze(dso_at(i, k)->symbols, e);
	return ret ? err_set(e, -ret, "too many functions: %s", strerror(-ret)) : 0;
}

/* -- writing --------------------------------------------------------------------------------- */

static int make_elf(struct import_dso *d, struct buf *out, struct err *e)
{
	cleanup_free struct userelf *u = calloc(1, sizeof(*u));

	if (!u)
		return err_nomem(e);
	u->type = ET_DYN;
	u->nseg = 1;
	u->seg[0] = (struct userelf_segment){
		.file_len = d->len, .mem_len = d->len, .align = 4096, .flags = PF_R | PF_X
	};
	return elfsynth_write(out, u, d->id, sizeof(d->id), d->symbols, e);
}

/*
 * Derives the build id from the names and places, so that repeated imports do not fill the cache
 * with copies.
 */
static int identify(struct import_dso *d, struct err *e)
{
	struct buf text;

	buf_init(&text);
	buf_printf(&text, "%s", d->name);
	buf_u64(&text, d->len);
	for (size_t k = 0; k < symtab_count(d->symbols); k++) {
		const struct symbol *s = symtab_at(d->symbols, k);

		buf_u64(&text, s->addr);
		buf_u64(&text, s->size);
		buf_add(&text, s->name, strlen(s->name) + 1);
	}
	if (!text.failed)
		perfdata_hash_id(d->id, text.data, text.len);
	buf_deinit(&text);
	return text.failed ? err_nomem(e) : 0;
}

static int write_dsos(struct import *i, struct sink *sink, struct err *e)
{
	struct profile_kernel kernel = { 0 };
	int ret = 0;

	for (uint32_t k = 0; k < i->dso.n; k++)
		if (dso_at(i, k)->place == PLACE_KERNEL) {
			kernel.symbols = dso_at(i, k)->symbols;
			kernel.text = KERNEL_TEXT;
			kernel.end = KERNEL_TEXT + dso_at(i, k)->len;
		}
	ret = sink->ops->kernel(sink, &kernel, e);
	for (uint32_t k = 0; k < i->dso.n && !ret; k++) {
		struct import_dso *d = dso_at(i, k);
		struct profile_module m = { .name = d->name,
					    .addr = d->base,
					    .len = d->len,
					    .time_ns = i->earliest_ns,
					    .symbols = d->symbols };

		if (d->place == PLACE_MODULE)
			ret = sink->ops->module(sink, &m, e);
		else if (d->place == PLACE_USER)
			ret = identify(d, e);
	}
	return ret;
}

static bool equal_mapped(const void *a, const void *b, const void *ctx)
{
	const struct import_mapped *x = a, *y = b;

	(void)ctx;
	return x->pid == y->pid && x->dso == y->dso;
}

static int map_dso(struct import *i, struct sink *sink, uint32_t pid, uint32_t dso, struct err *e)
{
	struct import_mapped like = { pid, dso };
	struct import_dso *d = dso_at(i, dso);
	struct profile_map m = { .pid = pid,
				 .tid = pid,
				 .addr = d->base + dso_start(d),
				 .len = d->len - dso_start(d),
				 .pgoff = dso_start(d),
				 .time_ns = i->earliest_ns,
				 .path = d->name,
				 .build_id = d->id };
	struct buf elf;
	uint32_t index;
	bool fresh;
	int ret = 0;

	if (table_add(&i->mapped, table_mix(pid, dso), &like, &index, &fresh) < 0)
		return err_nomem(e);
	if (!fresh)
		return 0;
	buf_init(&elf);
	if (symtab_count(d->symbols))
		ret = make_elf(d, &elf, e);
	m.elf = elf.data;
	m.elf_len = elf.len;
	ret = ret ? ret : sink->ops->map(sink, &m, e);
	buf_deinit(&elf);
	return ret;
}

/* Reports the names and mappings that a sample needs and that were not reported before. */
static int tell_task(struct import *i, struct sink *sink, const struct text_sample *s,
		     uint64_t time_ns, const char **told, struct err *e)
{
	const struct task *t = (struct task *)i->task.item + s->task;
	const struct import_func *func = i->func.item;
	int ret = 0;

	/* Threads with the same number follow each other in the text, as in time. */
	if (told[s->task] != t->comm) {
		const struct task *all = i->task.item;

		for (size_t k = 0; k < i->task.n; k++)
			if (all[k].tid == t->tid)
				told[k] = NULL;
		told[s->task] = t->comm;
		if (t->tid)
			ret = sink->ops->comm(sink,
					      &(struct profile_comm){ t->pid, t->tid, t->comm,
								      false, time_ns },
					      e);
	}
	for (uint32_t k = s->n_kernel; k < s->n && !ret; k++) {
		uint32_t dso = func[i->frame[s->first + k].func].dso;

		if (dso != NO_DSO)
			ret = map_dso(i, sink, t->pid, dso, e);
	}
	return ret;
}

static int write_sample(struct import *i, struct sink *sink, const struct text_sample *s,
			uint64_t time_ns, uint64_t weight, struct err *e)
{
	struct stack *stack = &i->stack;
	const struct task *t = (struct task *)i->task.item + s->task;
	const struct import_func *func = i->func.item;
	struct profile_sample out = { .pid = t->pid,
				      .tid = t->tid,
				      .cpu = s->cpu,
				      .time_ns = time_ns,
				      .period = weight,
				      .event = i->chosen < 0 ? s->event : 0,
				      .stack = stack };

	stack->n = s->n;
	stack->n_kernel = s->n_kernel;
	stack->end = STACK_END_ROOT;
	for (uint32_t k = 0; k < s->n; k++) {
		const struct import_row_frame *f = &i->frame[s->first + k];

		stack->ip[k] = func[f->func].place + f->off;
		stack->exact[k] = 1;
		stack->quality[k] = FRAME_REGS;
	}
	/* As in files of perf: everything the idle task does counts as idle. */
	out.mode = !t->pid && s->n_kernel ? SAMPLE_IDLE : s->n_kernel ? SAMPLE_KERNEL : SAMPLE_USER;
	return sink->ops->sample(sink, &out, e);
}

/* qsort order: by time, then by position in the text. */
static int by_time(const void *a, const void *b)
{
	const struct text_sample *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Sets the events of *facts and of *info. See import_write(). */
static int choose_events(struct import *i, struct profile_info *info, struct import_facts *facts,
			 struct err *e)
{
	unsigned int n = i->nevents ? i->nevents : 1;

	i->chosen = -1;
	for (unsigned int k = 0; i->opt.event && i->nevents > 1 && k < n; k++)
		if (!strcmp(i->opt.event, i->event[k]))
			i->chosen = (int)k;
	if (i->opt.event && i->nevents > 1 && i->chosen < 0)
		return err_set(e, ENOENT, "no sample has the event %s; the first event is %s",
			       i->opt.event, i->event[0]);
	facts->nevents = i->chosen < 0 ? n : 1;
	for (unsigned int k = 0; k < facts->nevents; k++) {
		unsigned int from = i->chosen < 0 ? k : (unsigned int)i->chosen;
		const char *name = i->nevents ? i->event[from] : "";

		if (i->nevents < 2 && i->opt.event)
			name = i->opt.event;
		utf8_clean(facts->event[k].name, sizeof(facts->event[k].name),
			   *name ? name : "samples");
		facts->event[k].samples = i->of_event[from];
		info->event[k] = info->event[0];
		info->event[k].name = facts->event[k].name;
	}
	info->nevents = facts->nevents;
	facts->other = i->chosen < 0 ? i->other : 0;
	return 0;
}

static int write_samples(struct import *i, struct sink *sink, struct import_facts *facts,
			 struct err *e)
{
	cleanup_free const char **told = calloc(i->task.n + 1, sizeof(*told));
	bool expand = i->opt.counts && i->weight <= IMPORT_MAX_COUNTS;
	uint64_t time_ns = i->earliest_ns;
	int ret = told ? 0 : err_nomem(e);

	/* A text may contain several captures, not in order of time. */
	if (i->has_time)
		qsort(i->sample, i->nsamples, sizeof(*i->sample), by_time);
	for (size_t k = 0; k < i->nsamples && !ret; k++) {
		const struct text_sample *s = &i->sample[k];
		uint64_t n = expand && s->weight ? s->weight : 1;

		if (s->event == NO_EVENT || (i->chosen >= 0 && s->event != i->chosen))
			continue;
		if (i->has_time)
			time_ns = s->time_ns;
		ret = tell_task(i, sink, s, time_ns, told, e);
		for (uint64_t c = 0; c < n && !ret; c++) {
			ret = write_sample(i, sink, s, time_ns, s->weight / n, e);
			facts->samples++;
			if (!i->has_time)
				time_ns += NO_TIME_STEP;
		}
	}
	return ret;
}

int import_write(struct import *i, struct sink *sink, const struct profile_info *info,
		 struct import_facts *facts, struct err *e)
{
	const struct profile_totals totals = { .json = "{\"imported\":true}" };
	struct profile_info own = *info;
	int ret;

	*facts = (struct import_facts){ .weight = i->weight,
					.cut = i->cut,
					.moved = i->moved,
					.functions = i->func.n,
					.dsos = i->dso.n };
	if (!i->has_time)
		i->earliest_ns = NO_TIME_START;
	ret = choose_events(i, &own, facts, e);
	if (ret)
		return ret;
	for (size_t k = 0; k < i->nsamples; k++)
		if (i->sample[k].cpu >= own.vcpus && i->sample[k].cpu < 65536)
			own.vcpus = i->sample[k].cpu + 1;
	ret = place_functions(i, e);
	if (ret)
		return ret;
	ret = place_dsos(i, e);
	if (ret)
		return ret;
	ret = name_functions(i, e);
	if (ret)
		return ret;
	ret = sink->ops->begin(sink, &own, e);
	if (ret)
		return ret;
	ret = write_dsos(i, sink, e);
	if (ret)
		return ret;
	ret = write_samples(i, sink, facts, e);
	if (ret)
		return ret;
	return sink->ops->end(sink, &totals, e);
}

/* -- interface -------------------------------------------------------------------------------- */

int import_create(struct import **out, const struct import_options *opt, struct err *e)
{
	struct import *i = calloc(1, sizeof(*i));

	if (!i)
		return err_nomem(e);
	i->opt = *opt;
	i->next_pid = 1;
	i->dso = TABLE_OF(struct import_dso, equal_dso);
	i->func = TABLE_OF(struct import_func, equal_func);
	i->task = TABLE_OF(struct task, equal_task);
	i->mapped = TABLE_OF(struct import_mapped, equal_mapped);
	*out = i;
	return 0;
}

void import_destroy(struct import *i)
{
	if (!i)
		return;
	for (uint32_t k = 0; k < i->dso.n; k++)
		symtab_destroy(dso_at(i, k)->symbols);
	table_deinit(&i->dso);
	table_deinit(&i->func);
	table_deinit(&i->task);
	table_deinit(&i->mapped);
	texts_deinit(&i->texts);
	free(i->frame);
	free(i->sample);
	free(i);
}
