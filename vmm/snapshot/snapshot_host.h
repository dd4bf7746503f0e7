/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_host: describes the host on which a machine ran, to compare it with the one where it is
 * restored.
 *
 * The description is lines of text, "what=value". The processor as KVM offers it to guests, KVM's
 * own features and the quirks that have to be worked around must be equal; the TSC frequency may
 * differ by 250 ppm, which is what KVM tolerates between hosts (tsc_tolerance_ppm). Called by the
 * main thread.
 */
#ifndef KVMPROF_VMM_SNAPSHOT_SNAPSHOT_HOST_H
#define KVMPROF_VMM_SNAPSHOT_SNAPSHOT_HOST_H

#include "vmm/snapshot/snapshot.h"

#define SNAPSHOT_HOST_VERSION 1u

struct kvm_host;
struct quirks;

/* Appends the description of this host to *out. Returns 0, or -errno with *e set. */
int snapshot_host_save(const struct kvm_host *h, const struct quirks *q, struct buf *out,
		       struct err *e);
/*
 * Checks whether the snapshot can be restored here. Returns 0; -ENOTSUP with the first difference
 * in *e: processor, KVM's features, frequency of the TSC, or quirks; or another -errno.
 */
int snapshot_host_check(const struct snapshot *s, const struct kvm_host *h, const struct quirks *q,
			struct err *e);

#endif
