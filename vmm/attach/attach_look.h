/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_look: what a vCPU's thread does, as /proc shows it, before it is asked to stop.
 *
 * A stop breaks off the system call that a thread sleeps in, and that can be more than a VMM bears: some calls return
 * EINTR then, and others go on by restart_syscall. So only threads that run, or wait for a processor, are
 * stopped. Samples of those that sleep are taken from the registers that KVM stored last.
 *
 * Sources: proc(5), /proc/PID/task/TID/syscall and wchan; virt/kvm/kvm_main.c, kvm_vcpu_halt() and kvm_vcpu_block().
 * All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_LOOK_H
#define KVMPROF_VMM_ATTACH_ATTACH_LOOK_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

struct attach;
struct capture_view;

/* A thread does one of these. */
enum attach_seen {
	ATTACH_SEEN_RUNNING, /* it runs or waits for a processor; or it cannot be seen */
	ATTACH_SEEN_HALTED,  /* asleep in KVM_RUN: its vCPU is halted, or was never started */
	ATTACH_SEEN_WAITING, /* asleep in KVM_RUN for something else, as a page of its memory */
	ATTACH_SEEN_AWAY,    /* asleep in another system call */
	ATTACH_SEEN_STOPPED, /* stopped for us */
};

/* The reason why no sample stands for some time, which is not part of the shares then. */
enum attach_skip {
	ATTACH_SKIP_PAUSED,    /* the machine is paused */
	ATTACH_SKIP_AWAY,      /* the thread sleeps in its VMM, for less long */
	ATTACH_SKIP_UNSTARTED, /* the vCPU was never started */
};

/* The registers of a vCPU, copied out of its page. */
struct attach_regs {
	struct kvm_regs regs;
	struct kvm_sregs sregs;
	uint16_t flags; /* struct kvm_run */
};

/* Where a vCPU is halted: what would differ at another place. */
struct attach_halt {
	uint64_t caller; /* the word at RSP */
	uint64_t task;	 /* Linux's current; 0: not known */
};

struct attach_look {
	int syscall, wchan, schedstat; /* files of /proc/PID/task/TID; -1: it cannot be read */
	/* Halted: registers of a stop in this sleep, or in an earlier one at the same place. */
	bool kept, adopts;
	bool unstarted; /* no guest has ever run on it */
	uint64_t runs;	/* how often the thread had got a processor when they were last used */
	struct attach_halt halt;
	struct attach_regs halted;
	/* Away: since when, and with which registers. */
	uint64_t away_ns;
	struct attach_regs away;
};

/* Opens the files of all tracees. A file that cannot be opened makes its thread count as running. */
void attach_look_open(struct attach *a);
/* The same for one vCPU, which may take the place of one that has ended. */
void attach_look_open_one(struct attach *a, unsigned int i);
void attach_look_close(struct attach *a);

enum attach_seen attach_look_at(const struct attach *a, unsigned int i);

/* A thread as its schedstat shows it (Documentation/scheduler/sched-stats.rst). */
struct attach_look_times {
	uint64_t ran, delay; /* ns: on a processor, and waiting for one */
	uint64_t runs;	     /* how often the thread got a processor */
};

/* Reads the times of vCPU i's thread. Returns false, and does not write *out, if they cannot be read. */
bool attach_look_times(const struct attach *a, unsigned int i, struct attach_look_times *out);

/* Returns how long the calling thread has waited for a processor, in ns; 0 if that cannot be read. */
uint64_t attach_look_own_delay(void);

/* Notes what was seen at a deadline. attach_look_sample() does so itself. */
void attach_look_note(struct attach *a, unsigned int i, enum attach_seen seen);

/* Counts `periods` periods of vCPU i for which there is no sample. */
void attach_look_skip(struct attach *a, unsigned int i, enum attach_skip why, uint32_t periods);

/*
 * Takes the sample that is due of vCPU i without a stop, from what was seen of its thread, and moves its deadline on. Returns false if
 * the thread has to be stopped for it: then that breaks off nothing but KVM_RUN.
 */
bool attach_look_sample(struct attach *a, unsigned int i, enum attach_seen seen);
/* Returns whether the machine of a thread that was stopped outside of KVM_RUN is paused: then there is nothing to be sampled. */
bool attach_look_stopped_away(struct attach *a, unsigned int i);
/*
 * Notes that vCPU i has been stopped in KVM_RUN for a sample, with fresh registers in its page, after it was seen so. If it is halted, these serve
 * for further halts at the same place, which then need no stop. Returns whether it is a
 * vCPU that was never started: then there is nothing to be sampled.
 */
bool attach_look_stopped(struct attach *a, unsigned int i, enum attach_seen seen);

/*
 * Returns the registers of a halted vCPU, as a stop has found them at this place; NULL if none has. Begins the reads of a sample (attach_begin_reads()).
 */
const struct attach_regs *attach_look_halted(struct attach *a, unsigned int i);
struct capture_view attach_look_view(const struct attach *a, const struct attach_regs *r);
/* Copies the registers that vCPU i had at its last exit. Returns false if there are none, or if its thread does not sleep any more. */
bool attach_look_regs(const struct attach *a, unsigned int i, struct attach_regs *out);
/* Returns whether the machine is paused: the thread is away for longer than a VMM works for its guest. */
bool attach_look_is_paused(struct attach *a, unsigned int i, const struct attach_regs *regs,
			   uint64_t now);

#endif
