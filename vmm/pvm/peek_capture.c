/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/peek_capture.h"

#include <errno.h>
#include <string.h>

static int fetch_record(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	const struct peek *p = r->ctx;
	int ret = peek_record_read(&p->block->a, host, dst, len);

	if (ret)
		r->lacking = true;
	return ret;
}

void peek_capture_init(struct peek_capture *c)
{
	gmem_remote_init_by(&c->record, fetch_record, &c->peek);
	c->record.as_is = true;
}

int peek_capture_open(struct peek_capture *c, struct vm *vm, struct err *e)
{
	int ret;

	if (vm->cfg.plan.want_insn)
		return err_set(e, ENOTSUP,
			       "addresses that programs use (--mem) need segment bases, which BPF "
			       "does not see");
	ret = peek_open(&c->peek, e);
	if (ret)
		return ret;
	peek_set_memory(&c->peek, &vm->mem);
	peek_capture_init(c);
	return 0;
}

void peek_capture_close(struct peek_capture *c)
{
	peek_close(&c->peek);
}

static void want_member(struct peek_want *w, uint32_t off, uint32_t len)
{
	if (off != CAPTURE_NONE)
		w->member[w->nmembers++] = (struct peek_member){ off, len };
}

/* What capture_task() and the stack of a program will take. */
static struct peek_want want_of(const struct vcpu *v)
{
	const struct capture_task_plan *plan = capture_plan_of_task(v->vm);
	struct peek_want w = { .stack_len = v->stack_max };

	if (!plan->known)
		return w;
	w.current = capture_address(v, plan->current, plan->percpu, v->kernel_gs);
	if (!plan->members)
		return w;
	want_member(&w, plan->tid, sizeof(uint32_t));
	want_member(&w, plan->pid, sizeof(uint32_t));
	want_member(&w, plan->mm, sizeof(uint64_t));
	want_member(&w, plan->start, sizeof(uint64_t));
	want_member(&w, plan->stack, sizeof(uint64_t));
	want_member(&w, plan->comm, plan->comm_size);
	return w;
}

enum peek_status peek_capture_take(struct peek_capture *c, const struct vcpu *v)
{
	struct peek_want want;

	if (!peek_is_usable(&c->peek))
		return PEEK_NONE;
	want = want_of(v);
	return peek_take(&c->peek, &c->eye[v->index], &want);
}

bool peek_capture_sample(struct peek_capture *c, struct vcpu *v, const struct capture_cause *cause)
{
	struct kvm_run *page = v->run, *run = (struct kvm_run *)(void *)c->run;
	struct gmem_remote *remote = v->vm->mem.remote;

	peek_regs_to_run(&c->peek.block->a.regs, run);
	c->record.lacking = false;
	v->run = run;
	v->vm->mem.remote = &c->record;
	(void)capture_sample(v, cause);
	v->vm->mem.remote = remote;
	v->run = page;
	return !c->record.lacking;
}

void peek_capture_compare(struct peek_capture *c, const struct vcpu *v)
{
	if (peek_is_usable(&c->peek))
		peek_compare(&c->peek, &c->eye[v->index], v->run);
}
