/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_look: reads from /proc what a vCPU's thread does, before the thread is asked to stop.
 *
 * A stop interrupts the system call in which a thread sleeps, and not every VMM tolerates that:
 * some calls then return EINTR, and others resume by restart_syscall. Therefore only threads that
 * run or wait for a processor are stopped. Samples of threads that sleep use the registers that KVM
 * stored last.
 *
 * Sources: proc(5), /proc/PID/task/TID/syscall and wchan; virt/kvm/kvm_main.c, kvm_vcpu_halt() and
 * kvm_vcpu_block(). All functions are called by the tracer's thread.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_LOOK_H
#define KVMPROF_VMM_ATTACH_ATTACH_LOOK_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

struct attach;
struct capture_view;

/* The state of a thread. */
enum attach_seen {
	ATTACH_SEEN_RUNNING, /* it runs or waits for a processor; or it cannot be seen */
	ATTACH_SEEN_HALTED,  /* asleep in KVM_RUN: its vCPU is halted, or was never started */
	ATTACH_SEEN_WAITING, /* asleep in KVM_RUN for something else, as a page of its memory */
	ATTACH_SEEN_AWAY,    /* asleep in another system call */
	ATTACH_SEEN_STOPPED, /* stopped by kvmprof */
};

/* The reason why a stretch of time has no sample, and so is not part of the shares. */
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

/* The place at which a vCPU is halted. Halts at different places differ in one of these. */
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

/* Opens the files of all tracees. A thread whose files cannot be opened counts as running. */
void attach_look_open(struct attach *a);
/* Opens the files of vCPU i, and closes those of a vCPU that had its place before. */
void attach_look_open_one(struct attach *a, unsigned int i);
/* Closes all files. */
void attach_look_close(struct attach *a);

/* Returns the state of vCPU i's thread now; ATTACH_SEEN_RUNNING if it cannot be read. */
enum attach_seen attach_look_at(const struct attach *a, unsigned int i);

/* Times of a thread from its schedstat (Documentation/scheduler/sched-stats.rst). */
struct attach_look_times {
	uint64_t ran, delay; /* ns: on a processor, and waiting for one */
	uint64_t runs;	     /* how often the thread got a processor */
};

/*
 * Reads the times of vCPU i's thread. Returns false, and does not write *out, if they cannot be
 * read.
 */
bool attach_look_times(const struct attach *a, unsigned int i, struct attach_look_times *out);

/*
 * Returns how long the calling thread has waited for a processor, in ns; 0 if that cannot be read.
 */
uint64_t attach_look_own_delay(void);

/* Records the state that was seen at a deadline. attach_look_sample() calls this itself. */
void attach_look_note(struct attach *a, unsigned int i, enum attach_seen seen);

/* Counts `periods` periods of vCPU i for which there is no sample. */
void attach_look_skip(struct attach *a, unsigned int i, enum attach_skip why, uint32_t periods);

/*
 * Takes the sample of vCPU i that is due without a stop, from the state in which its thread was
 * seen, and advances its deadline. Returns false if the thread must be stopped for the sample; the
 * stop then interrupts nothing but KVM_RUN.
 */
bool attach_look_sample(struct attach *a, unsigned int i, enum attach_seen seen);
/*
 * Returns whether the machine of a thread that was stopped outside of KVM_RUN is paused. Then no
 * sample is taken.
 */
bool attach_look_stopped_away(struct attach *a, unsigned int i);
/*
 * Records that vCPU i, which was seen in state `seen`, has been stopped in KVM_RUN with fresh
 * registers in its page. If it is halted, these registers are kept, and further halts at the same
 * place need no stop. Returns whether the vCPU was never started. Then no sample is taken.
 */
bool attach_look_stopped(struct attach *a, unsigned int i, enum attach_seen seen);

/*
 * Returns the registers of a halted vCPU that a stop found at this place, or NULL if there are
 * none. They are valid until the next stop of this vCPU. Begins the reads of a sample: if the
 * result is not NULL, attach_end_reads() must follow.
 */
const struct attach_regs *attach_look_halted(struct attach *a, unsigned int i);
/* Returns a view of *r and of guest memory for capture. *r must outlive the view. */
struct capture_view attach_look_view(const struct attach *a, const struct attach_regs *r);
/*
 * Copies the registers that vCPU i had at its last exit. Returns false if there are none, or if its
 * thread no longer sleeps outside of KVM_RUN.
 */
bool attach_look_regs(const struct attach *a, unsigned int i, struct attach_regs *out);
/*
 * Returns whether the machine is paused: whether vCPU i's thread has been away with the same
 * registers *regs for longer than a VMM works for its guest (20 ms). now: CLOCK_MONOTONIC.
 */
bool attach_look_is_paused(struct attach *a, unsigned int i, const struct attach_regs *regs,
			   uint64_t now);

#endif
