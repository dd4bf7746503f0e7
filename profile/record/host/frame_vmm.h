/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_vmm: a frame for the work that the VMM does in the guest's place.
 *
 * A sample whose period ended while its vCPU's thread worked for a device gets one
 * more frame, the innermost: "[vmm] serial" of the module "vmm". Its address is one
 * that no Linux has code at. A sample of a guest that the guest runs has one such frame alone:
 * "[nested guest]". Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_FRAME_VMM_H
#define KVMPROF_PROFILE_RECORD_HOST_FRAME_VMM_H

#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/core/stack.h"
#include "vmm/vm.h"

/*
 * In the last 2 MiB, which Linux leaves unused (Documentation/arch/x86/x86_64/mm.rst), above
 * all kernel code: perf takes symbols behind a module's for another kernel's. Below -4095,
 * where perf has its context marks. A few bytes for each device.
 */
#define GUEST_VMM_BASE UINT64_C(0xffffffffffff0000)
#define GUEST_VMM_STEP 16u
#define GUEST_VMM_FRAMES (VM_MAX_DEVICES + 2u) /* devices, and two for nested guests */

struct guest_vmm {
	struct symtab *symbols; /* NULL until the first such sample; borrowed by the sink */
};

void guest_vmm_deinit(struct guest_vmm *g);

/*
 * Put the frame on top of an unwound stack; the first time the sink is told of the module.
 * Does nothing for other samples. Errors are the sink's, and -ENOMEM.
 */
int guest_vmm_see(struct guest_vmm *g, const struct vm *vm, struct sink *sink,
		  const struct sample *s, struct stack *stack, struct err *e);

/* Is it a sample of a nested guest? Then its stack is that one frame; guest_vmm_see() follows. */
bool guest_vmm_nested(const struct sample *s, struct stack *stack);

/* A frame at va in front of all others, as if the kernel were there. */
void guest_vmm_push(struct stack *stack, uint64_t va);

/* Is this the address of such a frame? */
static inline bool guest_vmm_owns(uint64_t va)
{
	return va - GUEST_VMM_BASE < GUEST_VMM_FRAMES * GUEST_VMM_STEP;
}

/* Of such a frame: the device that was worked for, as vm_device_name() counts them. */
static inline unsigned int guest_vmm_device(uint64_t va)
{
	return (unsigned int)((va - GUEST_VMM_BASE) / GUEST_VMM_STEP);
}

#endif
