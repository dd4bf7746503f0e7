/* SPDX-License-Identifier: GPL-2.0-or-later */
/* device: accounts for the work that a vCPU's thread does between two KVM_RUN calls, by device. */
#ifndef KVMPROF_VMM_DEVICE_H
#define KVMPROF_VMM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;
struct vm;

/*
 * Begins the work for one exit. Returns the current time (CLOCK_MONOTONIC in ns). Called by the
 * vCPU's thread.
 */
uint64_t device_enter(struct vcpu *v);
/*
 * Ends the work for one exit; `since` is the time that device_enter() returned. Returns the current
 * time. Called by the vCPU's thread.
 */
uint64_t device_leave(struct vcpu *v, uint64_t since);

/*
 * Returns the name of a device index ("serial", "mmio", ...), a static string, or NULL if there is
 * none. Several indices may share a name. Any thread may call it.
 */
const char *vm_device_name(const struct vm *vm, unsigned int device);

/* A device on the port bus, and its counters. */
struct vm_device {
	const char *name;
	uint16_t base, count; /* ports */
	uint64_t exits;	      /* number of KVM_EXIT_IO */
	uint64_t accesses;    /* number of accesses; an exit of a string instruction has several */
};
/* Copies device i to *out. Returns false if there is none. Any thread may call it. */
bool vm_device(const struct vm *vm, unsigned int i, struct vm_device *out);

/*
 * Returns the name of a KVM_EXIT_* number as in api.rst, without the prefix; "other" if unknown. A
 * static string.
 */
const char *vm_exit_name(unsigned int kind);

#endif
