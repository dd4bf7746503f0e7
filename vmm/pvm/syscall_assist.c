/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/syscall_assist.h"

#include "base/count.h"
#include "base/thread.h"
#include "vmm/machine.h"
#include "vmm/debugreg.h"
#include "vmm/msr.h"
#include "vmm/capture/capture.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_FIXED 0x2u
#define RFLAGS_RF (1u << 16)
#define SYSCALL_INSN_LEN 2u /* 0f 05 */

#define IDT_GATE_SIZE 16u
#define VECTOR_PF 14u

/* The frame that an exception with an error code pushes in 64-bit mode (SDM vol. 3, 6.14.2). */
struct fault_frame {
	uint64_t error, rip, cs, rflags, rsp, ss;
};

static void *set_filter(void *arg)
{
	struct vm *vm = arg;
	/* One bit each: 0 in the bitmap denies the guest's access, so that it exits. */
	uint8_t allow_none = 0;
	struct kvm_msr_filter filter = {
		.flags = KVM_MSR_FILTER_DEFAULT_ALLOW,
		.ranges = {
			{.flags = KVM_MSR_FILTER_WRITE, .nmsrs = 1, .base = MSR_LSTAR,
			 .bitmap = &allow_none},
			{.flags = KVM_MSR_FILTER_WRITE, .nmsrs = 1, .base = MSR_SFMASK,
			 .bitmap = &allow_none},
		},
	};

	if (ioctl(vm->fd, KVM_X86_SET_MSR_FILTER, &filter) < 0) {
		struct err e = { 0 };

		err_set(&e, errno,
			"this host needs the SYSCALL work-around, but its KVM refuses an MSR "
			"filter: %s",
			strerror(errno));
		machine_end(vm, VM_END_ERROR, NULL, NULL, &e);
	}
	atomic_store(&vm->pvm_state.filter_done, true);
	return NULL;
}

int syscall_assist_start(struct vm *vm, struct err *e)
{
	struct kvm_enable_cap cap = { .cap = KVM_CAP_X86_USER_SPACE_MSR,
				      .args = { KVM_MSR_EXIT_REASON_FILTER } };
	int ret;

	if (ioctl(vm->fd, KVM_ENABLE_CAP, &cap) < 0)
		return err_set(e, errno, "KVM_CAP_X86_USER_SPACE_MSR: %s", strerror(errno));
	ret = thread_start(&vm->pvm_state.filter_thread, THREAD_MSR_FILTER, set_filter, vm);
	if (ret)
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	vm->pvm_state.filter_started = true;
	return 0;
}

void syscall_assist_stop(struct vm *vm)
{
	if (vm->pvm_state.filter_started)
		pthread_join(vm->pvm_state.filter_thread, NULL);
	vm->pvm_state.filter_started = false;
}

static bool learn_msr(const struct vcpu *v, uint32_t index, uint64_t *value)
{
	struct kvm_msr_entry m = { .index = index, .data = *value };
	bool told = msr_read(v->fd, &m);

	*value = m.data;
	return told;
}

/* Returns the address of the handler of IDT gate 14, or 0. */
static uint64_t pf_handler(const struct vcpu *v)
{
	const struct kvm_dtable *idt = &v->run->s.regs.sregs.idt;
	struct mmu_root root = capture_root(&v->run->s.regs.sregs);
	uint32_t gate[4];

	if (idt->limit < (VECTOR_PF + 1) * IDT_GATE_SIZE - 1 ||
	    mmu_read(&v->vm->mem, &root, idt->base + VECTOR_PF * IDT_GATE_SIZE, gate,
		     sizeof(gate)) != sizeof(gate))
		return 0;
	if (!(gate[1] & 0x8000)) /* not present */
		return 0;
	return (uint64_t)gate[2] << 32 | (gate[1] & 0xffff0000u) | (gate[0] & 0xffffu);
}

