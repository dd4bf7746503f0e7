/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/serve.h"

#include <errno.h>
#include <string.h>

#define MAX_STACK_ALIGN (UINT32_C(1) << 20)

/* -- guest memory ------------------------------------------------------------------------- */

/* Returns whether all of [host, host + len) is guest memory. */
static bool is_guest_memory(const struct serve_memory *m, uint64_t host, uint64_t len)
{
	for (unsigned int i = 0; i < m->n && i < GMEM_MAX_REGIONS; i++) {
		const struct gmem_region *r = &m->region[i];
		uint64_t off = host - (uint64_t)(uintptr_t)r->host;

		if (off < r->size && len <= r->size - off)
			return true;
	}
	return false;
}

size_t serve_memory(const struct serve_memory *m, const void *ask, size_t len,
		    struct serve_answer *out)
{
	struct serve_request a;

	if (len != sizeof(a))
		return 0;
	memcpy(&a, ask, sizeof(a));
	if (!a.len || a.len > SERVE_MAX || a.tables > 1)
		return 0;
	out->number = a.number;
	out->ret = is_guest_memory(m, a.host, a.len)
			   ? m->read(m->ctx, a.tables, a.host, out->bytes, a.len)
			   : -EFAULT;
	return SERVE_ANSWER_HEAD + (out->ret ? 0 : a.len);
}

/* -- orders ------------------------------------------------------------------------------- */

/* Returns whether the byte of a bool is one: any other value is undefined to read as bool. */
static bool is_bool(const bool *b)
{
	uint8_t byte;

	memcpy(&byte, b, sizeof(byte));
	return byte <= 1;
}

static bool is_control(const struct serve_control *c)
{
	return c->period >= SERVE_LEAST_PERIOD && c->period <= INT64_MAX &&
	       c->stack_max <= SAMPLE_MAX_SLICE && c->stack_max % 8 == 0 && c->collect <= 1 &&
	       c->armed <= 1;
}

/*
 * Checks a plan: vmm/capture/capture_task.c copies comm_size bytes to `comm`, and entries and nodes
 * to SAMPLE_MAX_RETURNS bytes.
 */
static bool is_task(const struct capture_task_plan *t)
{
	const struct capture_returns_plan *r = &t->returns;

	return is_bool(&t->known) && is_bool(&t->percpu) && is_bool(&t->members) &&
	       is_bool(&t->other_kernel) && is_bool(&r->top) && t->comm_size <= SAMPLE_COMM &&
	       t->stack_align <= MAX_STACK_ALIGN && !(t->stack_align & (t->stack_align - 1)) &&
	       r->entry <= SAMPLE_MAX_RETURNS && r->unit <= SAMPLE_MAX_RETURNS &&
	       r->node <= SAMPLE_MAX_RETURNS;
}

static bool lies_within(uint32_t off, uint32_t len, uint32_t span)
{
	return off <= span && len <= span - off;
}

/*
 * Checks a layout: vmm/capture/capture_python.c copies `span` bytes of a frame, and reads words and
 * bytes in them.
 */
static bool is_layout(const struct capture_python_layout *l)
{
	return is_bool(&l->cframe) && l->span <= CAPTURE_PYTHON_MAX_SPAN &&
	       lies_within(l->code, 8, l->span) && lies_within(l->previous, 8, l->span) &&
	       lies_within(l->instr, 8, l->span) && lies_within(l->owner, 1, l->span) &&
	       (l->is_entry == CAPTURE_NONE || lies_within(l->is_entry, 1, l->span));
}

int serve_order(struct serve_order *out, const void *message, size_t len)
{
	struct serve_order o;
	bool good;

	if (len != sizeof(o))
		return -EINVAL;
	memcpy(&o, message, sizeof(o));
	switch (o.op) {
	case SERVE_START:
	case SERVE_END:
	case SERVE_JOIN:
	case SERVE_REST:
	case SERVE_RESUME:
	case SERVE_SLIDE:
		good = true;
		break;
	case SERVE_CONTROL:
		good = is_control(&o.u.control);
		break;
	case SERVE_TASK:
		good = is_task(&o.u.task);
		break;
	case SERVE_LAYOUT:
		good = is_layout(&o.u.layout);
		break;
	case SERVE_THREAD:
		good = o.u.thread.layout < CAPTURE_PYTHON_LAYOUTS;
		break;
	default:
		good = false;
	}
	if (!good)
		return -EINVAL;
	*out = o;
	return 0;
}
