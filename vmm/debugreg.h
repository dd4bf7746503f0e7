/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugreg: the guest-debug registers of a vCPU, shared by all code that uses them.
 *
 * KVM has one setting per vCPU (KVM_SET_GUEST_DEBUG), which replaces the guest's own debug
 * registers. KVM keeps those meanwhile (arch/x86/kvm/x86.c, kvm_update_dr7()): they read back as
 * written, but the guest's own breakpoints do not trigger. Slot 0 belongs to syscall_assist, the
 * others to breakpoint. Only the vCPU's thread calls these functions. They return 0 or -errno of
 * KVM.
 */
#ifndef KVMPROF_VMM_DEBUGREG_H
#define KVMPROF_VMM_DEBUGREG_H

#include <stdint.h>

#define DEBUGREG_ASSIST 0u

/* DR6 (SDM vol. 3, 17.2.3): the breakpoints that triggered, and whether the trap flag did. */
#define DR6_SLOT(i) (1u << (i))
#define DR6_SLOTS 0xfu
#define DR6_BS (1u << 14)

struct vcpu;

/* Sets a breakpoint on the instruction at addr, or removes it if addr is 0. */
int debugreg_set(struct vcpu *v, unsigned int slot, uint64_t addr);

/*
 * Makes one instruction run with the breakpoint of this slot disabled. It ends with another
 * KVM_EXIT_DEBUG, after which the caller calls debugreg_step_done().
 */
int debugreg_step(struct vcpu *v, unsigned int slot);
/* Enables the breakpoint again that debugreg_step() has disabled. */
int debugreg_step_done(struct vcpu *v);

/*
 * Delivers #DB to the guest with these bits of DR6, because the debug exit was caused by the guest
 * itself. KVM has not delivered it.
 */
int debugreg_inject(struct vcpu *v, uint64_t dr6_bits);

#endif
