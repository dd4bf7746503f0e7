/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpuid: features that a guest must not use on a host that interprets ring 0. */
#ifndef KVMPROF_VMM_PVM_CPUID_H
#define KVMPROF_VMM_PVM_CPUID_H

#include "vmm/quirks.h"

#include <linux/kvm.h>

/* Take them out of *c, which has what KVM supports. */
void cpuid_mask(const struct quirks *q, struct kvm_cpuid2 *c);

#endif
