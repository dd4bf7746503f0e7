/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pvm_none: replaces pvm/ in a build without it (make PVM=0), for hosts with VMX or SVM. */
#include "vmm/pvm.h"

#include "vmm/kvm.h"
#include "vmm/pvm_peek_ops.h"
#include "vmm/quirks.h"

#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* A machine that never runs: KVM reports the TSC frequency only for a vCPU. */
struct probe {
	struct kvm_closer fd;
};

const struct pvm_ops *pvm_ops_for(const struct quirks *q)
{
	(void)q;
	return NULL;
}

const struct pvm_peek_ops *pvm_peek_ops(void)
{
	return NULL;
}

void quirks_probe(const struct kvm_host *h, struct quirks *q)
{
	*q = (struct quirks){ .probe = calloc(1, sizeof(*q->probe)) };
	if (q->probe) {
		struct kvm_closer *fd = &q->probe->fd;

		fd->vm = kvm_vm_create(h);
		fd->vcpu = fd->vm < 0 ? -1 : ioctl(fd->vm, KVM_CREATE_VCPU, 0);
		q->tsc_khz = kvm_tsc_khz(h, fd->vcpu);
	}
	snprintf(q->why, sizeof(q->why), "this kvmprof was built without the probe guest (PVM=0)");
}

void quirks_close(struct quirks *q)
{
	if (q->probe)
		kvm_closer_start(&q->probe->fd);
}

void quirks_release(struct quirks *q)
{
	if (q->probe)
		kvm_closer_finish(&q->probe->fd);
	free(q->probe);
	q->probe = NULL;
}
