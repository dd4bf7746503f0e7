/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture: copies the state of a stopped vCPU into its ring.
 *
 * Runs on the thread that has stopped the vCPU, for our own vCPUs between two KVM_RUNs. No
 * allocation, no I/O, no locks; the only system calls are KVM_GET_MP_STATE, where the vCPU may be
 * halted, and KVM_GET_MSRS (capture_task.c).
 */
#include "vmm/capture/capture.h"

#include "base/count.h"
#include "base/linux_regs.h"
#include "base/gmem_remote.h"
#include "vmm/hlt.h"
#include "vmm/machine.h"
#include "vmm/pvm.h"
#include "vmm/capture/capture_python.h"
#include "vmm/capture/capture_task.h"
#include "vmm/kvm.h"

#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_IF (1u << 9)
#define CR0_PE (1u << 0)
#define CR4_LA57 (1u << 12)
#define CR4_VMXE (1u << 13)
#define EFER_SVME (1u << 12)
#define RESET_RIP 0xfff0u
/*
 * Linux: the only page of the kernel's half whose code programs run
 * (Documentation/arch/x86/x86_64/mm.rst).
 */
#define VSYSCALL_PAGE UINT64_C(0xffffffffff600000)
#define VSYSCALL_LEN 0x1000u
#define RESET_CS 0xf000u

/* Offsets in an interrupt return frame (SDM vol. 3, 6.14.1) at the end of a stack. */
#define IRET_RSP_FROM_END 16u
#define IRET_CS_FROM_END 32u
#define PAGE_BYTES 4096u

void capture_regs(const struct kvm_regs *r, const struct kvm_sregs *s, struct sample_regs *out)
{
	out->gpr[GPR_RAX] = r->rax;
	out->gpr[GPR_RCX] = r->rcx;
	out->gpr[GPR_RDX] = r->rdx;
	out->gpr[GPR_RBX] = r->rbx;
	out->gpr[GPR_RSP] = r->rsp;
	out->gpr[GPR_RBP] = r->rbp;
	out->gpr[GPR_RSI] = r->rsi;
	out->gpr[GPR_RDI] = r->rdi;
	out->gpr[GPR_R8] = r->r8;
	out->gpr[GPR_R9] = r->r9;
	out->gpr[GPR_R10] = r->r10;
	out->gpr[GPR_R11] = r->r11;
	out->gpr[GPR_R12] = r->r12;
	out->gpr[GPR_R13] = r->r13;
	out->gpr[GPR_R14] = r->r14;
	out->gpr[GPR_R15] = r->r15;
	out->rip = r->rip;
	out->rflags = r->rflags;
	out->cr0 = s->cr0;
	out->cr2 = s->cr2;
	out->cr3 = s->cr3;
	out->cr4 = s->cr4;
	out->cr8 = s->cr8;
	out->efer = s->efer;
	out->fs_base = s->fs.base;
	out->gs_base = s->gs.base;
	out->cs = s->cs.selector;
	out->ss = s->ss.selector;
}

struct mmu_root capture_root(const struct kvm_sregs *s)
{
	return (struct mmu_root){ .cr0 = s->cr0, .cr3 = s->cr3, .cr4 = s->cr4, .efer = s->efer };
}

struct capture_view capture_view_of(const struct kvm_regs *regs, const struct kvm_sregs *sregs,
				    const struct gmem *mem)
{
	return (struct capture_view){
		.regs = regs, .sregs = sregs, .mem = mem, .root = capture_root(sregs)
	};
}

struct capture_view capture_view_of_run(const struct kvm_run *run, const struct gmem *mem)
{
	struct capture_view w = capture_view_of(&run->s.regs.regs, &run->s.regs.sregs, mem);

	w.flags = run->flags;
	w.has_flags = true;
	return w;
}

static struct capture_view capture_view_of_vcpu(const struct vcpu *v)
{
	return capture_view_of_run(v->run, &v->vm->mem);
}

