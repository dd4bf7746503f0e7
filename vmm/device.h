/* SPDX-License-Identifier: GPL-2.0-or-later */
/* device: what a vCPU's thread works at between two KVM_RUNs. */
#ifndef KVMPROF_VMM_DEVICE_H
#define KVMPROF_VMM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;
struct vm;

/* Around the work for one exit. Both return the time, which device_leave() takes. */
uint64_t device_enter(struct vcpu *v);
uint64_t device_leave(struct vcpu *v, uint64_t since);

/* "serial", "mmio", ...; several may have one name. NULL: there is none of that index. */
const char *vm_device_name(const struct vm *vm, unsigned int device);

/* A device on the port bus, and how often the guest has come to it so far. */
struct vm_device {
	const char *name;
	uint16_t base, count; /* ports */
	uint64_t exits;	      /* KVM_EXIT_IO */
	uint64_t accesses;    /* an exit of a string instruction has several */
};
/* false: there is no device i. Any thread. */
bool vm_device(const struct vm *vm, unsigned int i, struct vm_device *out);

/* Name of a KVM_EXIT_* number as api.rst spells it, without the prefix; "other" when unknown. */
const char *vm_exit_name(unsigned int kind);

#endif
