/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugreg: a vCPU's guest-debug registers, shared by all that use them.
 *
 * KVM has one setting for a vCPU (KVM_SET_GUEST_DEBUG) in place of the guest's own debug
 * registers, which it keeps meanwhile (arch/x86/kvm/x86.c, kvm_update_dr7()): they read
 * back as written, but the guest's own breakpoints do not fire.
 * Slot 0 is syscall_assist's, the others are breakpoint's. On the vCPU's thread only.
 */
#ifndef KVMPROF_VMM_DEBUGREG_H
#define KVMPROF_VMM_DEBUGREG_H

#include <stdint.h>

#define DEBUGREG_ASSIST 0u

/* DR6 (SDM vol. 3, 17.2.3): which breakpoint it was, and whether it was the trap flag. */
#define DR6_SLOT(i) (1u << (i))
#define DR6_SLOTS 0xfu
#define DR6_BS (1u << 14)

struct vcpu;

/* Watch for the instruction at addr, or with 0 no more. Returns 0 or -errno. */
int debugreg_set(struct vcpu *v, unsigned int slot, uint64_t addr);

/*
 * Let one instruction run past the breakpoint of a slot; it ends with another
 * KVM_EXIT_DEBUG, after which step_done() arms the slot again.
 */
int debugreg_step(struct vcpu *v, unsigned int slot);
int debugreg_step_done(struct vcpu *v);

/*
 * The exit was the guest's own #DB: give it to it, with these bits of DR6 set there. The
 * exit has taken it away from the guest without a trace.
 */
int debugreg_inject(struct vcpu *v, uint64_t dr6_bits);

#endif