bool capture_is_reset(const struct kvm_regs *r, const struct kvm_sregs *s)
{
	return r->rip == RESET_RIP && s->cs.selector == RESET_CS && !(s->cr0 & CR0_PE) && !s->cr3 &&
	       !s->efer;
}

/* One stack, from the first byte in use to its end. */
struct capture_extent {
	uint64_t va, end; /* end 0: unknown */
	bool irq;	  /* the interrupt stack: its topmost word points to the previous stack */
	bool entry; /* the processor switched to it: an interrupt return frame is at its end */
};

/*
 * Returns the maximum bytes of a program's stack that are copied below the kernel's. A limit on
 * each stack that is smaller than both plans applies here too.
 */
static uint32_t user_stack_max(const struct vcpu *v)
{
	const struct capture_plan *plan = &v->vm->cfg.plan;

	return v->stack_max < plan->stack_max && v->stack_max < plan->user_stack_max
		       ? v->stack_max
		       : plan->user_stack_max;
}

/* Returns the maximum bytes of stack in one sample. */
static uint32_t stack_room(const struct vcpu *v)
{
	return SAMPLE_MAX_KERNEL_SLICES * v->stack_max + user_stack_max(v);
}

/* Copies up to `want` bytes as a new slice of the sample. Returns the number of bytes copied. */
static uint32_t copy_slice(const struct vcpu *v, const struct capture_view *w, struct sample *s,
			   uint64_t va, uint64_t want)
{
	uint32_t room = stack_room(v) - s->stack_len, got;

	if (want > room)
		want = room;
	got = (uint32_t)capture_read(w, va, s->stack + s->stack_len, want);
	if (got) {
		s->slice[s->nslices++] = (struct sample_slice){ va, s->stack_len, got };
		s->stack_len += got;
	}
	return got;
}

/* Copies a whole stack in the same way. s->stack_end states why the copy ended. */
static uint32_t copy_stack(const struct vcpu *v, const struct capture_view *w, struct sample *s,
			   const struct capture_extent *x)
{
	uint64_t want = v->stack_max;
	uint32_t got;

	s->stack_end = SAMPLE_STACK_CAPPED;
	if (x->end && x->end - x->va <= want) {
		want = x->end - x->va;
		s->stack_end = SAMPLE_STACK_WHOLE;
	}
	got = copy_slice(v, w, s, x->va, want);
	if (got < want)
		s->stack_end = got ? SAMPLE_STACK_UNMAPPED : SAMPLE_STACK_NONE;
	return got;
}

/* Returns the address of the topmost word of this vCPU's interrupt stack; 0 if unknown. */
static uint64_t irq_stack_top(const struct vcpu *v, const struct capture_view *w, uint64_t gs)
{
	const struct capture_plan *plan = &v->vm->cfg.plan;
	uint64_t at = 0, top;

	if (plan->irq_stack_ptr && !capture_plan_of_task(v->vm)->other_kernel)
		at = capture_address(v, plan->irq_stack_ptr, plan->irq_stack_percpu, gs);
	if (!at || capture_read(w, at, &top, sizeof(top)) != sizeof(top))
		return 0;
	/*
	 * Up to 5.11 the variable holds the stack's end, below which the old stack pointer is
	 * pushed; since "x86/irq/64: Adjust the per CPU irq stack pointer by 8" (5.12) it holds
	 * the address of that word.
	 */
	return top % PAGE_BYTES || top < sizeof(uint64_t) ? top : top - sizeof(uint64_t);
}

#define ENTRY_STACK_LEN 4096u /* length of each stack in LINUX_ENTRY_AREA, in bytes */

static bool is_entry_area(uint64_t va)
{
	return va - LINUX_ENTRY_AREA < LINUX_ENTRY_AREA_LEN;
}

/* Returns the power of two at which kernel stacks end; 0 if unknown. */
static uint32_t stack_align(const struct vcpu *v)
{
	uint32_t late = capture_plan_of_task(v->vm)->stack_align;

	return late ? late : v->vm->cfg.plan.stack_align;
}

