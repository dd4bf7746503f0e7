/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/breakpoint.h"

#include "base/clock.h"
#include "vmm/machine.h"
#include "vmm/pvm/syscall_assist.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define RFLAGS_TF (1u << 8)
#define RFLAGS_RF (1u << 16)
#define VECTOR_DB 1u
#define INSN_MAX 15u /* bytes of one instruction (SDM vol. 2, 2.3.11) */

#define SLOT(i) ((i) + 1u) /* of breakpoint i */

static bool is_done(const struct vm *vm, unsigned int i)
{
	return vm->cfg.breakpoint[i].once &&
	       atomic_load_explicit(&vm->reached_ns[i], memory_order_acquire);
}

void breakpoints_follow(struct vcpu *v)
{
	for (unsigned int i = 0; i < v->vm->cfg.nbreakpoints; i++) {
		uint64_t want =
			is_done(v->vm, i)
				? 0
				: capture_address(v, v->vm->cfg.breakpoint[i].addr, false, 0);
		struct err e = { 0 };
		int ret;

		if (v->debug.addr[SLOT(i)] == want)
			continue;
		ret = debugreg_set(v, SLOT(i), want);
		if (!ret)
			continue;
		err_set(&e, -ret, "vCPU %u: KVM refuses a breakpoint at 0x%llx: %s", v->index,
			(unsigned long long)want, strerror(-ret));
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	}
}

/* -- going on past it ---------------------------------------------------------------- */

