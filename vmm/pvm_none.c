/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm_none: in place of pvm/ in a build without it (make PVM=0), for hosts with VMX or SVM.
 */
#include "vmm/pvm.h"

#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A machine that never runs: KVM tells a TSC's rate to a vCPU alone. */
struct probe {
	int vm, vcpu; /* -1: none */
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
	*q = (struct quirks){ .probe = malloc(sizeof(*q->probe)) };
	if (q->probe) {
		q->probe->vm = kvm_vm_create(h);
		q->probe->vcpu = q->probe->vm < 0 ? -1 : ioctl(q->probe->vm, KVM_CREATE_VCPU, 0);
		q->tsc_khz = kvm_tsc_khz(h, q->probe->vcpu);
	}
	snprintf(q->why, sizeof(q->why), "this kvmprof was built without the probe guest (PVM=0)");
}

void quirks_release(struct quirks *q)
{
	if (!q->probe)
		return;
	if (q->probe->vcpu >= 0)
		close(q->probe->vcpu);
	if (q->probe->vm >= 0)
		close(q->probe->vm);
	free(q->probe);
	q->probe = NULL;
}