void syscall_assist_refresh(struct vcpu *v)
{
	struct pvm_syscall *a = &v->pvm_state.syscall;
	uint64_t handler;

	if (!a->know_lstar && !v->pvm_state.asked && atomic_load(&v->vm->pvm_state.filter_done)) {
		/* Each write from here on is seen; this finds one from before. */
		v->pvm_state.asked = true;
		a->know_lstar = learn_msr(v, MSR_LSTAR, &a->lstar) && a->lstar;
	}
	if (!a->know_lstar || v->debug.stepping)
		return;
	handler = pf_handler(v);
	if (handler && handler != a->pf_handler && debugreg_set(v, DEBUGREG_ASSIST, handler) == 0)
		a->pf_handler = handler;
}

bool syscall_assist_wrmsr(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	const struct kvm_msr_entry m = { .index = run->msr.index, .data = run->msr.data };

	if (run->msr.index == MSR_LSTAR) {
		v->pvm_state.syscall.lstar = run->msr.data;
		v->pvm_state.syscall.know_lstar = true;
	} else if (run->msr.index == MSR_SFMASK) {
		v->pvm_state.syscall.fmask = run->msr.data;
		v->pvm_state.syscall.know_fmask = true;
	} else {
		return false;
	}
	/* The filter binds only the guest, so this write succeeds. */
	run->msr.error = !msr_write(v->fd, &m);
	syscall_assist_refresh(v);
	return true;
}

/*
 * Clears the bits of injected interrupts: KVM sets the bit of an interrupt that is injected but not
 * delivered yet, and never clears one in the shared page (store_regs() does not zero the bitmap to
 * which __get_sregs() adds).
 */
void syscall_assist_enter(struct vcpu *v)
{
	struct kvm_sregs *s = &v->run->s.regs.sregs;

	/* Special registers that are written back include the injected interrupt. */
	if (v->run->kvm_dirty_regs & KVM_SYNC_X86_SREGS)
		return;
	memset(s->interrupt_bitmap, 0, sizeof(s->interrupt_bitmap));
}

/*
 * Moves the vCPU back to its SYSCALL. An interrupt that KVM has injected but not delivered at the
 * time of the conversion would be delivered at LSTAR, whatever IF is: the handler would see a
 * kernel CS, skip swapgs and run with the user's GS. In ring 3, before the SYSCALL, the interrupt
 * is legal, and the instruction runs again after it. SYSCALL has changed only rcx and r11, which
 * user code must treat as lost anyway.
 */
static void undo_syscall(struct vcpu *v, const struct fault_frame *f)
{
	struct kvm_regs *r = &v->run->s.regs.regs;
	struct kvm_sregs *s = &v->run->s.regs.sregs;

	r->rip = r->rcx - SYSCALL_INSN_LEN;
	r->rsp = f->rsp;
	r->rflags = (r->r11 & ~(uint64_t)RFLAGS_RF) | RFLAGS_FIXED;
	s->cs.selector = (uint16_t)f->cs;
	s->cs.base = 0;
	s->cs.limit = 0xffffffff;
	s->cs.type = 11; /* code, execute/read, accessed */
	s->cs.dpl = 3;
	s->cs.s = s->cs.present = s->cs.l = s->cs.g = 1;
	s->cs.db = 0;
	s->cs.unusable = 0;
	s->ss.selector = (uint16_t)f->ss;
	s->ss.base = 0;
	s->ss.limit = 0xffffffff;
	s->ss.type = 3; /* data, read/write, accessed */
	s->ss.dpl = 3;
	s->ss.s = s->ss.present = s->ss.db = s->ss.g = 1;
	s->ss.l = 0;
	s->ss.unusable = 0;
	v->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
	count_add(&v->stats.syscalls_undone, 1);
}

static bool interrupt_injected(const struct kvm_sregs *s)
{
	for (unsigned int i = 0; i < sizeof(s->interrupt_bitmap) / sizeof(s->interrupt_bitmap[0]);
	     i++)
		if (s->interrupt_bitmap[i])
			return true;
	return false;
}

