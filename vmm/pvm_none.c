/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvm_none: in place of pvm/ in a build without it (make PVM=0), for hosts with VMX or SVM.
 */
#include "vmm/pvm.h"

#include <stdio.h>

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
	(void)h;
	*q = (struct quirks){ .probed = false };
	snprintf(q->why, sizeof(q->why), "this kvmprof was built without the probe guest (PVM=0)");
}

void quirks_release(struct quirks *q)
{
	(void)q;
}
