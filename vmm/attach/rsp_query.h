/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp_query: queries of the GDB remote protocol that take more than one packet (GDB manual, E.4
 * "General Query Packets"). Each waits for its answer. They return 0, one of the errors below, or
 * an error of the connection (rsp.h).
 */
#ifndef KVMPROF_VMM_ATTACH_RSP_QUERY_H
#define KVMPROF_VMM_ATTACH_RSP_QUERY_H

#include "vmm/attach/rsp.h"

#define RSP_MAX_XML (1u << 18)
#define RSP_MAX_TEXT (1u << 20) /* bytes that a monitor command prints */
#define RSP_MAX_THREADS 64u
#define RSP_THREAD_ID 32u

/*
 * Appends the target description to *out, and then the files that it includes. Returns -ENOTSUP if
 * the stub has no description, -E2BIG if it has more than RSP_MAX_XML bytes.
 */
int rsp_description(struct rsp *r, struct buf *out, struct err *e);
/*
 * Stores the identifiers of the threads, which are vCPUs, in the stub's order. Returns -ENODEV if
 * there are none.
 */
int rsp_threads(struct rsp *r, char id[RSP_MAX_THREADS][RSP_THREAD_ID], unsigned int *n,
		struct err *e);
/*
 * Runs a command of the VMM's own monitor, and appends its output to *out. Returns -ENOTSUP if the
 * stub accepts no such commands.
 */
int rsp_monitor(struct rsp *r, const char *command, struct buf *out, struct err *e);
/*
 * Reads len bytes at `addr` in packets of r->chunk bytes, which the caller has set. Returns
 * -EFAULT, without setting *e, if they are not mapped. The connection can be used further after
 * that.
 */
int rsp_read_memory(struct rsp *r, uint64_t addr, void *dst, size_t len, struct err *e);

#endif
