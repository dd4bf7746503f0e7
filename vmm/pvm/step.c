/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/step.h"

#include "vmm/machine.h"
#include "vmm/debugreg.h"
#include "vmm/pvm/syscall_assist.h"
#include "vmm/breakpoint.h"
#include "vmm/capture/capture.h"
#include "vmm/quirks.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_TF (1u << 8)
#define INSN_MAX 15u /* bytes of one instruction (SDM vol. 2, 2.3.11) */

/*
 * Returns whether the instruction sets rip itself. Then the end of its step does not show whether
 * it faulted.
 */
static bool step_is_jump(const struct vcpu *v, uint64_t rip)
{
	struct mmu_root root = capture_root(&v->run->s.regs.sregs);
	uint8_t b[2] = { 0 };

	/* jcc; near and far jmp, call, ret, iret, int, loop; FF and 0F groups; SYSCALL */
	if (mmu_read(&v->vm->mem, &root, rip, b, sizeof(b)) != sizeof(b))
		return true;
	return (b[0] >= 0x70 && b[0] <= 0x7f) || (b[0] >= 0xc2 && b[0] <= 0xc3) ||
	       (b[0] >= 0xca && b[0] <= 0xcf) || (b[0] >= 0xe0 && b[0] <= 0xe3) ||
	       (b[0] >= 0xe8 && b[0] <= 0xeb) || b[0] == 0xff ||
	       (b[0] == 0x0f && (b[1] == 0x05 || b[1] == 0x07 || b[1] == 0x34 || b[1] == 0x35 ||
				 (b[1] >= 0x80 && b[1] <= 0x8f)));
}

static int step_over(struct vcpu *v, unsigned int i, struct err *e)
{
	struct kvm_regs *r = &v->run->s.regs.regs;
	int ret;

	if (!v->vm->cfg.quirks->interpreted) {
		breakpoint_resume(v);
		return 0;
	}
	v->pvm_state.step.trap_flag = r->rflags & RFLAGS_TF;
	v->pvm_state.step.from = r->rip;
	ret = debugreg_step(v, BREAKPOINT_SLOT(i));
	return ret ? err_set(e, -ret, "vCPU %u: cannot single-step at 0x%llx: %s", v->index,
			     (unsigned long long)r->rip, strerror(-ret))
		   : 0;
}

/*
 * Delivers the trap of an instruction that the guest single-steps, too. KVM has used the guest's
 * flag as its own and cleared it. The flag is set with an ioctl, because setting registers through
 * the shared page would cancel the injected exception.
 */
static int step_give_trap(struct vcpu *v)
{
	struct kvm_regs *r = &v->run->s.regs.regs;

	r->rflags |= RFLAGS_TF;
	if (ioctl(v->fd, KVM_SET_REGS, r) < 0)
		return -errno;
	return debugreg_inject(v, DR6_BS);
}

static int step_ended(struct vcpu *v, struct err *e)
{
	struct pvm_step *st = &v->pvm_state.step;
	const struct kvm_regs *r = &v->run->s.regs.regs;
	unsigned int slot = v->debug.step_slot;
	uint64_t from = st->from;
	int ret = debugreg_step_done(v);

	if (!ret && slot != DEBUGREG_ASSIST) {
		/* A fault went to the guest's handler, which will return to the instruction. */
		st->again =
			(r->rip <= from || r->rip - from > 2 * INSN_MAX) && !step_is_jump(v, from);
		st->again_index = slot - 1;
		if (st->trap_flag && !st->again)
			ret = step_give_trap(v);
		st->trap_flag = false;
	}
	return ret ? err_set(e, -ret, "vCPU %u: cannot set breakpoints again: %s", v->index,
			     strerror(-ret))
		   : 0;
}

static bool step_is_again(struct vcpu *v, unsigned int i)
{
	struct pvm_step *b = &v->pvm_state.step;
	uint64_t rsp = v->run->s.regs.regs.rsp, cr3 = v->run->s.regs.sregs.cr3;
	bool again = b->again && b->again_index == i && b->again_rsp == rsp && b->again_cr3 == cr3;

	b->again = false;
	b->again_rsp = rsp;
	b->again_cr3 = cr3;
	return again;
}

static int step_hit(struct vcpu *v, unsigned int i, struct err *e)
{
	const struct pvm_syscall *a = &v->pvm_state.syscall;

	/* syscall_assist has a breakpoint on the same instruction. */
	if (a->pf_handler && a->pf_handler == v->run->s.regs.regs.rip) {
		struct kvm_regs at = v->run->s.regs.regs, after;
		uint64_t faults = v->stats.faults_forwarded;
		int ret = syscall_assist_debug(v, e);

		if (ret || v->stats.faults_forwarded == faults)
			return ret; /* a system call, not a fault of the guest */
		after = v->run->s.regs.regs;
		v->run->s.regs.regs = at;
		breakpoint_reached(v, i);
		v->run->s.regs.regs = after;
		return 0;
	}
	if (!step_is_again(v, i))
		breakpoint_reached(v, i);
	return v->debug.addr[BREAKPOINT_SLOT(i)] ? step_over(v, i, e) : 0;
}

int step_debug(struct vcpu *v, struct err *e)
{
	uint64_t pf_handler = v->pvm_state.syscall.pf_handler;
	bool by_slot = v->run->debug.arch.dr6 & DR6_SLOTS;
	int i;

	if (v->debug.stepping) {
		int ret = step_ended(v, e);

		/* Unless another breakpoint was reached before the step ended. */
		if (ret || !by_slot)
			return ret;
	}
	i = breakpoint_at(v);
	if (i >= 0)
		return step_hit(v, (unsigned int)i, e);
	if (pf_handler && pf_handler == v->run->s.regs.regs.rip && by_slot)
		return syscall_assist_debug(v, e);
	return breakpoint_inject(v, e);
}
