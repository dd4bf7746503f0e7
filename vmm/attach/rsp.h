/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp: the GDB remote serial protocol, as a client.
 *
 *   packet := '$' data '#' 2 hex digits (sum of the data's bytes)
 *   data   := bytes; 0x7d escapes the next one (xor 0x20), '*' repeats the one before
 *             (count + 29 in the next byte)
 *
 * Each packet is acknowledged by '+'. Source: the GDB manual, appendix E. Data from the stub is
 * untrusted: every length is capped. One thread at a time uses a connection.
 *
 * Errors of the connection: -ETIMEDOUT if the stub does not answer in time, -EPIPE if the machine
 * has ended or the stub has closed the connection, -EPROTO if it violates the protocol, -ENOMEM, or
 * another -errno of the socket. No further function but rsp_deinit() may be called after them.
 */
#ifndef KVMPROF_VMM_ATTACH_RSP_H
#define KVMPROF_VMM_ATTACH_RSP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/patience.h"
#include "base/sample.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RSP_MAX_PACKET (1u << 20)
#define RSP_WINDOW 32u /* reads under way at once, where the other side can take that */
#define RSP_TIMEOUT_MS 5000
#define RSP_CONNECT_MS 10000
#define RSP_HURRY_MS 600
#define RSP_GARBAGE (1u << 20) /* bytes outside of packets, for one packet */

struct rsp {
	int fd;			 /* -1: none */
	unsigned int timeout_ms; /* for each answer: RSP_TIMEOUT_MS */
	/* Limit for the time spent on waiting for all answers together; 0: none. */
	uint64_t all_limit_ns;
	struct patience all;
	/*
	 * The same limit in ms, from the moment on at which a thread sets it; any thread may. A
	 * stub that answers at once can answer thousands of requests within RSP_HURRY_MS. 0: none.
	 */
	atomic_uint hurry_ms;
	uint64_t hurried_ns; /* time waited for answers since then */
	size_t chunk;	     /* bytes of memory that one packet requests */
	unsigned int window; /* number of such packets that may be unanswered at once */
	struct buf in;	     /* bytes received and not parsed yet */
	size_t at;	     /* in `in` */
	struct buf data;     /* content of the last packet */
};

/* Initialises *r without a connection. */
void rsp_init(struct rsp *r);
/* Closes the connection, if there is one, and frees the buffers. */
void rsp_deinit(struct rsp *r);

/*
 * Connects to `where`: "HOST:PORT", ":PORT" or "[IPV6]:PORT". Waits at most RSP_CONNECT_MS for each
 * address of the host. The socket is non-blocking. Returns 0, -EINVAL for a wrong `where`,
 * -EHOSTUNREACH if the name has no address, or -errno of connect(2).
 */
int rsp_connect(struct rsp *r, const char *where, struct err *e);

/*
 * Sends a command and waits for its reply, which is then in r->data, followed by a NUL. Skips stop
 * replies that were not requested, such as the one after a connection. Returns 0 or an error of the
 * connection.
 */
int rsp_request(struct rsp *r, const char *command, struct err *e);
/* Waits for the reply to a command that rsp_send() has sent, as rsp_request() does. */
int rsp_reply(struct rsp *r, struct err *e);
/* Sends a command without waiting for its reply. Returns 0 or an error of the connection. */
int rsp_send(struct rsp *r, const char *command, struct err *e);
/*
 * Stops the machine by a break, and waits until the stub reports the stop. Returns 0 or an error of
 * the connection.
 */
int rsp_break(struct rsp *r, struct err *e);

/*
 * Reads, without waiting, packets that the stub sent without a request while the machine runs.
 * Returns 1 if another debugger has stopped the machine, 0 if not, -EPIPE if the machine has ended,
 * -EPROTO if the stub sends too much, or an error of the connection.
 */
int rsp_poll(struct rsp *r, struct err *e);

/*
 * Returns whether the reply in r->data is an error, "E01", or is empty because the stub does not
 * know the command.
 */
bool rsp_is_refusal(const struct rsp *r);

/*
 * Parses the packet at the beginning of bytes[0, len) and stores its unescaped data in *out, whose
 * former content is discarded. Returns the number of bytes used; 0 if the packet is incomplete;
 * -EPROTO if it is malformed; or -ENOMEM.
 */
long rsp_parse(struct buf *out, const uint8_t *bytes, size_t len);

#endif
