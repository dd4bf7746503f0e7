/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_link: the other end of a network device's cable.
 *
 * user: libslirp, a TCP/IP implementation in a process of its own that needs no rights. The guest
 * has 10.0.2.15 (by DHCP), the host is 10.0.2.2, and 10.0.2.3 resolves names. The guest reaches
 * what that process can reach, but services on the host's 127.0.0.1 only if this was requested.
 * tap: an interface of the host. Frames are Ethernet frames without a checksum at the end.
 */
#ifndef KVMPROF_VMM_DEV_NET_LINK_H
#define KVMPROF_VMM_DEV_NET_LINK_H

#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_FRAME_MIN 14u   /* bytes: header */
#define NET_FRAME_MAX 1518u /* bytes: header, VLAN tag, 1500 */
#define NET_MAX_FORWARDS 8u

enum net_kind { NET_NONE = 0, NET_USER, NET_TAP };

/* Connections to this port of the host's 127.0.0.1 are forwarded to the guest's port. */
struct net_forward {
	bool udp;
	uint16_t host, guest;
};

struct net_config {
	enum net_kind kind;
	struct rate_limit limit; /* for each direction */
	const char *tap;	 /* TAP: name of the interface */
	/* Members for USER only: */
	bool host_loopback; /* 10.0.2.2 reaches the host's 127.0.0.1 */
	bool restricted;    /* nothing but `forward` passes in or out */
	struct net_forward forward[NET_MAX_FORWARDS];
	unsigned int nforwards;
	/*
	 * Called in the network's process before it serves, to give up rights. Returns 0, or -errno
	 * with *e recorded. NULL: not called.
	 */
	int (*bind)(void *ctx, struct err *e);
	/*
	 * Called on the link's thread when that process ends while the machine runs. `how` is text
	 * that follows "it ". NULL: not called.
	 */
	void (*ended)(void *ctx, const char *how);
	void *ctx; /* argument of both */
};

/* The operations of a link. */
struct net_link {
	/*
	 * Starts the link's thread, which calls the receive function from then on. Called once.
	 * Returns 0, or -errno with *e recorded.
	 */
	int (*start)(struct net_link *l, struct err *e);
	/*
	 * Sends a frame of NET_FRAME_MIN to NET_FRAME_MAX bytes from the guest, without blocking.
	 * Returns false if it is lost for lack of room. Called by vCPU threads.
	 */
	bool (*send)(struct net_link *l, const uint8_t *frame, size_t len);
	void (*destroy)(struct net_link *l); /* ends the thread and frees the link */
};

/* Gets a frame for the guest, on the link's thread. The frame is valid during the call only. */
typedef void net_receive_fn(void *ctx, const uint8_t *frame, size_t len);

#endif
