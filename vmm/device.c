/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * device: measures how long a vCPU's thread works for each device between two KVM_RUN calls.
 *
 * The clock is read three times for each exit to user space, once of them by vcpu.c (about 0.1 us
 * in total on the machine of docs/hosts.md, where the cheapest such exit takes 7.5 us).
 */
#include "vmm/device.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/machine.h"

#include <assert.h>
#include <string.h>

/* Indices of work that belongs to no device on the port bus. */
enum {
	WORK_MMIO_DEVICE = BUS_MAX_DEVICES, /* first memory-mapped device of the bus */
	WORK_NO_PORT = WORK_MMIO_DEVICE + BUS_MAX_MMIO,
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
		[WORK_NO_PORT - WORK_NO_PORT] = "no device", [WORK_MMIO - WORK_NO_PORT] = "mmio",
		[WORK_MSR - WORK_NO_PORT] = "msr",	     [WORK_DEBUG - WORK_NO_PORT] = "debug",
		[WORK_INSN - WORK_NO_PORT] = "instruction",  [WORK_OTHER - WORK_NO_PORT] = "other",
	};

	if (device < vm->bus.n)
		return vm->bus.device[device].name;
	if (device >= WORK_MMIO_DEVICE && device - WORK_MMIO_DEVICE < vm->bus.nmmio)
		return vm->bus.mmio[device - WORK_MMIO_DEVICE].name;
	return device >= WORK_NO_PORT && device < WORK_END ? work[device - WORK_NO_PORT] : NULL;
}

/*
 * Returns the first device with the same name: a device with several port ranges has the index of
 * the first one.
 */
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
		at = bus_find_mmio(b, v->run->mmio.phys_addr);
		return at < 0 ? WORK_MMIO : WORK_MMIO_DEVICE + (unsigned int)at;
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

uint64_t device_leave(struct vcpu *v, uint64_t since)
{
	uint64_t now = clock_mono_ns();
	struct vcpu_device_stats *d = &v->stats.device[v->device - 1];

	v->device = 0;
	count_add(&d->exits, 1);
	count_add(&d->ns, now - since);
	return now;
}

bool vm_device(const struct vm *vm, unsigned int i, struct vm_device *out)
{
	const struct bus_device *d = &vm->bus.device[i];

	if (i >= vm->bus.n)
		return false;
	*out = (struct vm_device){
		.name = d->name,
		.base = d->base,
		.count = d->count,
		.exits = atomic_load_explicit(&d->exits, memory_order_relaxed),
		.accesses = atomic_load_explicit(&d->accesses, memory_order_relaxed),
	};
	return true;
}

const char *vm_exit_name(unsigned int kind)
{
	static const char *const name[] = {
		[KVM_EXIT_UNKNOWN] = "UNKNOWN",
		[KVM_EXIT_IO] = "IO",
		[KVM_EXIT_HYPERCALL] = "HYPERCALL",
		[KVM_EXIT_DEBUG] = "DEBUG",
		[KVM_EXIT_HLT] = "HLT",
		[KVM_EXIT_MMIO] = "MMIO",
		[KVM_EXIT_IRQ_WINDOW_OPEN] = "IRQ_WINDOW_OPEN",
		[KVM_EXIT_SHUTDOWN] = "SHUTDOWN",
		[KVM_EXIT_FAIL_ENTRY] = "FAIL_ENTRY",
		[KVM_EXIT_INTR] = "INTR",
		[KVM_EXIT_INTERNAL_ERROR] = "INTERNAL_ERROR",
		[KVM_EXIT_SYSTEM_EVENT] = "SYSTEM_EVENT",
		[KVM_EXIT_X86_RDMSR] = "X86_RDMSR",
		[KVM_EXIT_X86_WRMSR] = "X86_WRMSR",
	};

	return kind < sizeof(name) / sizeof(name[0]) && name[kind] ? name[kind] : "other";
}
