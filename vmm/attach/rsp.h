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
#include "base/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RSP_MAX_PACKET (1u << 20)
#define RSP_MAX_XML (1u << 18)
#define RSP_MAX_INCLUDES 8u
#define RSP_MAX_REGS 512u
#define RSP_MAX_TEXT (1u << 20) /* of what a monitor command prints */
#define RSP_MAX_THREADS 64u
#define RSP_THREAD_ID 32u
#define RSP_WINDOW 32u /* reads under way at once, where the other side can take that */
#define RSP_TIMEOUT_MS 5000

struct rsp {
	int fd;			 /* -1: none */
	unsigned int timeout_ms; /* for each answer: RSP_TIMEOUT_MS */
	size_t chunk;		 /* bytes of memory that one packet asks for */
	unsigned int window;	 /* such packets that may wait for their answers at once */
	struct buf in;		 /* what has come and is not used yet */
	size_t at;		 /* in `in` */
	struct buf data;	 /* of the last packet */
};

void rsp_init(struct rsp *r);
void rsp_deinit(struct rsp *r);

/* "HOST:PORT", ":PORT" or "[IPV6]:PORT". */
int rsp_connect(struct rsp *r, const char *where, struct err *e);

/*
 * A command, and its reply in r->data (with a NUL behind it). -EPROTO, -ETIMEDOUT, -EPIPE.
 * Stop replies that nobody asked for, as after a connection, are passed over.
 */
int rsp_ask(struct rsp *r, const char *command, struct err *e);
/* The reply alone, to what rsp_tell() has sent. */
int rsp_reply(struct rsp *r, struct err *e);
/* Without waiting for anything: "vCont;c". */
int rsp_tell(struct rsp *r, const char *command, struct err *e);
/* Stop the machine (a break), and wait for it to say so. */
int rsp_break(struct rsp *r, struct err *e);

/*
 * What has come by itself while the machine runs, without waiting: 1: it was stopped by
 * somebody else; 0: nothing. -EPIPE: it has ended.
 */
int rsp_look(struct rsp *r, struct err *e);

/* Is it an error reply, "E01", or "" for what it does not know? */
bool rsp_is_refusal(const struct rsp *r);

/*
 * The next packet of len bytes at `bytes`: its data, unescaped, into `out` (emptied before).
 * Returns the bytes used: 0 when it is not whole yet, -EPROTO when it is none.
 */
long rsp_parse(struct buf *out, const uint8_t *bytes, size_t len);

/* -- questions (rsp_query.c) ---------------------------------------------------------------- */

/* The target description and what it includes, one behind the other. */
int rsp_description(struct rsp *r, struct buf *out, struct err *e);
/* Threads, which are vCPUs, in their order. At least one, else -ENODEV. */
int rsp_threads(struct rsp *r, char id[RSP_MAX_THREADS][RSP_THREAD_ID], unsigned int *n,
		struct err *e);
/* What a command of the VMM's own monitor prints. -ENOTSUP: it takes none. */
int rsp_monitor(struct rsp *r, const char *command, struct buf *out, struct err *e);
/*
 * Memory; the caller has set chunk. -EFAULT: it is not there (no text is set then); else the
 * connection is not to be used any more.
 */
int rsp_read_memory(struct rsp *r, uint64_t addr, void *dst, size_t len, struct err *e);

/* -- what QEMU's monitor prints (rsp_text.c) ------------------------------------------------- */

/* "info registers": where the descriptor tables are. False: it does not say. */
bool rsp_text_tables(const char *text, size_t len, uint64_t *idt, uint64_t *gdt);
struct rsp_range {
	uint64_t start, len; /* whole pages */
};
/*
 * "info mtree -f": RAM as the processors see it, in order, neighbours joined; n of them, 0:
 * it does not say. What does not fit into max is left out.
 */
unsigned int rsp_text_ram(const char *text, size_t len, struct rsp_range *out, unsigned int max);

/* -- the registers ------------------------------------------------------------------- */

struct rsp_place {
	uint32_t off, len; /* bytes; len 0: not there */
};

/* Where in a `g` packet the registers lie: from the target description. */
struct rsp_layout {
	struct rsp_place gpr[GPR_COUNT], rip, rflags, cs, ss, fs_base, gs_base, kernel_gs, cr0, cr2,
		cr3, cr4, efer;
	uint32_t size; /* of all registers */
};

/*
 * Read a description (the files one behind the other, in the order of their inclusion).
 * -ENOTSUP: it is not of an x86-64, or lacks what the page tables need.
 */
int rsp_layout_parse(struct rsp_layout *out, const char *xml, size_t len, struct err *e);
/* Names of the files that a description includes, in order; n of them. */
unsigned int rsp_includes(const char *xml, size_t len, char name[RSP_MAX_INCLUDES][64]);
/* The data of a `g` reply. *kernel_gs is 0 when it is not known. */
int rsp_regs_parse(const struct rsp_layout *l, const char *hex, size_t len, struct sample_regs *out,
		   uint64_t *kernel_gs);

#endif
