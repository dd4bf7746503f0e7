/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/peek_capture.h"

#include "vmm/attach/attach.h"
#include "vmm/pvm/peek_answer.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/capture_task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fetch_record(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	const struct peek *p = r->ctx;
	int ret = peek_record_read(&p->block->a, host, dst, len);

	if (ret)
		r->lacking = true;
	return ret;
}

void peek_capture_init(struct peek_capture *c, const struct gmem *mem)
{
	gmem_remote_init_by(&c->record, fetch_record, &c->peek);
	c->record.as_is = true;
	c->mem = *mem;
	c->mem.remote = &c->record;
}

static void peek_capture_close(struct peek_capture *c)
{
	peek_close(&c->peek);
	free(c);
}

static int peek_capture_open(struct peek_capture **out, const struct vm_sampling *vm, struct err *e)
{
	struct peek_capture *c;
	int ret;

	if (vm->plan.want_insn)
		return err_set(e, ENOTSUP,
			       "addresses that programs use (--mem) need segment bases, which BPF "
			       "does not see");
	if (vm->plan.want_fs)
		return err_set(e, ENOTSUP,
			       "threads of Python (--python) are known by their FS base, which BPF "
			       "does not see");
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(e);
	ret = peek_open(&c->peek, e);
	if (ret)
		peek_capture_close(c);
	else
		*out = c;
	return ret;
}

static void peek_capture_see_memory(struct peek_capture *c, const struct gmem *mem)
{
	peek_set_memory(&c->peek, mem);
	peek_capture_init(c, mem);
}

static int peek_capture_aim(struct peek_capture *c, const struct pvm_peek_aim *at, struct err *e)
{
	int ret = 0;

	peek_capture_see_memory(c, at->mem);
	for (unsigned int i = 0; !ret && i < at->n; i++)
		ret = peek_aim(&c->eye[i], at->pid, at->target[i].tid, at->target[i].fd,
			       at->target[i].id, e);
	return ret;
}

static bool peek_capture_is_usable(const struct peek_capture *c)
{
	return peek_is_usable(&c->peek);
}

static void want_member(struct peek_want *w, uint32_t off, uint32_t len)
{
	if (off != CAPTURE_NONE)
		w->member[w->nmembers++] = (struct peek_member){ off, len };
}

/* Returns the memory that capture_task() and the copy of a program's stack will read. */
static struct peek_want want_of(const struct vcpu *v)
{
	const struct capture_task_plan *plan = capture_plan_of_task(v->vm);
	struct peek_want w = { .stack_len = v->stack_max };

	if (!plan->known)
		return w;
	w.current = capture_current_address(v, plan, v->kernel_gs);
	if (!plan->members)
		return w;
	want_member(&w, plan->tid, sizeof(uint32_t));
	want_member(&w, plan->pid, sizeof(uint32_t));
	want_member(&w, plan->mm, sizeof(uint64_t));
	want_member(&w, plan->start, sizeof(uint64_t));
	want_member(&w, plan->stack, sizeof(uint64_t));
	want_member(&w, plan->comm, plan->comm_size);
	want_member(&w, plan->exec_id, sizeof(uint32_t));
	return w;
}

static enum peek_status peek_capture_take(struct peek_capture *c, const struct vcpu *v,
					  uint64_t *taken_ns)
{
	struct peek_want want;
	enum peek_status s;

	if (!peek_is_usable(&c->peek))
		return PEEK_NONE;
	want = want_of(v);
	s = peek_take(&c->peek, &c->eye[v->index], &want);
	*taken_ns = c->peek.taken_ns;
	return s;
}

bool peek_capture_sample(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	struct capture_view view;

	peek_regs_to_kvm(&c->peek.block->a.regs, &regs, &sregs);
	c->record.lacking = false;
	view = capture_view_of(&regs, &sregs, &c->mem);
	(void)capture_sample_of(v, &view, cause);
	return !c->record.lacking;
}

static void peek_capture_compare(struct peek_capture *c, unsigned int vcpu,
				 const struct kvm_run *run)
{
	if (peek_is_usable(&c->peek))
		peek_compare(&c->peek, &c->eye[vcpu], run);
}

static void peek_capture_facts(const struct peek_capture *c, struct attach_facts *out)
{
	const struct peek *p = &c->peek;

	out->bpf = peek_is_usable(p);
	if (p->differs.code)
		snprintf(out->why_not, sizeof(out->why_not), "%s", p->differs.text);
	memcpy(out->peeks, p->count, sizeof(out->peeks));
	out->compared = p->compared;
}

const struct pvm_peek_ops *pvm_peek_ops(void)
{
	static const struct pvm_peek_ops ops = {
		.open = peek_capture_open,
		.aim = peek_capture_aim,
		.see_memory = peek_capture_see_memory,
		.close = peek_capture_close,
		.is_usable = peek_capture_is_usable,
		.take = peek_capture_take,
		.sample = peek_capture_sample,
		.compare = peek_capture_compare,
		.facts = peek_capture_facts,
	};

	return &ops;
}
