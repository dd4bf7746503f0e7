/* SPDX-License-Identifier: GPL-2.0-or-later */
/* net_tap: a tap interface of the host as in net_link.h. */
#ifndef KVMPROF_VMM_DEV_NET_TAP_H
#define KVMPROF_VMM_DEV_NET_TAP_H

#include "vmm/dev/net_link.h"

/* receive() gets frames for the guest. Errors are as the system said, with what to do. */
int net_tap_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		void *ctx, struct err *e);

#endif
