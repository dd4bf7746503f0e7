/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The time stamp counters of a machine, as what each vCPU's is ahead of the host's.
 *
 * A counter that is written (MSR_IA32_TSC) does not always get that value: KVM takes a value
 * of about a second from what it expects for a wish to have all vCPUs alike, and puts
 * something else there. Before Linux 6.8 it expects that of a vCPU that was just made, and so
 * the time of a guest that was saved in its first second went back. An
 * offset (KVM_VCPU_TSC_OFFSET, Linux 5.16) is taken as it is, and what the vCPUs differ by
 * stays to the cycle.
 */
#include "vmm/snapshot/snapshot_vm.h"

#include "vmm/layout.h"
#include "vmm/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <x86intrin.h>

static int tsc_offset(const struct vcpu *v, unsigned long request, uint64_t *offset)
{
	const struct kvm_device_attr attr = {
		.group = KVM_VCPU_TSC_CTRL,
		.attr = KVM_VCPU_TSC_OFFSET,
		.addr = (uint64_t)(uintptr_t)offset,
	};

	return ioctl(v->fd, request, &attr) < 0 ? errno : 0;
}

int snapshot_tsc_save(void *machine, struct buf *out, struct err *e)
{
	const struct vm *vm = machine;
	uint64_t offset[VM_MAX_VCPUS], now = __rdtsc();
	bool known = !vm->cfg.quirks->tsc_fixed;

	(void)e;
	for (unsigned int i = 0; known && i < vm->nvcpus; i++)
		known = tsc_offset(&vm->vcpu[i], KVM_GET_DEVICE_ATTR, &offset[i]) == 0;
	buf_u8(out, known);
	if (!known)
		return 0;
	buf_u64(out, now);
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		buf_u64(out, offset[i]);
	return 0;
}

int snapshot_tsc_restore(void *machine, struct cursor *in, struct err *e)
{
	struct vm *vm = machine;
	bool known = cursor_u8(in) & 1;
	uint64_t now = __rdtsc(), then = known ? cursor_u64(in) : 0;

	vm->tsc_set = known && !vm->cfg.quirks->tsc_fixed;
	for (unsigned int i = 0; known && i < vm->nvcpus; i++) {
		uint64_t offset = cursor_u64(in) + then - now;

		if (in->bad || !vm->tsc_set)
			continue;
		/* A KVM that has no offsets has a counter that can be written. */
		if (tsc_offset(&vm->vcpu[i], KVM_SET_DEVICE_ATTR, &offset) != 0)
			vm->tsc_set = false;
	}
	return in->bad || cursor_left(in)
		       ? err_set(e, EINVAL, "the state of the time stamp counters is damaged")
		       : 0;
}
