/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_host: on what a machine ran, to be compared with where it shall go on.
 *
 * Lines of text, "what=value". The processor as KVM offers it to guests, KVM's own
 * features and what of it has to be worked around must be the same; the TSC may be a
 * little off, as KVM tolerates it between hosts (tsc_tolerance_ppm).
 */
#ifndef KVMPROF_VMM_SNAPSHOT_SNAPSHOT_HOST_H
#define KVMPROF_VMM_SNAPSHOT_SNAPSHOT_HOST_H

#include "vmm/snapshot/snapshot.h"

#define SNAPSHOT_HOST_VERSION 1u

struct kvm_host;
struct quirks;

/* Section "host" of a snapshot: what has to be the same where it is restored, a line of text for each. */
int snapshot_host_save(const struct kvm_host *h, const struct quirks *q, struct buf *out,
		       struct err *e);
/*
 * Can it go on here? -ENOTSUP with what differs: processor, KVM, frequency of the TSC,
 * what of KVM has to be worked around.
 */
int snapshot_host_check(const struct snapshot *s, const struct kvm_host *h, const struct quirks *q,
			struct err *e);

#endif
