/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_again: a VMM whose vCPUs have ended may make another machine in the same process, as Cloud Hypervisor does for a reboot.
 *
 * Its vCPUs take the places of those before. Called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_AGAIN_H
#define KVMPROF_VMM_ATTACH_ATTACH_AGAIN_H

#include "vmm/attach/attach_state.h"

/*
 * All threads of vCPUs have ended: looks whether the process runs another machine, and samples that from now on. Returns false when there is none, as the
 * process has ended too, or has made none for seconds.
 */
bool attach_again(struct attach *a);

#endif
