/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * places: instructions in front of which an exact machine stands: breakpoints of the machine's, as far as
 * the plugin and the program speak of them.
 *
 * On the consumer's thread, while the vCPU stands.
 */
#ifndef KVMPROF_VMM_EXACT_PLACES_H
#define KVMPROF_VMM_EXACT_PLACES_H

#include "vmm/exact/shared.h"
#include "vmm/vm.h"

/* Before QEMU starts. */
void places_init(struct exact_shared *s, const struct vm_breakpoint *b, unsigned int n);
/* Those that lie in a kernel that moves, once it is known where it is. */
void places_follow(struct exact_shared *s, const struct vm *vm);
/*
 * It stands in front of one: which, as far as that is to be noted, or NULL. The machine collects from
 * here on where it is a start.
 */
const struct vm_breakpoint *places_reached(const struct exact_shared *s, struct vm *vm,
					   uint64_t now_ns);

#endif
