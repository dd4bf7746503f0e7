/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine of rings and memory that replaces vmm/vm.c, for tests and benchmarks of the consumer.
 * The functions have the contracts of vm.h.
 */
#ifndef KVMPROF_TESTS_UNIT_MACHINE_FIXTURE_H
#define KVMPROF_TESTS_UNIT_MACHINE_FIXTURE_H

#include "base/clock.h"
#include "vmm/vm.h"
#include "base/capture_plan.h"
#include "base/gmem.h"
#include "base/ring.h"
#include "vmm/dev/io.h"
#include "vmm/end.h"
#include "vmm/control.h"
#include "vmm/device.h"
#include "vmm/io_log.h"
#include "vmm/capture/capture_python.h"

#include <time.h>

#define MACHINE_MAX_VCPUS 64u

struct vm {
	struct gmem mem;
	struct ring ring[MACHINE_MAX_VCPUS];
	unsigned int vcpus;
	uint64_t boot_low, boot_high;
	/* The arguments that the machine was given. */
	enum vm_end_reason end;
	uint64_t slide;
	unsigned int slides, plans;
	struct capture_task_plan plan;
	/* The records to return from its log, and the number of lost ones. */
	const struct io_record *io;
	unsigned int nio;
	uint64_t io_lost, packets_lost;
};

const struct gmem *vm_memory(const struct vm *vm)
{
	return &vm->mem;
}

unsigned int vm_vcpus(const struct vm *vm)
{
	return vm->vcpus;
}

unsigned int vm_vcpus_most(const struct vm *vm)
{
	return vm->vcpus;
}

struct ring *vm_ring(struct vm *vm, unsigned int vcpu)
{
	return &vm->ring[vcpu];
}

void vm_end(struct vm *vm, enum vm_end_reason reason)
{
	vm->end = reason;
}

unsigned int vm_io_take(struct vm *vm, struct io_record *out, unsigned int max)
{
	unsigned int n;

	for (n = 0; n < max && vm->nio; vm->nio--)
		out[n++] = *vm->io++;
	return n;
}

uint64_t vm_io_lost(struct vm *vm, uint64_t *packets)
{
	*packets = vm->packets_lost;
	return vm->io_lost;
}

const char *vm_exit_name(unsigned int kind)
{
	return kind == 2 ? "IO" : "other";
}

bool vm_event_is_armed(const struct vm *vm, unsigned int event)
{
	(void)vm;
	(void)event;
	return true;
}

bool vm_is_exact(const struct vm *vm)
{
	(void)vm;
	return false;
}

/* The machine's clock, in ns; 0: CLOCK_MONOTONIC. */
static uint64_t machine_now_ns;

uint64_t vm_now_ns(const struct vm *vm)
{
	(void)vm;
	return machine_now_ns ? machine_now_ns : clock_mono_ns();
}

void vm_wait_samples(struct vm *vm, uint64_t ns)
{
	const struct timespec nap = { .tv_nsec = (long)ns };

	(void)vm;
	nanosleep(&nap, NULL);
}

void vm_refresh_memory(struct vm *vm)
{
	(void)vm;
}

void vm_consumer_gone(struct vm *vm)
{
	(void)vm;
}

void vm_set_slide(struct vm *vm, uint64_t slide)
{
	vm->slide = slide;
	vm->slides++;
}

void vm_set_task_plan(struct vm *vm, const struct capture_task_plan *plan)
{
	vm->plan = *plan;
	vm->plans++;
}

int capture_python_find_layout(struct vm *vm, const struct capture_python_layout *layout)
{
	(void)vm;
	(void)layout;
	return -1;
}

void capture_python_find_thread(struct vm *vm, const struct capture_python_thread *t)
{
	(void)vm;
	(void)t;
}

const char *vm_device_name(const struct vm *vm, unsigned int device)
{
	(void)vm;
	return device ? NULL : "serial";
}

void vm_boot_memory(const struct vm *vm, uint64_t *low, uint64_t *high)
{
	*low = vm->boot_low;
	*high = vm->boot_high;
}

uint64_t vm_first_entry_ns(const struct vm *vm)
{
	(void)vm;
	return 1;
}

bool vm_is_collecting(const struct vm *vm)
{
	(void)vm;
	return true;
}

#endif
