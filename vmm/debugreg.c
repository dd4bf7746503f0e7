/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/debugreg.h"

#include "vmm/machine.h"

#include <errno.h>
#include <sys/ioctl.h>

/* DR7 (SDM vol. 3, 17.2.4): bit 10 is always set; Gn enables slot n; execute, length 1. */
#define DR7_FIXED 0x400u
#define DR7_G(slot) (2u << 2 * (slot))

static int debugreg_apply(struct vcpu *v, unsigned int extra)
{
	struct kvm_guest_debug dbg = { .control = 0 };
	const struct debugreg *d = &v->debug;

	for (unsigned int i = 0; i < DEBUGREG_SLOTS; i++) {
		if (!d->addr[i] || (d->stepping && d->step_slot == i))
			continue;
		dbg.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
		dbg.arch.debugreg[i] = d->addr[i];
		dbg.arch.debugreg[7] |= DR7_FIXED | DR7_G(i);
	}
	if (d->stepping)
		dbg.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP | v->vm->step_flags;
	dbg.control |= extra;
	return ioctl(v->fd, KVM_SET_GUEST_DEBUG, &dbg) < 0 ? -errno : 0;
}

int debugreg_set(struct vcpu *v, unsigned int slot, uint64_t addr)
{
	uint64_t before = v->debug.addr[slot];
	int ret;

	v->debug.addr[slot] = addr;
	ret = debugreg_apply(v, 0);
	if (ret)
		v->debug.addr[slot] = before;
	return ret;
}

int debugreg_step(struct vcpu *v, unsigned int slot)
{
	int ret;

	v->debug.stepping = true;
	v->debug.step_slot = slot;
	ret = debugreg_apply(v, 0);
	if (ret)
		v->debug.stepping = false;
	return ret;
}

int debugreg_step_done(struct vcpu *v)
{
	v->debug.stepping = false;
	return debugreg_apply(v, 0);
}

int debugreg_inject(struct vcpu *v, uint64_t dr6_bits)
{
	struct kvm_debugregs own;

	/* Injection does not set bits in the guest's DR6, but its #DB handler expects them. */
	if (ioctl(v->fd, KVM_GET_DEBUGREGS, &own) < 0)
		return -errno;
	own.dr6 = (own.dr6 & ~(uint64_t)DR6_SLOTS) | dr6_bits;
	if (ioctl(v->fd, KVM_SET_DEBUGREGS, &own) < 0)
		return -errno;
	/*
	 * KVM accepts it only while guest debugging is enabled, which holds because it has just
	 * exited.
	 */
	return debugreg_apply(v, KVM_GUESTDBG_INJECT_DB);
}
