/* SPDX-License-Identifier: GPL-2.0-or-later */
/* net_user: the user network of net_link.h. */
#ifndef KVMPROF_VMM_DEV_NET_USER_H
#define KVMPROF_VMM_DEV_NET_USER_H

#include "vmm/dev/net_link.h"

/*
 * Starts the process of the network; to be called before this process has threads whose locks the new process could
 * find taken. receive() gets frames for the guest. -ENOENT: no libslirp; else as the system said, with what to do.
 */
int net_user_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		 void *ctx, struct err *e);

#endif
