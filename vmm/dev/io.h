/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io: what a block device tells of the requests that it was given, and a network card of packets.
 */
#ifndef KVMPROF_VMM_DEV_IO_H
#define KVMPROF_VMM_DEV_IO_H

#include <stdbool.h>
#include <stdint.h>

enum io_type {
	IO_READ = 0,
	IO_WRITE,
	IO_FLUSH,
	IO_DISCARD,
	IO_ZEROES, /* written without data */
	IO_TYPES,
	/* No requests: an interrupt was made for the one of this submit_ns; the guest acknowledged one. */
	IO_RAISED,
	IO_HANDLED,
	/* Packets: one of the guest's, and one for it. */
	IO_SENT,
	IO_RECEIVED,
};

static inline bool io_is_packet(uint8_t type)
{
	return type == IO_SENT || type == IO_RECEIVED;
}

enum io_status {
	IO_OK = 0, /* VIRTIO_BLK_S_OK and so on (VIRTIO 1.2, 5.2.6) */
	IO_ERROR,
	IO_UNSUPPORTED,
};

/*
 * One request that has ended, or what became of a disk's interrupt at complete_ns. Or a packet: taken out
 * of the guest's queue, or by the thread that brought it, at submit_ns; at the other end of the cable,
 * or in the guest's memory, at complete_ns (0: it was lost).
 */
struct io_record {
	/* Requests of one notification share it; 0: the vCPU that brought them is not known. */
	uint64_t token;
	uint64_t sector; /* of 512 bytes; 0 of a flush */
	uint64_t bytes;	 /* asked for; of a packet: an Ethernet frame's, as the guest said */
	uint64_t submit_ns, complete_ns; /* CLOCK_MONOTONIC: popped, pushed */
	uint64_t notified_ns; /* the guest told of it, by this token; 0: it was looked for */
	uint64_t begun_ns;    /* by the thread that carried it out; 0 of a packet */
	uint64_t raised_ns;   /* packets: and an interrupt was made; 0: none was wanted */
	uint8_t device;	      /* index of the disk */
	uint8_t type;	      /* enum io_type */
	uint8_t status;	      /* enum io_status */
};

/* Requests that went well, and their bytes; a GET_ID is none of them. */
struct io_stats {
	uint64_t requests[IO_TYPES], bytes[IO_TYPES];
	uint64_t errors; /* the others */
};

/* Packets, and bytes of their frames, by whether the guest has sent them. */
struct net_stats {
	uint64_t sent, sent_bytes, received, received_bytes;
	uint64_t
		not_sent; /* no frame by its length, or the other end of the cable did not take it */
	uint64_t not_received; /* the guest had no buffer for it */
};

/* Called by a device for its requests; done NULL: no records are wanted. */
struct dev_io {
	/* On the vCPU's thread within kick(): a name for this notification, or 0. */
	uint64_t (*batch)(void *ctx);
	void (*done)(void *ctx, const struct io_record *r); /* any thread */
	void *ctx;
};

#endif
