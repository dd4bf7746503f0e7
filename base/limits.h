/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * limits: limits of one machine for all code that has tables of its parts, and rate limits of
 * devices.
 */
#ifndef KVMPROF_BASE_LIMITS_H
#define KVMPROF_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#define VM_MAX_VCPUS 64 /* below 255, because local APIC ids have 8 bits without x2APIC */
#define VM_MAX_DISKS 8u
#define VM_MAX_SHARES 8u

/* Limits per second; 0: no limit. */
struct rate_limit {
	uint64_t bytes, operations;
};

#endif