static struct capture_extent kernel_stack_at(const struct vcpu *v, uint64_t va, uint64_t irq_top)
{
	uint64_t align = stack_align(v);

	if (irq_top && va <= irq_top && irq_top - va < v->vm->cfg.plan.stack_max)
		return (struct capture_extent){ .va = va,
						.end = irq_top + sizeof(uint64_t),
						.irq = true };
	if (align && is_entry_area(va))
		return (struct capture_extent){ .va = va,
						.end = (va | (ENTRY_STACK_LEN - 1)) + 1,
						.entry = true };
	return (struct capture_extent){ .va = va, .end = align ? (va | (align - 1)) + 1 : 0 };
}

/*
 * Returns the stack pointer of the stack that was active before the one copied last; 0 if there is
 * none.
 */
static uint64_t next_stack(const struct vcpu *v, const struct sample *s,
			   const struct capture_extent *x, bool know_irq)
{
	const uint8_t *end = s->stack + s->stack_len;
	uint64_t saved, cs;

	if (x->entry) {
		memcpy(&cs, end - IRET_CS_FROM_END, sizeof(cs));
		memcpy(&saved, end - IRET_RSP_FROM_END, sizeof(saved));
		return cs & 3 ? 0 : saved;
	}
	if (know_irq && !x->irq)
		return 0;
	memcpy(&saved, end - sizeof(saved), sizeof(saved));
	/* The word must point to another stack than this one. */
	return saved < x->end && x->end - saved <= stack_align(v) ? 0 : saved;
}

/* Returns whether va is canonical and in the kernel's half (SDM vol. 1, 3.3.7.1). */
static bool is_kernel_half(const struct capture_view *w, uint64_t va)
{
	return (int64_t)va >> (w->root.cr4 & CR4_LA57 ? 56 : 47) == -1;
}

/*
 * Copies the current kernel stack and the ones that it interrupted. Linux switches to a per-CPU
 * interrupt stack and keeps the old stack pointer in the topmost word of the new one
 * (call_on_stack, arch/x86/include/asm/irq_stack.h). If the interrupt stack is not known, the
 * topmost word of any aligned stack is tried: at worst some bytes are copied in vain.
 */
static void copy_kernel_stacks(const struct vcpu *v, const struct capture_view *w, uint64_t gs,
			       struct sample *s)
{
	uint64_t irq_top = irq_stack_top(v, w, gs), va = s->regs.gpr[GPR_RSP];

	while (s->nslices < SAMPLE_MAX_KERNEL_SLICES) {
		struct capture_extent x = kernel_stack_at(v, va, irq_top);
		uint32_t got = copy_stack(v, w, s, &x);

		if (s->stack_end != SAMPLE_STACK_WHOLE || got < (x.entry ? LINUX_IRET_LEN : 8))
			return;
		va = next_stack(v, s, &x, irq_top != 0);
		if (!is_kernel_half(w, va) || va & 7)
			return;
	}
}

/*
 * Copies the stack of the program below a system call, fault or interrupt. Its stack pointer is
 * among the registers that entry code saves at the end of the task's stack.
 */
static void copy_user_stack(const struct vcpu *v, const struct capture_view *w, struct sample *s)
{
	uint32_t most = user_stack_max(v);
	const struct sample_slice *last = s->nslices ? &s->slice[s->nslices - 1] : NULL;
	uint32_t align = stack_align(v);
	struct linux_regs regs;
	bool entry;

	if (!most || !align || !last || s->stack_end != SAMPLE_STACK_WHOLE)
		return;
	entry = is_entry_area(last->va);
	if ((last->va + last->len) % (entry ? ENTRY_STACK_LEN : align))
		return;
	if (linux_regs_at_end(s->stack + s->stack_len, last->len,
			      entry ? LINUX_IRET_LEN : LINUX_REGS_LEN, &regs) &&
	    !(regs.sp >> LINUX_USER_BITS))
		copy_slice(v, w, s, regs.sp, most);
}

