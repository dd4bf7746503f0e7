/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the task that runs on a stopped vCPU: the pointer to the current task and a few of its
 * members. It is part of capture: no allocation, no I/O, no locks.
 *
 * The pointer is a per-CPU variable, relative to the kernel's GS base. While a program runs, and
 * during some instructions of entry code, GS is the program's, and the kernel's value is in
 * MSR_KERNEL_GS_BASE (SWAPGS, SDM vol. 2).
 */
#include "vmm/capture/capture_task.h"

#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/msr.h"
#include "vmm/capture/capture.h"

#include <string.h>
#include <sys/ioctl.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* With page-table isolation, a program uses the second of two adjacent tables (Linux). */
#define CR3_USER_TABLE (UINT64_C(1) << 12)
/*
 * The share of SAMPLE_MAX_RETURNS for the function graph tracer, and the maximum number of probed
 * functions in one stack.
 */
#define MAX_TRACED (SAMPLE_MAX_RETURNS - 512u)
#define MAX_PROBED 8u
/*
 * Reading MSR_KERNEL_GS_BASE costs a system call at each sample of a program. While programs run,
 * it is a constant of the processor (Linux). Only another kernel has another value, and it takes
 * longer than this to boot to its first program.
 */
#define SWAPPED_GS_NS 100000000u

const struct capture_task_plan *capture_plan_of_task(const struct vm *vm)
{
	unsigned int n = atomic_load_explicit(&vm->late_tasks, memory_order_acquire);

	return n ? &vm->late_task[n - 1] : &vm->cfg.plan.task;
}

static bool read_msrs(const struct vcpu *v, uint64_t *lstar, uint64_t *kernel_gs)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry[2];
	} m = { .head.nmsrs = 2,
		.entry = { { .index = MSR_LSTAR }, { .index = MSR_KERNEL_GS_BASE } } };

	if (ioctl(v->fd, KVM_GET_MSRS, &m) != 2)
		return false;
	*lstar = m.entry[0].data;
	*kernel_gs = m.entry[1].data;
	return true;
}

uint64_t capture_linked_address(const struct vcpu *v, uint64_t addr)
{
	const struct capture_plan *plan = &v->vm->cfg.plan;

	if (addr < plan->image_start || addr >= plan->image_end)
		return addr;
	if (plan->slide_unknown && !atomic_load(&v->vm->slide_known))
		return 0;
	return addr + atomic_load_explicit(&v->vm->slide, memory_order_relaxed);
}

/*
 * Returns the address on this vCPU of the per-CPU variable at runtime address addr, or 0 if it is
 * not known yet.
 */
static uint64_t address_on_vcpu(const struct vcpu *v, uint64_t addr, uint64_t gs)
{
	/*
	 * Per-CPU variables that are linked among the kernel's addresses (since 6.15) are also
	 * used there at first, with GS 0: the boot processor gets its own area only in
	 * setup_per_cpu_areas(), seconds later on a slow host.
	 */
	if (!gs && (addr & KERNEL_HALF) && !v->index && (!v->foreign || v->exact) && !v->kernel_gs)
		return addr;
	return gs ? gs + addr : 0;
}

uint64_t capture_address(const struct vcpu *v, uint64_t addr, bool percpu, uint64_t gs)
{
	const uint64_t linked = addr;

	addr = capture_linked_address(v, addr);
	return !percpu || (linked && !addr) ? addr : address_on_vcpu(v, addr, gs);
}

uint64_t capture_current_address(const struct vcpu *v, const struct capture_task_plan *plan,
				 uint64_t gs)
{
	if (!plan->other_kernel)
		return capture_address(v, plan->current, plan->percpu, gs);
	return plan->percpu ? address_on_vcpu(v, plan->current, gs) : plan->current;
}

uint64_t capture_percpu_base(struct vcpu *v, const struct kvm_sregs *sr, struct sample *s)
{
	const struct capture_plan *plan = &v->vm->cfg.plan;
	bool kernel_gs = (sr->cs.dpl & 3) != 3 && (sr->gs.base & KERNEL_HALF);
	bool in_program = (sr->cs.dpl & 3) == 3;
	bool swapped = in_program && v->swapped_gs && s->time_ns - v->swapped_ns < SWAPPED_GS_NS;
	bool need_gs = !v->foreign && capture_plan_of_task(v->vm)->known &&
		       capture_plan_of_task(v->vm)->percpu && !kernel_gs && !swapped;
	uint64_t lstar, other = 0;

	if (kernel_gs)
		v->kernel_gs = sr->gs.base;
	if ((need_gs || (plan->want_lstar && !v->lstar && !v->foreign)) &&
	    read_msrs(v, &lstar, &other) && (lstar & KERNEL_HALF))
		v->lstar = lstar;
	s->lstar = v->lstar;
	if (kernel_gs)
		return sr->gs.base;
	/* The base is a constant of each processor once the kernel has set it up (Linux). */
	if (v->foreign)
		return v->kernel_gs;
	if (swapped)
		return v->swapped_gs;
	/* Before the kernel has set it up, there is no base. */
	if (!(other & KERNEL_HALF))
		return 0;
	if (in_program) {
		v->swapped_gs = other;
		v->swapped_ns = s->time_ns;
	}
	v->kernel_gs = other;
	return other;
}

