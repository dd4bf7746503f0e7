/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * still: presents a saved machine that does not run as a struct vm, whose memory and registers are
 * those of the snapshot. KVM is not needed, the file is not changed, and no file of the host that
 * the machine's devices use is opened.
 */
#ifndef KVMPROF_VMM_ATTACH_STILL_H
#define KVMPROF_VMM_ATTACH_STILL_H

#include "vmm/attach/attach.h"

/*
 * Opens a snapshot (vmm/snapshot). Each vCPU has samples of its saved registers, as if it were
 * stopped again and again. Of *cfg only `plan`, `event`, `ring_size`, `host` and `quirks` are used.
 * Called by the main thread. Returns 0, or -errno with *e set. The caller frees *out with
 * vm_destroy().
 */
int still_open(struct vm **out, const char *path, const struct attach_config *cfg, struct err *e);

#endif