/* Copies a running program's stack, which ends at the first unmapped page. */
static void copy_program_stack(const struct vcpu *v, const struct capture_view *w, struct sample *s)
{
	uint32_t most = user_stack_max(v), want = v->stack_max > most ? v->stack_max : most;
	uint32_t got = copy_slice(v, w, s, s->regs.gpr[GPR_RSP], want);

	s->stack_end = got == want ? SAMPLE_STACK_CAPPED
		       : got	   ? SAMPLE_STACK_WHOLE
				   : SAMPLE_STACK_NONE;
}

/*
 * Copies as many bytes as the longest instruction has, or up to an unmapped page: the instruction,
 * which the processor has fetched or will fault on, ends before that.
 */
static void copy_insn(const struct vcpu *v, const struct capture_view *w, struct sample *s)
{
	if (v->vm->cfg.plan.want_insn)
		s->insn_len = (uint8_t)capture_read(w, s->regs.rip, s->insn, SAMPLE_MAX_INSN - 1);
}

static void count_sample(struct vcpu *v, const struct sample *s)
{
	struct vcpu_stats *st = &v->stats;

	if (s->reason == SAMPLE_MARKER || s->reason == SAMPLE_LOOK)
		return;
	count_add(&st->samples, 1);
	count_add(&st->event_samples[s->event], 1);
	count_add(&st->kernel, s->mode == SAMPLE_KERNEL);
	count_add(&st->user, s->mode == SAMPLE_USER);
	count_add(&st->idle, s->mode == SAMPLE_IDLE);
	if (s->device && s->device < SAMPLE_PERHAPS_NESTED)
		count_add(&st->device[s->device - 1].samples, 1);
	count_add(&st->stack_capped, s->stack_end == SAMPLE_STACK_CAPPED);
	count_add(&st->stack_unmapped, s->stack_end == SAMPLE_STACK_UNMAPPED);
	count_add(&st->stack_none, s->stack_end == SAMPLE_STACK_NONE);
}

/*
 * Returns whether the vCPU can be halted, so that KVM has to be queried; the query costs more than
 * the rest of a sample in the kernel. A vCPU halts after a HLT, or after a hypercall (VMCALL,
 * VMMCALL, and SYSCALL of paravirtual kernels); one that waits to be started is in real mode.
 */
static bool may_stand(const struct capture_view *w)
{
	uint8_t b[3];

	if (!(w->root.cr0 & CR0_PE) ||
	    capture_read(w, w->regs->rip - sizeof(b), b, sizeof(b)) != sizeof(b))
		return true;
	return b[2] == HLT_OPCODE || (b[1] == 0x0f && b[2] == 0x05) ||
	       (b[0] == 0x0f && b[1] == 0x01);
}

/*
 * Returns whether the vCPU is likely halted: an interrupted KVM_RUN leaves a halted vCPU after its
 * HLT, where a running one hardly ever is.
 */
bool capture_is_behind_hlt(const struct capture_view *w)
{
	uint8_t b[HLT_BYTES];

	return capture_read(w, w->regs->rip - sizeof(b), b, sizeof(b)) == sizeof(b) &&
	       hlt_is_last(b);
}

/*
 * Returns the mode of another process's vCPU, whose state KVM does not report. One that waits to
 * be started has its registers as after a reset (SDM vol. 3, table 9-1).
 */
static uint8_t capture_look_foreign(struct vcpu *v, const struct capture_view *w, uint8_t mode)
{
	if (v->index && w->regs->rip == RESET_RIP && !(w->root.cr0 & CR0_PE)) {
		count_add(&v->stats.offline, 1);
		return 0;
	}
	return mode == SAMPLE_KERNEL && !v->exact && capture_is_behind_hlt(w) ? SAMPLE_IDLE : mode;
}

/*
 * Returns the mode of a vCPU with this mp_state; `mode` is the one if it is not halted. A wake-up
 * and our timer may coincide, the more often the longer its thread waits for a processor: KVM then
 * reports it as runnable, although the sample stands for the time in which it was halted.
 */
