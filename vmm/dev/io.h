/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io: records of the requests that a block device has handled, and of a network card's packets. */
#ifndef KVMPROF_VMM_DEV_IO_H
#define KVMPROF_VMM_DEV_IO_H

#include <stdbool.h>
#include <stdint.h>

enum io_type {
	IO_READ = 0,
	IO_WRITE,
	IO_FLUSH,
	IO_DISCARD,
	IO_ZEROES, /* zeros written without data */
	IO_TYPES,
	/*
	 * These are no requests: an interrupt was raised for the request with this submit_ns; the
	 * guest acknowledged one.
	 */
	IO_RAISED,
	IO_HANDLED,
	/* Packets: one from the guest, and one to it. */
	IO_SENT,
	IO_RECEIVED,
};

/* Returns whether the record is about a packet. */
static inline bool io_is_packet(uint8_t type)
{
	return type == IO_SENT || type == IO_RECEIVED;
}

enum io_status {
	IO_OK = 0, /* values of VIRTIO_BLK_S_OK and so on (VIRTIO 1.2, 5.2.6) */
	IO_ERROR,
	IO_UNSUPPORTED,
};

/*
 * A completed request, or an event of a disk's interrupt at complete_ns, or a packet. A packet was
 * taken from the guest's queue, or by the thread that received it, at submit_ns; it was at the
 * other end of the cable, or in the guest's memory, at complete_ns (0: it was lost).
 */
struct io_record {
	/* Shared by the requests of one notification; 0: the vCPU that notified is not known. */
	uint64_t token;
	uint64_t sector; /* in units of 512 bytes; 0 for a flush */
	/* Requested bytes; packets: length of the Ethernet frame that the guest stated. */
	uint64_t bytes;
	uint64_t submit_ns, complete_ns; /* CLOCK_MONOTONIC: taken from the queue, returned to it */
	/* When the guest notified with this token; 0: found without a notification. */
	uint64_t notified_ns;
	uint64_t begun_ns;  /* when a thread began to execute it; 0 for a packet */
	uint64_t raised_ns; /* packets: when the interrupt was raised; 0: none was needed */
	uint8_t device;	    /* index of the disk */
	uint8_t type;	    /* enum io_type */
	uint8_t status;	    /* enum io_status */
};

/* Successful requests and their bytes by io_type; GET_ID is not counted. */
struct io_stats {
	uint64_t requests[IO_TYPES], bytes[IO_TYPES];
	uint64_t errors; /* other requests */
};

/* Packets, and the bytes of their frames, by direction. */
struct net_stats {
	uint64_t sent, sent_bytes, received, received_bytes;
	uint64_t not_sent;     /* frames of invalid length, or not accepted at the other end */
	uint64_t not_received; /* frames for which the guest had no buffer */
};

/* Receives the records of a device. done NULL: no records are needed. */
struct dev_io {
	/*
	 * Returns a token for this notification, or 0. Called on the vCPU's thread within kick().
	 */
	uint64_t (*batch)(void *ctx);
	void (*done)(void *ctx, const struct io_record *r); /* gets one record; any thread */
	void *ctx;
};

#endif