static bool read_kernel(const struct capture_view *w, uint64_t va, void *dst, size_t len)
{
	return capture_read(w, va, dst, len) == len;
}

/*
 * Reads the number of changes of the mm. A record without it still counts as complete. Returns
 * whether it was read.
 */
static bool read_changes(const struct capture_task_plan *plan, const struct capture_view *w,
			 uint64_t mm, uint32_t *out)
{
	bool lacking = w->mem->remote && w->mem->remote->lacking;
	bool read = mm && plan->mm_changes != CAPTURE_NONE &&
		    read_kernel(w, mm + plan->mm_changes, out, sizeof(*out));

	if (w->mem->remote)
		w->mem->remote->lacking = lacking;
	return read;
}

void capture_task(const struct vcpu *v, const struct capture_view *user, uint64_t gs,
		  struct sample *s)
{
	const struct capture_task_plan *plan = capture_plan_of_task(v->vm);
	struct capture_view w = *user;
	struct sample_task *t = &s->task;
	uint64_t at, task;

	memset(t, 0, sizeof(*t));
	if (!plan->known)
		return;
	t->state = SAMPLE_TASK_NOT_YET;
	at = capture_current_address(v, plan, gs);
	if (!at)
		return;
	t->state = SAMPLE_TASK_UNREADABLE;
	if (!read_kernel(&w, at, &task, sizeof(task))) {
		w.root.cr3 &= ~CR3_USER_TABLE;
		if (!read_kernel(&w, at, &task, sizeof(task)))
			return;
	}
	if (!(task & KERNEL_HALF)) {
		t->state = SAMPLE_TASK_NOT_YET;
		return;
	}
	t->addr = task;
	t->state = SAMPLE_TASK_POINTER;
	if (!plan->members)
		return;
	t->state = SAMPLE_TASK_UNREADABLE;
	if (!read_kernel(&w, task + plan->tid, &t->tid, sizeof(t->tid)) ||
	    !read_kernel(&w, task + plan->pid, &t->pid, sizeof(t->pid)) ||
	    !read_kernel(&w, task + plan->mm, &t->mm, sizeof(t->mm)) ||
	    (plan->start != CAPTURE_NONE &&
	     !read_kernel(&w, task + plan->start, &t->start, sizeof(t->start))) ||
	    (plan->stack != CAPTURE_NONE &&
	     !read_kernel(&w, task + plan->stack, &t->stack, sizeof(t->stack))) ||
	    !read_kernel(&w, task + plan->comm, t->comm, plan->comm_size) ||
	    (plan->exec_id != CAPTURE_NONE &&
	     !read_kernel(&w, task + plan->exec_id, &t->exec_id, sizeof(t->exec_id))))
		return;
	t->state = SAMPLE_TASK_FOUND;
	t->has_changes = read_changes(plan, &w, t->mm, &s->mm_changes);
}

static void returns_of_tracer(const struct capture_returns_plan *plan, const struct capture_view *w,
			      struct sample *s)
{
	uint64_t base, start, len;
	int32_t index;

	if (!plan->entry || !read_kernel(w, s->task.addr + plan->stack, &base, sizeof(base)) ||
	    !(base & KERNEL_HALF) || base % 8 ||
	    !read_kernel(w, s->task.addr + plan->index, &index, sizeof(index)) ||
	    index < (plan->top ? -1 : 0))
		return;
	len = ((uint64_t)index + plan->top) * plan->unit + plan->entry;
	start = len > MAX_TRACED ? len - MAX_TRACED : 0;
	start = (start + 7) & ~7ull;
	s->returns.va = base + start;
	s->returns.len =
		(uint32_t)capture_read(w, base + start, s->stack + s->stack_len, len - start) & ~7u;
}

static void returns_of_probes(const struct capture_returns_plan *plan, const struct capture_view *w,
			      struct sample *s)
{
	uint64_t at = s->task.addr + plan->list;

	if (!plan->node)
		return;
	for (unsigned int n = 0; n < MAX_PROBED; n++) {
		uint64_t next;

		if (s->returns.len + plan->node > SAMPLE_MAX_RETURNS ||
		    !read_kernel(w, at, &next, sizeof(next)) || !(next & KERNEL_HALF) || next % 8 ||
		    !read_kernel(w, next - plan->link, s->stack + s->stack_len + s->returns.len,
				 plan->node))
			return;
		s->returns.len += plan->node;
		at = next;
	}
}

void capture_returns(const struct vcpu *v, const struct capture_view *w, struct sample *s)
{
	const struct capture_returns_plan *plan = &capture_plan_of_task(v->vm)->returns;
	bool lacking = w->mem->remote && w->mem->remote->lacking;

	if (s->task.state != SAMPLE_TASK_FOUND)
		return;
	s->returns.off = s->stack_len;
	returns_of_tracer(plan, w, s);
	returns_of_probes(plan, w, s);
	s->stack_len += s->returns.len;
	/* A record without these words still counts as complete. */
	if (w->mem->remote)
		w->mem->remote->lacking = lacking;
}