static uint8_t mode_of_standing(const struct capture_view *w, uint32_t mp_state, uint8_t mode)
{
	if (mp_state == KVM_MP_STATE_HALTED)
		return SAMPLE_IDLE;
	if (mp_state != KVM_MP_STATE_RUNNABLE)
		return 0;
	return w->regs->rflags & RFLAGS_IF && capture_is_behind_hlt(w) ? SAMPLE_IDLE : mode;
}

/* Returns the vCPU's mode; 0 if it waits to be started. */
static uint8_t capture_look(struct vcpu *v, const struct capture_view *w, enum sample_reason reason)
{
	unsigned int cpl = w->sregs->cs.dpl & 3;
	uint8_t mode = cpl == 3 ? SAMPLE_USER : SAMPLE_KERNEL;

	if (pvm_is_in_syscall(v, w->regs->rip))
		mode = SAMPLE_KERNEL;
	/* LSTAR of another process's guest is unknown, but no program runs at such addresses. */
	if (v->foreign && w->regs->rip >> 63 && w->regs->rip - VSYSCALL_PAGE >= VSYSCALL_LEN)
		mode = SAMPLE_KERNEL;
	if (v->foreign) {
		mode = capture_look_foreign(v, w, mode);
		if (!mode)
			return 0;
	} else if (mode == SAMPLE_KERNEL && cpl != 3 &&
		   (reason == SAMPLE_TIMER || reason == SAMPLE_PMU || reason == SAMPLE_HOST) &&
		   may_stand(w)) {
		struct kvm_mp_state mp;

		if (ioctl(v->fd, KVM_GET_MP_STATE, &mp) == 0)
			mode = mode_of_standing(w, mp.mp_state, mode);
		if (!mode) {
			count_add(&v->stats.offline, 1);
			atomic_fetch_add_explicit(&v->dead_looks, 1, memory_order_relaxed);
			return 0;
		}
	}
	if (mode == SAMPLE_IDLE && !(w->regs->rflags & RFLAGS_IF))
		atomic_fetch_add_explicit(&v->dead_looks, 1, memory_order_relaxed);
	else
		atomic_store_explicit(&v->dead_looks, 0, memory_order_relaxed);
	return mode;
}

void capture_watch(struct vcpu *v, unsigned int looks)
{
	uint64_t offline = v->stats.offline;
	unsigned int before = atomic_load_explicit(&v->dead_looks, memory_order_relaxed);
	const struct capture_view w = capture_view_of_vcpu(v);

	(void)capture_look(v, &w, SAMPLE_TIMER);
	count_set(&v->stats.offline, offline); /* no period of an event has ended */
	if (atomic_load_explicit(&v->dead_looks, memory_order_relaxed) > before)
		atomic_fetch_add_explicit(&v->dead_looks, looks - 1, memory_order_relaxed);
}

bool capture_is_wanted(const struct vcpu *v)
{
	return atomic_load_explicit(&v->vm->control.collect, memory_order_relaxed) &&
	       atomic_load_explicit(&v->collect, memory_order_relaxed);
}

static bool is_wanted(const struct vcpu *v, enum sample_reason reason)
{
	return reason == SAMPLE_CRASH || reason == SAMPLE_MARKER || capture_is_wanted(v);
}

/*
 * Returns 0 unless a nested guest is running, whose addresses are not the guest's; else the value
 * for struct sample's device. While a hypervisor is active on a processor, these bits are set, in
 * its guests too (SDM vol. 3, 24.8; APM vol. 2, 15.5.1).
 */
static uint8_t nested_state(const struct vcpu *v, const struct capture_view *w)
{
	if (!(w->root.efer & EFER_SVME) && !(w->root.cr4 & CR4_VMXE))
		return 0;
	if (!v->vm->nested_flag || !w->has_flags)
		return SAMPLE_PERHAPS_NESTED;
	return w->flags & KVM_RUN_X86_GUEST_MODE ? SAMPLE_NESTED : 0;
}

