/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * places: instructions in front of which an exact machine stands, as far as the plugin and the program
 * speak of them: the machine's breakpoints, and behind them where parts of the run begin.
 *
 * On the consumer's thread, while the vCPU stands.
 */
#ifndef KVMPROF_VMM_EXACT_PLACES_H
#define KVMPROF_VMM_EXACT_PLACES_H

#include "vmm/exact/exact.h"
#include "vmm/exact/shared.h"

/* Before QEMU starts. */
void places_init(struct exact_shared *s, const struct exact_config *cfg);
/* Those that lie in a kernel that moves, once it is known where it is. */
void places_follow(struct exact_shared *s, const struct vm *vm, const struct exact_facts *f);
/* It stands in front of one: true when a part of the run begins there, which is noted. */
bool places_begin_part(struct exact_shared *s, const struct vm *vm, struct exact_facts *f);
/*
 * It stands in front of one: which, as far as that is to be noted, or NULL. The machine collects from
 * here on where it is a start.
 */
const struct vm_breakpoint *places_reached(const struct exact_shared *s, struct vm *vm,
					   uint64_t now_ns);

#endif
