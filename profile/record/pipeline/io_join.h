/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_join: requests of disks with the stacks of those that brought them.
 *
 * A sample (SAMPLE_IO) and the records of its requests come separately and in any order. Of
 * each vCPU the last stacks are kept; a record waits for its sample until a later one of the
 * same vCPU says that it never came. One thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_IO_JOIN_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_IO_JOIN_H

#include "base/err.h"
#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/core/stack.h"
#include "vmm/dev/io.h"

/* Notifications of each vCPU whose stacks are kept. */
#define IO_JOIN_STACKS 1024u
/* Records that wait, at most. */
#define IO_JOIN_WAITING 65536u

/* Who brought a request. */
struct io_who {
	uint64_t token;
	struct sample_task task;
	struct profile_sample sample; /* event and period are the reader's; its stack is here */
	struct stack stack;
};

struct io_join;

int io_join_create(struct io_join **out, unsigned int vcpus, struct err *e);
void io_join_destroy(struct io_join *j); /* NULL is fine */

/* Both are copied. false: there is no room for the record. */
void io_join_sample(struct io_join *j, const struct sample *s, const struct profile_sample *out,
		    const struct stack *stack);
bool io_join_record(struct io_join *j, const struct io_record *r);

/* Discards all stacks: a record that comes for one of them is nobody's. */
void io_join_forget(struct io_join *j);

enum io_join_which { IO_JOIN_KNOWN, IO_JOIN_REST };

/*
 * Each record once, as soon as it is known who brought it or that nobody will know (who is
 * NULL); with IO_JOIN_REST all that are left. *who stays until the next call for this j.
 */
bool io_join_next(struct io_join *j, enum io_join_which which, struct io_record *r,
		  const struct io_who **who);

#endif