/* Clears registers and task: of a nested guest only the fact is recorded. */
static void note_nested(struct sample *s)
{
	s->mode = SAMPLE_KERNEL;
	memset(&s->regs, 0, sizeof(s->regs));
	s->idt_base = s->lstar = 0;
	memset(&s->task, 0, sizeof(s->task));
	s->task.state = SAMPLE_TASK_UNREADABLE;
}

bool capture_sample(struct vcpu *v, const struct capture_cause *cause)
{
	const struct capture_view w = capture_view_of_vcpu(v);

	return capture_sample_of(v, &w, cause);
}

/*
 * Number of cached translations. One sample reads about ten pages: those of its task, its stacks,
 * and the data that leads to them.
 */
#define SAMPLE_TLB 16u

/* Returns the maximum bytes of a sample besides its stacks. */
static uint32_t extra_room(const struct vcpu *v)
{
	return SAMPLE_MAX_HOST_BYTES + 8 + SAMPLE_MAX_RETURNS +
	       (atomic_load_explicit(&v->vm->python, memory_order_relaxed)
			? SAMPLE_MAX_PYTHON_BYTES + 8
			: 0);
}

bool capture_sample_of(struct vcpu *v, const struct capture_view *view,
		       const struct capture_cause *cause)
{
	struct mmu_tlb_page page[SAMPLE_TLB] = { 0 };
	const struct mmu_tlb tlb = { page, SAMPLE_TLB, 1 };
	struct capture_view known = *view, *w = &known;
	uint8_t nested = nested_state(v, w), reason = (uint8_t)cause->reason;
	uint8_t mode = nested ? SAMPLE_KERNEL : capture_look(v, w, cause->reason);
	struct sample *s;
	uint64_t gs;

	known.tlb = &tlb;
	if (!mode)
		return true;
	if (!is_wanted(v, cause->reason)) {
		count_add(&v->stats.uncollected, 1 + (uint64_t)cause->missed);
		if (nested || !v->vm->cfg.look_for_kernel ||
		    atomic_load_explicit(&v->vm->slide_known, memory_order_relaxed))
			return true;
		reason = SAMPLE_LOOK;
	}
	s = ring_reserve(&v->ring, sizeof(*s) + stack_room(v) + extra_room(v));
	if (!s)
		return false;
	s->version = SAMPLE_VERSION;
	s->vcpu = (uint16_t)v->index;
	s->reason = reason;
	s->mode = mode;
	s->stack_end = SAMPLE_STACK_WHOLE;
	s->nslices = 0;
	s->returns = s->python = (struct sample_slice){ 0 };
	s->python_state = SAMPLE_PYTHON_NONE;
	s->event = cause->event;
	s->device = cause->device;
	s->insn_len = 0;
	s->exit = cause->exit;
	s->time_ns = cause->now;
	s->weight = cause->weight;
	s->exit_addr = cause->exit_addr;
	s->exit_ns = cause->exit_ns;
	s->overruns = cause->missed;
	s->stack_len = 0;
	if (nested) {
		s->device = nested;
		note_nested(s);
		if (cause->host)
			sample_put_host(s, cause->host);
		goto commit;
	}
	capture_regs(w->regs, w->sregs, &s->regs);
	copy_insn(v, w, s);
	s->idt_base = w->sregs->idt.base;
	gs = capture_percpu_base(v, w->sregs, s);
	capture_task(v, w, gs, s);
	/* At CPL 3, rsp is the program's, even if the mode counts as kernel. */
	if ((w->sregs->cs.dpl & 3) == 3) {
		copy_program_stack(v, w, s);
	} else {
		copy_kernel_stacks(v, w, gs, s);
		copy_user_stack(v, w, s);
		capture_returns(v, w, s);
	}
	capture_python(v, w, s);
	if (cause->host)
		sample_put_host(s, cause->host);
	/* The view is an incomplete record (pvm_peek_ops): discard the sample. */
	if (w->mem->remote && w->mem->remote->lacking)
		return false;
commit:
	ring_commit(&v->ring, sample_size(s));
	count_sample(v, s);
	return true;
}
