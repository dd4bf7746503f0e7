/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * device: what a vCPU's thread works at between two KVM_RUNs, and for how long.
 *
 * The clock is read twice for each exit that comes to us (about 0.1 us together on the
 * machine of docs/host-quirks.md, where the cheapest such exit takes 7.5 us).
 */
#include "base/clock.h"
#include "vmm/machine.h"

#include <assert.h>
#include <string.h>

/* Work that is no device's on the bus. */
enum {
	WORK_NO_PORT = BUS_MAX_DEVICES,
	WORK_MMIO,
	WORK_MSR,
	WORK_DEBUG,
	WORK_INSN,
	WORK_OTHER,
	WORK_END
};
_Static_assert(WORK_END <= VM_MAX_DEVICES, "a name for each kind of work");

const char *vm_device_name(const struct vm *vm, unsigned int device)
{
	static const char *const work[] = {
		[WORK_NO_PORT - BUS_MAX_DEVICES] = "no device",
		[WORK_MMIO - BUS_MAX_DEVICES] = "mmio",
		[WORK_MSR - BUS_MAX_DEVICES] = "msr",
		[WORK_DEBUG - BUS_MAX_DEVICES] = "debug",
		[WORK_INSN - BUS_MAX_DEVICES] = "instruction",
		[WORK_OTHER - BUS_MAX_DEVICES] = "other",
	};

	if (device < vm->bus.n)
		return vm->bus.device[device].name;
	return device >= BUS_MAX_DEVICES && device < WORK_END ? work[device - BUS_MAX_DEVICES]
							      : NULL;
}

/* A device with several ranges of ports goes by the first of them. */
static unsigned int first_of_name(const struct bus *b, unsigned int device)
{
	for (unsigned int i = 0; i < device; i++)
		if (!strcmp(b->device[i].name, b->device[device].name))
			return i;
	return device;
}

static unsigned int work_of_exit(const struct vcpu *v)
{
	const struct bus *b = &v->vm->bus;
	int at;

	switch (v->run->exit_reason) {
	case KVM_EXIT_IO:
		at = bus_find(b, v->run->io.port);
		return at < 0 ? WORK_NO_PORT : first_of_name(b, (unsigned int)at);
	case KVM_EXIT_MMIO:
		return WORK_MMIO;
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		return WORK_MSR;
	case KVM_EXIT_DEBUG:
		return WORK_DEBUG;
	case KVM_EXIT_INTERNAL_ERROR:
		return WORK_INSN;
	default:
		return WORK_OTHER;
	}
}

uint64_t device_enter(struct vcpu *v)
{
	uint64_t now = clock_mono_ns();

	v->device = 1 + (int)work_of_exit(v);
	return now;
}

void device_leave(struct vcpu *v, uint64_t since)
{
	struct vcpu_device_stats *d = &v->stats.device[v->device - 1];

	v->device = 0;
	d->exits++;
	d->ns += clock_mono_ns() - since;
}
