/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler: the loop of a thread that samples a machine of another process at deadlines.
 *
 * This file contains everything that does not depend on how a vCPU is stopped: the period that
 * control requests, the time at which the next sample is due, its weight, and the wait until then.
 * A driver does the rest: attach_sample.c stops threads by ptrace or samples them by BPF, and gdb.c
 * stops the machine through a gdbstub.
 *
 * sampler_start() and sampler_wake() may be called by any thread. All other functions are called by
 * the thread that samples, or before that thread exists.
 */
#ifndef KVMPROF_VMM_ATTACH_SAMPLER_H
#define KVMPROF_VMM_ATTACH_SAMPLER_H

#include "vmm/capture/capture.h"
#include "vmm/capture/trigger.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The interval at which a sampler without a deadline checks control. */
#define SAMPLER_IDLE_NS 100000000u
#define SAMPLER_NEVER UINT64_MAX

struct vm;

/* Each turn is begin, is_ready, due and take, and end. ctx is that of the sampler. */
struct sampler_driver {
	/* Begins a turn. Returns false if sampler_run() is to return. */
	bool (*begin)(void *ctx);
	/*
	 * Returns whether samples can be taken now. If not, *when may be set to the time of the
	 * next turn. NULL: they always can.
	 */
	bool (*is_ready)(void *ctx, uint64_t now_ns, uint64_t *when);
	/*
	 * Returns what the clock of the periods shows at this time of CLOCK_MONOTONIC. NULL: it is
	 * that clock.
	 */
	uint64_t (*time)(const void *ctx, uint64_t now_ns);
	/*
	 * Handles that the first period of trigger i begins, while the event is armed. NULL: not
	 * needed.
	 */
	void (*restarted)(void *ctx, unsigned int i, uint64_t time);
	/* Returns when the next sample is due, on the clock of the periods, or SAMPLER_NEVER. */
	uint64_t (*due)(const void *ctx);
	/* Takes the sample that is due, or asks a thread to stop for it. */
	void (*take)(void *ctx);
	/* Ends a turn, and waits: see sampler_wait(). */
	void (*end)(void *ctx, uint64_t when);
};

struct sampler {
	const struct sampler_driver *driver;
	void *ctx;
	struct vm *vm;
	struct trigger *trigger; /* one for each vCPU, or one for all of them */
	unsigned int ntriggers;
	unsigned int control_seen; /* vm->control.changes when it was last followed */
	/*
	 * Whether the event was armed when control was last read. Setting it to false makes all
	 * periods begin anew.
	 */
	bool armed;
	int wake_fd;	/* -1: none */
	atomic_bool go; /* set by sampler_start(): samples are to be taken */
};

/*
 * Opens the descriptor by which other threads wake the sampler. The caller sets the other members.
 * sampler_close() closes it. Returns 0 or -errno.
 */
int sampler_open(struct sampler *s);
/* Closes the descriptor. Does nothing if it is not open (wake_fd -1). */
void sampler_close(struct sampler *s);

/* Makes the sampler begin to take samples. Called by any thread. */
void sampler_start(struct sampler *s);
/* Ends the sampler's current or next wait. Called by any thread. */
void sampler_wake(const struct sampler *s);

/* Begins the periods of trigger i, which has been added. Called by the driver. */
void sampler_add(struct sampler *s, unsigned int i);

/* Takes turns until the driver's begin() returns false. */
void sampler_run(struct sampler *s);

/*
 * Waits until time `when`, until sampler_wake() is called, or until fd, unless it is -1, is
 * readable. Returns whether one of the last two has happened.
 */
bool sampler_wait(const struct sampler *s, int fd, uint64_t when);

/* Returns how late a sample is, in ns, that is taken at `time` of the periods' clock. */
uint64_t sampler_late(const struct trigger *t, uint64_t time);
/*
 * Returns the cause of a sample that is taken at now_ns (CLOCK_MONOTONIC), which is `time` on the
 * periods' clock, and advances t to its next deadline.
 */
struct capture_cause sampler_cause(struct trigger *t, uint64_t now_ns, uint64_t time);

#endif
