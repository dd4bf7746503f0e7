/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rsp_query: questions in the GDB remote protocol that take more than one packet (GDB manual, E.4 "General query packets"). */
#ifndef KVMPROF_VMM_ATTACH_RSP_QUERY_H
#define KVMPROF_VMM_ATTACH_RSP_QUERY_H

#include "vmm/attach/rsp.h"

#define RSP_MAX_XML (1u << 18)
#define RSP_MAX_TEXT (1u << 20) /* bytes that a monitor command prints */
#define RSP_MAX_THREADS 64u
#define RSP_THREAD_ID 32u

/* The target description and what it includes, one behind the other. */
int rsp_description(struct rsp *r, struct buf *out, struct err *e);
/* Threads, which are vCPUs, in their order. At least one, else -ENODEV. */
int rsp_threads(struct rsp *r, char id[RSP_MAX_THREADS][RSP_THREAD_ID], unsigned int *n,
		struct err *e);
/* Runs a command of the VMM's own monitor, and stores what it prints. -ENOTSUP: the stub takes no such commands. */
int rsp_monitor(struct rsp *r, const char *command, struct buf *out, struct err *e);
/*
 * Memory; the caller has set chunk. -EFAULT: it is not there (no text is set then); else the
 * connection is not to be used any more.
 */
int rsp_read_memory(struct rsp *r, uint64_t addr, void *dst, size_t len, struct err *e);

#endif