static void convert_syscall(struct vcpu *v, const struct fault_frame *f)
{
	struct kvm_regs *r = &v->run->s.regs.regs;

	if (interrupt_injected(&v->run->s.regs.sregs)) {
		undo_syscall(v, f);
		return;
	}
	/*
	 * A guest that never wrote SFMASK has its reset value; entering with IF set would be wrong.
	 */
	if (!v->pvm_state.syscall.know_fmask)
		v->pvm_state.syscall.know_fmask =
			learn_msr(v, MSR_SFMASK, &v->pvm_state.syscall.fmask);
	r->rip = v->pvm_state.syscall.lstar;
	r->rsp = f->rsp; /* SYSCALL does not change rsp */
	r->rflags = (r->r11 & ~v->pvm_state.syscall.fmask & ~(uint64_t)RFLAGS_RF) | RFLAGS_FIXED;
	/* CS is the kernel's already, from the gate; a null SS is legal in ring 0. */
	v->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
	count_add(&v->stats.syscalls_assisted, 1);
}

/* Returns the length of the handler's first instruction if it can be skipped, else 0. */
static unsigned int skippable(const uint8_t *b)
{
	static const uint8_t clac[] = { 0x0f, 0x01, 0xca }, nop3[] = { 0x0f, 0x1f, 0x00 };
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	/* CLAC without SMAP (hidden on these hosts) and the others change no state except rip. */
	if (!memcmp(b, nop3, sizeof(nop3)) || !memcmp(b, clac, sizeof(clac)))
		return 3;
	if (!memcmp(b, endbr64, sizeof(endbr64)))
		return 4;
	return b[0] == 0x90 ? 1 : 0;
}

/*
 * Passes a genuine fault on: continues after the handler's first instruction. Resuming at the
 * breakpoint would only reach it again, because KVM keeps no resume flag for it.
 */
static int forward_fault(struct vcpu *v, struct err *e)
{
	struct kvm_run *run = v->run;
	struct mmu_root root = capture_root(&run->s.regs.sregs);
	uint8_t insn[4] = { 0 };
	unsigned int len;

	count_add(&v->stats.faults_forwarded, 1);
	mmu_read(&v->vm->mem, &root, run->s.regs.regs.rip, insn, sizeof(insn));
	len = skippable(insn);
	if (len) {
		run->s.regs.regs.rip += len;
		run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
		return 0;
	}
	if (debugreg_step(v, DEBUGREG_ASSIST) < 0)
		return err_set(e, EIO, "vCPU %u: cannot single-step the page-fault handler",
			       v->index);
	return 0;
}

int syscall_assist_debug(struct vcpu *v, struct err *e)
{
	struct pvm_syscall *a = &v->pvm_state.syscall;
	struct kvm_run *run = v->run;
	struct mmu_root root = capture_root(&run->s.regs.sregs);
	struct fault_frame f;

	if (mmu_read(&v->vm->mem, &root, run->s.regs.regs.rsp, &f, sizeof(f)) != sizeof(f))
		return err_set(e, EFAULT, "vCPU %u: cannot read the page-fault frame at rsp 0x%llx",
			       v->index, (unsigned long long)run->s.regs.regs.rsp);
	if (a->know_lstar && f.rip == a->lstar && run->s.regs.sregs.cr2 == a->lstar &&
	    (f.cs & 3) == 3) {
		convert_syscall(v, &f);
		return 0;
	}
	return forward_fault(v, e);
}

int syscall_assist_restore(struct vcpu *v, const struct pvm_syscall *from, struct err *e)
{
	int ret = from->pf_handler ? debugreg_set(v, DEBUGREG_ASSIST, from->pf_handler) : 0;

	if (ret)
		return err_set(e, -ret, "vCPU %u of the snapshot: KVM refuses a breakpoint: %s",
			       v->index, strerror(-ret));
	v->pvm_state.syscall = *from;
	return 0;
}
