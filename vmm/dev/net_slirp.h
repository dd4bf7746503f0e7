/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_slirp: what runs in the process of the guest's network (net_user.c): libslirp. Each message of its socket is a frame,
 * but for the first one, which it sends.
 */
#ifndef KVMPROF_VMM_DEV_NET_SLIRP_H
#define KVMPROF_VMM_DEV_NET_SLIRP_H

#include "base/err.h"
#include "vmm/dev/net_link.h"

/* Frames that wait, each way; the host may have a lower limit. */
#define NET_SOCKET_BYTES (1 << 20)

/* The first message: whether there is a network. */
struct net_begin {
	int32_t ret; /* 0 or -errno, then with its text */
	char text[sizeof(((struct err *)NULL)->text)];
};

/* ctx: struct net_config. As helper_work.run: returns when the socket has ended. */
int net_slirp_main(void *ctx);

#endif
