/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_join: joins the records of requests to disks (and of packets) with the stacks of the tasks
 * that submitted them.
 *
 * A sample with reason SAMPLE_IO and the records of its requests arrive separately and in any
 * order; both carry the token of one notification. The last IO_JOIN_STACKS samples of each vCPU are
 * kept. A record waits for its sample until a later sample of the same vCPU proves that it will not
 * come.
 *
 * All functions are called by the consumer thread only; io_join_destroy() may also be called after
 * that thread has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_IO_JOIN_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_IO_JOIN_H

#include "base/err.h"
#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/core/stack.h"
#include "vmm/dev/io.h"

/* Number of samples that are kept for each vCPU. */
#define IO_JOIN_STACKS 1024u
/* The most records that wait. */
#define IO_JOIN_WAITING 65536u

/* The submitter of a request. */
struct io_who {
	/* io_record.token of its requests; 0: unused */
	uint64_t token;
	struct sample_task task;
	/* event and period are set by the reader; its stack points at `stack` below */
	struct profile_sample sample;
	struct stack stack;
};

struct io_join;

/*
 * Creates an object for the given number of vCPUs. Returns 0 or -ENOMEM. The caller frees it with
 * io_join_destroy().
 */
int io_join_create(struct io_join **out, unsigned int vcpus, struct err *e);
void io_join_destroy(struct io_join *j); /* NULL is allowed */

/*
 * Stores a copy of the sample, of *out and of *stack, in place of the sample that came
 * IO_JOIN_STACKS notifications before. A sample whose token is of no vCPU is ignored.
 */
void io_join_sample(struct io_join *j, const struct sample *s, const struct profile_sample *out,
		    const struct stack *stack);
/*
 * Stores a copy of a record. Returns false if IO_JOIN_WAITING records wait already; the caller then
 * counts it as lost.
 */
bool io_join_record(struct io_join *j, const struct io_record *r);

/* Discards all samples. Records that refer to one of them have no known submitter from then on. */
void io_join_forget(struct io_join *j);

/* KNOWN: only records whose submitter is known, or is known to stay unknown. REST: all of them. */
enum io_join_which { IO_JOIN_KNOWN, IO_JOIN_REST };

/*
 * Removes one record and copies it to *r. *who is its submitter, or NULL if that is unknown; it is
 * valid until the next call for this object. Returns false if there is no such record, which ends a
 * round: the caller calls this until it returns false. Records that still have to wait are returned
 * in a later round.
 */
bool io_join_next(struct io_join *j, enum io_join_which which, struct io_record *r,
		  const struct io_who **who);

#endif