/* Code that goes elsewhere by itself: where a step ends tells nothing then. */
static bool is_jump(const struct vcpu *v, uint64_t rip)
{
	struct mmu_root root = capture_root(v->run);
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

static int go_on(struct vcpu *v, unsigned int i, struct err *e)
{
	struct kvm_regs *r = &v->run->s.regs.regs;
	int ret;

	/* The processor's own way. An emulated instruction stops again whatever the flag says. */
	if (!v->vm->cfg.quirks->interpreted) {
		r->rflags |= RFLAGS_RF;
		v->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
		return 0;
	}
	v->bp.trap_flag = r->rflags & RFLAGS_TF;
	v->bp.step_from = r->rip;
	ret = debugreg_step(v, SLOT(i));
	return ret ? err_set(e, -ret, "vCPU %u: cannot single-step at 0x%llx: %s", v->index,
			     (unsigned long long)r->rip, strerror(-ret))
		   : 0;
}

/*
 * The guest single-stepped the instruction, too: its trap. KVM has taken the guest's flag
 * for its own and cleared it with that. It is set by a call of its own, as setting
 * registers through the shared page would take back what is injected.
 */
static int give_trap(struct vcpu *v)
{
	struct kvm_regs *r = &v->run->s.regs.regs;

	r->rflags |= RFLAGS_TF;
	if (ioctl(v->fd, KVM_SET_REGS, r) < 0)
		return -errno;
	return debugreg_inject(v, DR6_BS);
}

static int step_ended(struct vcpu *v, struct err *e)
{
	const struct kvm_regs *r = &v->run->s.regs.regs;
	unsigned int slot = v->debug.step_slot;
	uint64_t from = v->bp.step_from;
	int ret = debugreg_step_done(v);

	if (!ret && slot != DEBUGREG_ASSIST) {
		/* A fault went to the guest's handler, which will come back to the instruction. */
		v->bp.again = (r->rip <= from || r->rip - from > 2 * INSN_MAX) && !is_jump(v, from);
		v->bp.again_index = slot - 1;
		if (v->bp.trap_flag && !v->bp.again)
			ret = give_trap(v);
		v->bp.trap_flag = false;
	}
	return ret ? err_set(e, -ret, "vCPU %u: cannot set breakpoints again: %s", v->index,
			     strerror(-ret))
		   : 0;
}

/* -- reaching it --------------------------------------------------------------------- */

static bool is_again(struct vcpu *v, unsigned int i)
{
	struct breakpoint_state *b = &v->bp;
	uint64_t rsp = v->run->s.regs.regs.rsp, cr3 = v->run->s.regs.sregs.cr3;
	bool again = b->again && b->again_index == i && b->again_rsp == rsp && b->again_cr3 == cr3;

	b->again = false;
	b->again_rsp = rsp;
	b->again_cr3 = cr3;
	return again;
}

static void reached(struct vcpu *v, unsigned int i)
{
	struct vm *vm = v->vm;
	const struct vm_breakpoint *b = &vm->cfg.breakpoint[i];
	uint64_t now = clock_mono_ns();
	uint_fast64_t never = 0;

	if (b->action == VM_BREAKPOINT_STOP && !vm_is_collecting(vm))
		return;
	/* Of two vCPUs that reach it at once one is the first. */
	if (!atomic_compare_exchange_strong(&vm->reached_ns[i], &never, now) && b->once)
		return;
	v->stats.breakpoints[i]++;
	capture_sample(v, &(struct capture_cause){
				  .now = now, .reason = SAMPLE_MARKER, .event = (uint8_t)i });
	if (b->action == VM_BREAKPOINT_PAUSE)
		pause_ask(vm);
	if (b->action == VM_BREAKPOINT_START)
		vm_collect(vm, true);
	if (b->action == VM_BREAKPOINT_STOP) {
		vm_collect(vm, false);
		machine_end(vm, VM_END_MARKER, v, NULL, NULL);
	}
	if (b->once) {
		debugreg_set(v, SLOT(i), 0);
		control_tell(vm); /* the other vCPUs disarm it, too */
		if (vm->cfg.reached)
			vm->cfg.reached(vm->cfg.reached_ctx, i);
	}
}

static int hit(struct vcpu *v, unsigned int i, struct err *e)
{
	struct syscall_assist *a = &v->assist;

	/* On the same instruction stands the assist, which has its own reasons to stop there. */
	if (a->pf_handler && a->pf_handler == v->run->s.regs.regs.rip) {
		struct kvm_regs at = v->run->s.regs.regs, after;
		uint64_t faults = v->stats.faults_forwarded;
		int ret = syscall_assist_debug(v, e);

		if (ret || v->stats.faults_forwarded == faults)
			return ret; /* a system call: no fault of the guest's */
		after = v->run->s.regs.regs;
		v->run->s.regs.regs = at;
		reached(v, i);
		v->run->s.regs.regs = after;
		return 0;
	}
	if (!is_again(v, i))
		reached(v, i);
	return v->debug.addr[SLOT(i)] ? go_on(v, i, e) : 0;
}

/* It was none of ours: what the guest's own trap flag or INT1 did. */
static int give_back(struct vcpu *v, struct err *e)
{
	const struct kvm_debug_exit_arch *x = &v->run->debug.arch;
	int ret;

	if (x->exception != VECTOR_DB)
		return err_set(e, EIO, "vCPU %u: unexpected debug exit (vector %u) at rip 0x%llx",
			       v->index, x->exception, (unsigned long long)v->run->s.regs.regs.rip);
	v->stats.debug_returned++;
	ret = debugreg_inject(v, x->dr6 & DR6_BS);
	return ret ? err_set(e, -ret,
			     "vCPU %u: cannot give the guest's own #DB at 0x%llx back to it: %s",
			     v->index, (unsigned long long)v->run->s.regs.regs.rip, strerror(-ret))
		   : 0;
}

int breakpoint_debug(struct vcpu *v, struct err *e)
{
	uint64_t rip = v->run->s.regs.regs.rip;
	bool by_slot = v->run->debug.arch.dr6 & DR6_SLOTS;

	if (v->debug.stepping) {
		int ret = step_ended(v, e);

		/* Unless it has come to another breakpoint before it ended. */
		if (ret || !by_slot)
			return ret;
	}
	for (unsigned int i = 0; i < v->vm->cfg.nbreakpoints; i++)
		if (v->debug.addr[SLOT(i)] == rip && rip && by_slot)
			return hit(v, i, e);
	if (v->assist.pf_handler && v->assist.pf_handler == rip && by_slot)
		return syscall_assist_debug(v, e);
	return give_back(v, e);
}
