/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies the frames of Python's interpreter while the vCPU is stopped: the thread changes them
 * with each of its calls, so a later read would see others. It is part of capture: no allocation
 * during a sample, no I/O, no locks.
 *
 * It copies only numbers, whatever they mean: the code object, the instruction, and four words
 * that identify the code object later. Names are read afterwards (symbolizer/python), when the
 * words can be compared.
 *
 * A thread is identified by its program's mm and by fs_base, which is its pthread_t in glibc and
 * musl. The thread's state contains the same number, so that a freed state, or a table entry that
 * is being written, is not used.
 */
#include "vmm/capture/capture_python.h"

#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define USER_BITS 56
/* Maximum number of frames that are passed over: Python's own limit for a thread is 1000. */
#define MAX_STEPS 2048u
#define NSLOTS VM_PYTHON_THREADS

struct python_slot {
	atomic_uint_fast64_t mm, fs_base, tstate;
	atomic_uint layout;
};

struct capture_python {
	/* Each one is written once, before nlayouts counts it. */
	struct capture_python_layout layout[CAPTURE_PYTHON_LAYOUTS];
	atomic_uint nlayouts;
	struct python_slot slot[NSLOTS];
};

static struct python_slot *slot_of(struct capture_python *p, uint64_t mm, uint64_t fs_base)
{
	uint64_t h = (mm ^ (fs_base << 7)) * 0x9e3779b97f4a7c15u;

	return &p->slot[h >> 52 & (NSLOTS - 1)];
}

int capture_python_find_layout(struct vm *vm, const struct capture_python_layout *layout)
{
	struct capture_python *p = atomic_load(&vm->python);
	unsigned int n;

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		atomic_store_explicit(&vm->python, p, memory_order_release);
	}
	n = atomic_load(&p->nlayouts);
	if (n == CAPTURE_PYTHON_LAYOUTS)
		return -ENOSPC;
	p->layout[n] = *layout;
	atomic_store_explicit(&p->nlayouts, n + 1, memory_order_release);
	machine_changed(vm, VM_CHANGED_LAYOUT, layout);
	return (int)n;
}

void capture_python_find_thread(struct vm *vm, const struct capture_python_thread *t)
{
	struct capture_python *p = atomic_load(&vm->python);
	struct python_slot *s = p ? slot_of(p, t->mm, t->fs_base) : NULL;

	if (!s)
		return;
	atomic_store(&s->mm, 0);
	atomic_store(&s->fs_base, t->fs_base);
	atomic_store(&s->tstate, t->tstate);
	atomic_store(&s->layout, t->layout);
	atomic_store_explicit(&s->mm, t->mm, memory_order_release);
	machine_changed(vm, VM_CHANGED_THREAD, t);
}

/* -- one sample ---------------------------------------------------------------------- */

struct python_walk {
	const struct capture_view *w;
	const struct capture_python_layout *l;
	struct sample_python *out;
	uint64_t tstate, cframe, frame;
	uint64_t top[2]; /* range without frames: the free rest of the newest memory chunk */
	uint32_t n;
	bool skipped; /* frames beyond the limit, of the same call of the interpreter */
};

static bool read_at(const struct capture_view *w, uint64_t va, void *dst, size_t len)
{
	return !(va >> USER_BITS) && capture_read(w, va, dst, len) == len;
}

static bool read_word(const struct capture_view *w, uint64_t va, uint64_t *out)
{
	return read_at(w, va, out, sizeof(*out));
}

