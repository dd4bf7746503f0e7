/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_user: the user network of net_link.h. The thread that creates the machine calls these
 * functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_NET_USER_H
#define KVMPROF_VMM_DEV_NET_USER_H

#include "vmm/dev/net_link.h"

/*
 * Starts the process of the network. receive(ctx, ...) gets the frames for the guest. Call it
 * before this process has threads whose locks the child could inherit locked. Returns 0, or -errno
 * with advice in *e; -ENOENT if libslirp is missing. The caller frees *out with its destroy().
 */
int net_user_new(struct net_link **out, const struct net_config *cfg, net_receive_fn *receive,
		 void *ctx, struct err *e);

#endif
