/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_tap: a tap interface of the host as the link of net_link.h. The thread that creates the
 * machine calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_NET_TAP_H
#define KVMPROF_VMM_DEV_NET_TAP_H

#include "vmm/dev/net_link.h"

/*
 * Opens the tap interface. receive(ctx, ...) gets the frames for the guest. Returns 0, or -errno
 * with advice in *e. The caller frees *out with its destroy().
 */
int net_tap_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		void *ctx, struct err *e);

#endif
