/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_stages: the way of a request to a disk, from its notification to the next sign of the
 * task that brought it, as far as it is seen from outside.
 *
 *	notified  the guest told the disk of it: the exit has come to the device
 *	taken     out of the guest's queue (io_record.submit_ns)
 *	begun     by the thread that carried it out
 *	done      carried out; it is given back at once (io_record.complete_ns)
 *	raised    an interrupt was made for it: the driver wanted one
 *	handled   the guest acknowledged the disk's interrupt, by virtio-mmio: the MSI of virtio-pci
 *	          needs no access that could be seen
 *	sign      the task was seen to run after that: by a sample, or as it brought another request
 *
 * Not seen: what the guest does before the notification, and the exit's way through KVM. A
 * sign comes later than the wake-up by up to a sample's period.
 *
 * What follows a request's end may come before it or after it in a log that is filled by
 * several threads, so a request is whole IO_STAGES_HOLD_NS after its end. The log: one thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_IO_STAGES_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_IO_STAGES_H

#include "base/json.h"
#include "base/err.h"
#include "base/sample.h"
#include "profile/record/pipeline/io_join.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IO_STAGES_HOLD_NS UINT64_C(1000000000)
#define IO_STAGES_WAITING 16384u /* requests that are held, at most: the oldest goes early */
#define IO_STAGES_EVENTS 65536u	 /* of interrupts, and of signs, that are remembered */
#define IO_REQUESTS_MAX 10000u	 /* in the totals; later ones are counted */

/* Times are CLOCK_MONOTONIC in ns; 0: it was not seen, or did not happen. */
struct io_stages {
	struct io_record r;
	struct sample_task task; /* state says whether it is known */
	uint32_t vcpu;		 /* that brought it, with the task */
	uint64_t raised_ns, handled_ns, sign_ns;
};

/* From the notification, or from taking it where there was none. */
static inline uint64_t io_stages_begin(const struct io_stages *s)
{
	return s->r.notified_ns ? s->r.notified_ns : s->r.submit_ns;
}

/* -- while they are found out ------------------------------------------------------------------ */

struct io_stages_log;

int io_stages_create(struct io_stages_log **out, struct err *e);
void io_stages_destroy(struct io_stages_log *l); /* NULL is fine */

/* A request that has ended; who NULL: it is not known who brought it. */
void io_stages_request(struct io_stages_log *l, const struct io_record *r,
		       const struct io_who *who);
/* A record of an interrupt: IO_RAISED or IO_HANDLED. */
void io_stages_interrupt(struct io_stages_log *l, const struct io_record *r);
/* The task of a sample that was taken of a running vCPU. */
void io_stages_sample(struct io_stages_log *l, const struct sample *s);
/*
 * The oldest request, if it is whole at now_ns (UINT64_MAX: as it is); in the order of
 * io_stages_request().
 */
bool io_stages_next(struct io_stages_log *l, uint64_t now_ns, struct io_stages *out);

/* -- those of a run ---------------------------------------------------------------------------- */

/* The first of them, for the totals. Any thread. */
struct io_requests {
	pthread_mutex_t lock;
	struct io_stages *list;
	size_t n, cap;
	uint64_t beyond; /* later ones, or no memory */
};

void io_stages_init(struct io_requests *q);
void io_stages_deinit(struct io_requests *q);
void io_stages_add(struct io_requests *q, const struct io_stages *s);

/* "R", "W", "F", "D", "Z" or "?" */
char io_stages_type_letter(uint8_t type);

/* Writes the times as members "notified_ns" to "sign_ns", null where there is none. */
void io_stages_json(const struct io_stages *s, struct json_writer *w);

#endif
