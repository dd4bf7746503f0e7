/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_stages: the stages of a request to a disk, from its notification to the next sign of the task
 * that submitted it, as far as they are visible from outside of the guest.
 *
 *   notified  the exit of the guest's notification has reached the device
 *   taken     the device removed the request from the guest's queue (io_record.submit_ns)
 *   begun     a thread began to carry it out
 *   done      it was carried out and is returned at once (io_record.complete_ns)
 *   raised    an interrupt was raised for it, because the driver wanted one
 *   handled   the guest acknowledged the disk's interrupt. Only virtio-mmio has this stage: the MSI
 *             of virtio-pci needs no access that is visible
 *   sign      after that the task was seen to run: in a sample, or because it submitted another
 *             request
 *
 * Two times are not visible: what the guest does before the notification, and the way of the exit
 * through KVM. The sign is later than the wake-up by up to one sampling period.
 *
 * Several threads fill the log of interrupts, so that an event that follows the end of a request
 * may be logged before it. A request is therefore complete only IO_STAGES_HOLD_NS after its end.
 *
 * A struct io_stages_log belongs to the consumer thread, which makes all calls on it; a struct
 * io_requests may be used by any thread.
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

/* How long a request waits after its end for the events that follow it. */
#define IO_STAGES_HOLD_NS UINT64_C(1000000000)
/* the most requests that wait; beyond that the oldest one is returned early */
#define IO_STAGES_WAITING 16384u
#define IO_STAGES_EVENTS 65536u /* the interrupts that are remembered, and the signs */
#define IO_REQUESTS_MAX 10000u	/* the requests kept for the totals; later ones are only counted */

/* Times are CLOCK_MONOTONIC in ns. 0: the stage was not seen, or did not happen. */
struct io_stages {
	struct io_record r;
	struct sample_task task; /* the submitting task; its `state` says whether it is known */
	uint32_t vcpu;		 /* the vCPU that submitted it; valid if the task is known */
	uint64_t raised_ns, handled_ns, sign_ns;
};

/*
 * Returns the time of the notification, or that of taking the request if there was no notification.
 */
static inline uint64_t io_stages_begin(const struct io_stages *s)
{
	return s->r.notified_ns ? s->r.notified_ns : s->r.submit_ns;
}

/* -- the log, while stages are still to be found -------------------------------------- */

struct io_stages_log;

/* Creates an empty log. Returns 0 or -ENOMEM. The caller frees it with io_stages_destroy(). */
int io_stages_create(struct io_stages_log **out, struct err *e);
void io_stages_destroy(struct io_stages_log *l); /* NULL is allowed */

/*
 * Adds a copy of a request that has ended. `who` is copied; NULL if the submitter is unknown. If
 * IO_STAGES_WAITING requests wait the request is discarded, so the caller calls io_stages_next()
 * until it returns false before each call.
 */
void io_stages_request(struct io_stages_log *l, const struct io_record *r,
		       const struct io_who *who);
/* Adds the record of an interrupt, whose type is IO_RAISED or IO_HANDLED. */
void io_stages_interrupt(struct io_stages_log *l, const struct io_record *r);
/*
 * Adds the task of a sample that was taken of a running vCPU, as a sign of that task. Idle and
 * unknown tasks are ignored.
 */
void io_stages_sample(struct io_stages_log *l, const struct sample *s);
/*
 * Removes the oldest request, in the order of io_stages_request(), and copies it with its stages to
 * *out. Returns false if there is none, or if it is not complete at now_ns (CLOCK_MONOTONIC). With
 * UINT64_MAX it is returned with the stages that were seen up to now.
 */
bool io_stages_next(struct io_stages_log *l, uint64_t now_ns, struct io_stages *out);

/* -- the requests of a whole run --------------------------------------------------------------- */

/*
 * The first IO_REQUESTS_MAX requests of a run, for its totals. io_stages_add() may be called by any
 * thread; a reader holds `lock` unless no thread adds any more.
 */
struct io_requests {
	pthread_mutex_t lock;
	struct io_stages *list;
	size_t n, cap;
	uint64_t beyond; /* requests not in `list`: beyond the maximum, or without memory */
};

/*
 * Initializes an empty list. The owner frees it with io_stages_deinit() when no thread uses it any
 * more.
 */
void io_stages_init(struct io_requests *q);
void io_stages_deinit(struct io_requests *q);
/* Appends a copy of *s, or counts it in q->beyond. */
void io_stages_add(struct io_requests *q, const struct io_stages *s);

/*
 * Returns the letter of an enum io_type: 'R', 'W', 'F', 'D' or 'Z', and '?' for an unknown one. Any
 * thread.
 */
char io_stages_type_letter(uint8_t type);

/*
 * Writes the times of the stages as members "notified_ns" to "sign_ns" of the JSON object that is
 * open in *w; a stage that was not seen is null.
 */
void io_stages_json(const struct io_stages *s, struct json_writer *w);

#endif
