/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp: the GDB remote serial protocol, as a client.
 *
 *   packet := '$' data '#' 2 hex digits (sum of the data's bytes)
 *   data   := bytes; 0x7d escapes the next one (xor 0x20), '*' repeats the one before
 *             (count + 29 in the next byte)
 *
 * Each packet is acknowledged by '+'. Source: the GDB manual, appendix E. What the other
 * side says is untrusted: every length is capped. One thread at a time.
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
	/* All answers together are waited for so long at most; 0: there is no such limit. */
	uint64_t all_limit_ns;
	struct patience all;
	/*
	 * Any thread may set it: from then on all answers together are waited for so long at most. A stub that
	 * answers at once has room for thousands in RSP_HURRY_MS. 0: there is no such limit.
	 */
	atomic_uint hurry_ms;
	uint64_t hurried_ns; /* so long they have been waited for */
	size_t chunk;	     /* bytes of memory that one packet asks for */
	unsigned int window; /* such packets that may wait for their answers at once */
	struct buf in;	     /* what has come and is not used yet */
	size_t at;	     /* in `in` */
	struct buf data;     /* content of the last packet */
};

void rsp_init(struct rsp *r);
void rsp_deinit(struct rsp *r);

/* "HOST:PORT", ":PORT" or "[IPV6]:PORT". Waits for RSP_CONNECT_MS at most. The socket does not block afterwards. */
int rsp_connect(struct rsp *r, const char *where, struct err *e);

/*
 * A command, and its reply in r->data (with a NUL behind it). -EPROTO, -ETIMEDOUT, -EPIPE.
 * Stop replies that nobody asked for, as after a connection, are passed over.
 */
int rsp_request(struct rsp *r, const char *command, struct err *e);
/* The reply alone, to what rsp_send() has sent. */
int rsp_reply(struct rsp *r, struct err *e);
/* Without waiting for anything: "vCont;c". */
int rsp_send(struct rsp *r, const char *command, struct err *e);
/* Stop the machine (a break), and wait for it to say so. */
int rsp_break(struct rsp *r, struct err *e);

/*
 * Reads, without waiting, what the stub sent unasked while the machine runs. Returns 1 if somebody
 * else stopped the machine, 0 if not, -EPIPE if the machine has ended, -EPROTO if the stub sends
 * too much, or an error of the connection.
 */
int rsp_poll(struct rsp *r, struct err *e);

/* Is it an error reply, "E01", or "" for what it does not know? */
bool rsp_is_refusal(const struct rsp *r);

/*
 * The next packet of len bytes at `bytes`: its data, unescaped, into `out` (emptied before).
 * Returns the bytes used: 0 when it is not whole yet, -EPROTO when it is none.
 */
long rsp_parse(struct buf *out, const uint8_t *bytes, size_t len);

#endif
