/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * standing: finds out whether the host keeps another process's machine from running.
 *
 * Reads /proc of the machine's threads several times and stops none, so it also works for a process
 * that is stopped, and for a vCPU that waits for a page that never arrives. Sources: proc(5),
 * Documentation/scheduler/sched-stats.rst, Documentation/admin-guide/cgroup-v2.rst,
 * fs/userfaultfd.c.
 *
 * The functions keep no state. Any thread may call them.
 */
#ifndef KVMPROF_VMM_ATTACH_STANDING_H
#define KVMPROF_VMM_ATTACH_STANDING_H

#include "vmm/attach/process.h"

enum standing_cause {
	STANDING_NOT_SCHEDULED, /* a vCPU's thread wants a processor and gets none */
	STANDING_PAUSED,	/* the whole process is stopped or frozen */
	STANDING_MEMORY,	/* a thread waits for a page of the process's memory */
	STANDING_THREAD,	/* a vCPU's thread waits in the VMM and not in KVM_RUN */
	STANDING_CAUSES
};

enum standing_result { STANDING_UNKNOWN, STANDING_OK, STANDING_BAD };

struct standing_check {
	enum standing_result result;
	pid_t tid;	 /* the thread that proves it; 0: there is none */
	uint64_t run_ns; /* time for which that thread had a processor during the observation */
	char text[256];	 /* one sentence without a full stop: the proof, or why it is not known */
};

struct standing {
	struct standing_check check[STANDING_CAUSES];
	uint64_t interval_ns; /* the duration of the observation */
	unsigned int threads, vcpu_threads;
};

/*
 * Observes the process's threads for `seconds`. Returns 0, or -errno of process_look() with *e
 * recorded. If a VMM emulates the local APIC, the threads of its vCPUs wait while the guest is
 * halted; STANDING_THREAD recognises that by the vCPU's last exit, which it reads from KVM's shared
 * page.
 */
int standing_look(pid_t pid, double seconds, struct standing *out, struct err *e);

/* Does the same for threads that are in *p already. */
void standing_look_at(const struct process *p, double seconds, struct standing *out);

#endif