static uint64_t word_of(const uint8_t *b, uint32_t off)
{
	uint64_t v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

static bool take_frame(struct python_walk *k, const uint8_t *b)
{
	const struct capture_python_layout *l = k->l;
	struct sample_python *f = &k->out[k->n];

	*f = (struct sample_python){
		.frame = k->frame,
		.code = word_of(b, l->code),
		.instr = word_of(b, l->instr),
	};
	for (unsigned int i = 0; i < 4; i++)
		if (l->id[i] != CAPTURE_NONE && !read_word(k->w, f->code + l->id[i], &f->id[i]))
			return false;
	k->n++;
	return true;
}

/*
 * Leaves the structure of the interpreter call (3.11) by which this frame was entered, for the
 * previous one.
 */
static bool leave_cframe(struct python_walk *k, uint64_t previous)
{
	uint64_t current;

	k->out[k->n - 1].entry = k->cframe;
	if (!previous)
		return true;
	return read_word(k->w, k->cframe + k->l->cframe_previous, &k->cframe) &&
	       read_word(k->w, k->cframe + k->l->cframe_current, &current) && current == previous;
}

/*
 * Returns whether the limit is reached. After that, the walk only looks for the frame at which the
 * interpreter was entered.
 */
static bool is_full(const struct python_walk *k)
{
	return k->n == SAMPLE_MAX_PYTHON;
}

/* Moves one frame outward. Returns the state of the walk. */
static enum sample_python_state step(struct python_walk *k)
{
	const struct capture_python_layout *l = k->l;
	uint8_t b[CAPTURE_PYTHON_MAX_SPAN];
	uint64_t previous;

	if (k->frame % 8)
		return SAMPLE_PYTHON_CHANGING;
	if (!read_at(k->w, k->frame, b, l->span))
		return SAMPLE_PYTHON_UNREADABLE;
	previous = word_of(b, l->previous);
	if (l->shim && b[l->owner] == l->shim) {
		/* Two consecutive shim frames have no Python frame between them. */
		if (k->n && !k->out[k->n - 1].entry)
			k->out[k->n - 1].entry = k->frame;
	} else {
		/* Frames that the interpreter has left already are above this one. */
		if (b[l->owner] == l->heap_owner && k->frame >= k->top[0] && k->frame < k->top[1])
			return SAMPLE_PYTHON_CHANGING;
		k->skipped |= is_full(k);
		if (!is_full(k) && !take_frame(k, b))
			return SAMPLE_PYTHON_UNREADABLE;
		if (l->is_entry != CAPTURE_NONE && b[l->is_entry] && !leave_cframe(k, previous))
			return SAMPLE_PYTHON_CHANGING;
	}
	if (previous == k->frame)
		return SAMPLE_PYTHON_CHANGING;
	k->frame = previous;
	return SAMPLE_PYTHON_WHOLE;
}

static enum sample_python_state walk(struct python_walk *k, uint64_t fs_base)
{
	const struct capture_python_layout *l = k->l;
	enum sample_python_state state = SAMPLE_PYTHON_WHOLE;
	uint64_t id;

	if (!read_word(k->w, k->tstate + l->thread_id, &id) ||
	    !read_word(k->w, k->tstate + l->current, &k->frame))
		return SAMPLE_PYTHON_UNREADABLE;
	if (id != fs_base)
		return SAMPLE_PYTHON_NONE;
	if (l->top != CAPTURE_NONE && !read_at(k->w, k->tstate + l->top, k->top, sizeof(k->top)))
		return SAMPLE_PYTHON_UNREADABLE;
	if (l->cframe) {
		k->cframe = k->frame;
		if (!read_word(k->w, k->cframe + l->cframe_current, &k->frame))
			return SAMPLE_PYTHON_UNREADABLE;
	}
	for (unsigned int i = 0; k->frame && state == SAMPLE_PYTHON_WHOLE; i++) {
		if (is_full(k) && k->out[k->n - 1].entry)
			break;
		if (i == MAX_STEPS)
			return SAMPLE_PYTHON_CHANGING;
		state = step(k);
	}
	if (state != SAMPLE_PYTHON_WHOLE || (!k->skipped && !k->frame))
		return state;
	if (k->skipped)
		k->out[k->n - 1].entry |= SAMPLE_PYTHON_SKIPPED;
	return SAMPLE_PYTHON_CUT;
}

void capture_python(const struct vcpu *v, const struct capture_view *w, struct sample *s)
{
	struct capture_python *p = atomic_load_explicit(&v->vm->python, memory_order_acquire);
	struct python_walk k = { .w = w };
	struct python_slot *slot;
	unsigned int layout;

	if (!p || s->task.state != SAMPLE_TASK_FOUND || !s->task.mm || s->mode == SAMPLE_IDLE)
		return;
	slot = slot_of(p, s->task.mm, s->regs.fs_base);
	if (atomic_load_explicit(&slot->mm, memory_order_acquire) != s->task.mm ||
	    atomic_load(&slot->fs_base) != s->regs.fs_base)
		return;
	k.tstate = atomic_load(&slot->tstate);
	layout = atomic_load(&slot->layout);
	if (layout >= atomic_load_explicit(&p->nlayouts, memory_order_acquire))
		return;
	k.l = &p->layout[layout];
	s->stack_len = (s->stack_len + 7) & ~7u;
	k.out = (struct sample_python *)(s->stack + s->stack_len);
	s->python_state = (uint8_t)walk(&k, s->regs.fs_base);
	s->python = (struct sample_slice){ k.tstate, s->stack_len, 0 };
	/* Frames that are inconsistent are discarded. */
	if (s->python_state == SAMPLE_PYTHON_WHOLE || s->python_state == SAMPLE_PYTHON_CUT)
		s->python.len = k.n * (uint32_t)sizeof(struct sample_python);
	s->stack_len += s->python.len;
}
