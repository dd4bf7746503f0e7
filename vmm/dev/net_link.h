/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_link: what is at the other end of a network device's cable.
 *
 * user: libslirp, a TCP/IP in a process of its own that needs no rights: the guest has 10.0.2.15
 * (by DHCP), the host is 10.0.2.2, names are looked up by 10.0.2.3. The guest reaches what
 * that process can reach, but what listens on the host's 127.0.0.1 only if that was asked for.
 * tap: an interface of the host. Frames are Ethernet without checksum at the end.
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

/* Connections to this port of the host's 127.0.0.1 go to the guest's. */
struct net_forward {
	bool udp;
	uint16_t host, guest;
};

struct net_config {
	enum net_kind kind;
	struct rate_limit limit; /* of each direction */
	const char *tap;	 /* TAP: name of the interface */
	/* USER: */
	bool host_loopback; /* 10.0.2.2 is the host's 127.0.0.1 */
	bool restricted;    /* nothing but `forward` gets in or out */
	struct net_forward forward[NET_MAX_FORWARDS];
	unsigned int nforwards;
	/* In the process of the network, before it serves: gives up rights, or -errno with e set. NULL: none. */
	int (*bind)(void *ctx, struct err *e);
	/* That process has ended while the machine runs: `how`, as words behind "it ". On the link's thread. NULL: none. */
	void (*ended)(void *ctx, const char *how);
	void *ctx; /* of both */
};

struct net_link {
	/* Once; from here on receive() is called, on a thread of the link's own. */
	int (*start)(struct net_link *l, struct err *e);
	/*
	 * A frame from the guest, of NET_FRAME_MIN to NET_FRAME_MAX bytes; on vCPU threads. false: it is lost, since
	 * it finds no room.
	 */
	bool (*send)(struct net_link *l, const uint8_t *frame, size_t len);
	void (*destroy)(struct net_link *l); /* its thread ended, memory freed */
};

/* A frame for the guest. */
typedef void net_receive_fn(void *ctx, const uint8_t *frame, size_t len);

#endif
