/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_again: samples the next machine that a VMM makes in the same process when its vCPUs have
 * ended, as Cloud Hypervisor does for a reboot.
 *
 * The new vCPUs take the places of the old ones. Called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_AGAIN_H
#define KVMPROF_VMM_ATTACH_ATTACH_AGAIN_H

#include "vmm/attach/attach_state.h"

/*
 * Looks whether the process runs another machine, and samples that one from now on. Called
 * repeatedly once all vCPU threads have ended. Returns false if the process has ended too, or has
 * run no other machine within three seconds; else true, also if there is none yet.
 */
bool attach_again(struct attach *a);
/*
 * Looks at the process once more before vCPUs are sampled, as its VMM may have made another machine
 * meanwhile. Returns whether a thread of it runs a guest now; only then a->process is new.
 */
bool attach_again_look(struct attach *a);

#endif
