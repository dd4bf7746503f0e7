/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_slirp: the program of the process of the guest's network (net_user.c), with libslirp. Each
 * message on its socket is a frame, except the first one, which this process sends.
 */
#ifndef KVMPROF_VMM_DEV_NET_SLIRP_H
#define KVMPROF_VMM_DEV_NET_SLIRP_H

#include "base/err.h"
#include "vmm/dev/net_link.h"

/* The buffer for frames in each direction, in bytes; the host may have a lower limit. */
#define NET_SOCKET_BYTES (1 << 20)

/* The first message: whether the network works. */
struct net_begin {
	int32_t ret; /* 0 or -errno, then with its text */
	char text[sizeof(((struct err *)NULL)->text)];
};

/*
 * Runs the network; has the type of helper_work.run. ctx is a struct net_config. Returns 0 when the
 * socket has been closed. It calls the struct's bind() before it serves.
 */
int net_slirp_main(void *ctx);

#endif
