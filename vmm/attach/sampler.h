/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler: the loop of a thread that samples a machine of another process at deadlines.
 *
 * Here is what does not depend on how a vCPU is stopped: which period control asks for, when the next sample is due, for how much time
 * it stands, and the wait until then. A driver does the rest: attach_sample.c stops threads by ptrace or has BPF look at them, and gdb.c
 * stops the machine through a gdbstub.
 *
 * All functions but sampler_start() and sampler_wake() are called by the thread that samples, or before it is there.
 */
#ifndef KVMPROF_VMM_ATTACH_SAMPLER_H
#define KVMPROF_VMM_ATTACH_SAMPLER_H

#include "vmm/capture/capture.h"
#include "vmm/capture/trigger.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Samplers without deadlines look at control so often. */
#define SAMPLER_IDLE_NS 100000000u
#define SAMPLER_NEVER UINT64_MAX

struct vm;

/* Each turn is begin, is_ready, due and take, and end. ctx is that of the sampler. */
struct sampler_driver {
	/* Begins a turn. Returns false if the last one is over. */
	bool (*begin)(void *ctx);
	/* Returns whether samples can be taken now. If not, *when may be set to the time of the next turn. NULL: they always can. */
	bool (*is_ready)(void *ctx, uint64_t now_ns, uint64_t *when);
	/* Returns what the clock of the periods shows at this time of CLOCK_MONOTONIC. NULL: it is that clock. */
	uint64_t (*time)(const void *ctx, uint64_t now_ns);
	/* Is told that the first period of trigger i begins, with the event armed. NULL: that is of no use. */
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
	/* The event was, when control was last looked at. To set it to false has the periods begin anew. */
	bool armed;
	int wake_fd;	/* -1: none */
	atomic_bool go; /* samples are wanted from now on */
};

/* Makes what other threads wake it by. The caller sets the other members. Returns 0 or -errno. */
int sampler_open(struct sampler *s);
/* One that was not opened, with wake_fd -1, is fine. */
void sampler_close(struct sampler *s);

/* Has it begin to take samples. Any thread may call it. */
void sampler_start(struct sampler *s);
/* Ends its wait. Any thread may call it. */
void sampler_wake(const struct sampler *s);

/* Begins the periods of another trigger, which has the index i. Called by the driver. */
void sampler_add(struct sampler *s, unsigned int i);

/* Takes turns until the driver says that the last one is over. */
void sampler_run(struct sampler *s);

/* Waits until then, or until it is woken or fd, which may be -1, can be read. Returns whether one of these has happened. */
bool sampler_wait(const struct sampler *s, int fd, uint64_t when);

/* Returns how late a sample is that is taken at this time of the periods' clock. */
uint64_t sampler_late(const struct trigger *t, uint64_t time);
/* Returns the cause of a sample that is taken now, at this time of the periods' clock, and moves t on to its next deadline. */
struct capture_cause sampler_cause(struct trigger *t, uint64_t now_ns, uint64_t time);

#endif
