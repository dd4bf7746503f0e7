/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process: describes another process that runs virtual machines, from what /proc shows.
 *
 * The functions do not stop or change the process, and any thread may call them. Sources: proc(5),
 * virt/kvm/kvm_main.c (the name of a vCPU's descriptor, "anon_inode:kvm-vcpu:N", is the same since
 * Linux 4.16).
 */
#ifndef KVMPROF_VMM_ATTACH_PROCESS_H
#define KVMPROF_VMM_ATTACH_PROCESS_H

#include "base/err.h"
#include "base/proc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACH_MAX_VCPUS 64u
#define ATTACH_MAX_FDS 1024u /* descriptors of vCPUs, copies included */
#define ATTACH_MAX_THREADS 4096u
#define ATTACH_MAX_MAPPINGS 64u
/* Smaller mappings are not guest RAM. */
#define ATTACH_LEAST_MAPPING (UINT64_C(2) << 20)
#define ATTACH_MAX_DEVICES 64u

struct process_vcpu {
	unsigned int id;      /* KVM's number */
	int fd;		      /* in that process; the first of several copies */
	unsigned int machine; /* 1, 2, ...: slots_number_machines(); 0: not known */
};

/* A descriptor of a vCPU. */
struct process_fd {
	unsigned int id;
	int fd, first; /* first: the first descriptor of the same open file */
};

struct process_mapping {
	uint64_t start, len;
	bool shared;
};

struct process {
	pid_t pid;
	char name[16];
	struct process_vcpu vcpu[ATTACH_MAX_VCPUS]; /* by id */
	unsigned int nvcpus;
	/* the process's vCPUs, also if they are more than ATTACH_MAX_VCPUS */
	unsigned int all_vcpus;
	struct process_fd fd[ATTACH_MAX_FDS];
	unsigned int nfds;
	pid_t thread[ATTACH_MAX_THREADS]; /* without the kernel's own workers */
	unsigned int nthreads;
	/* Readable and writable, as guest RAM is; largest first. */
	struct process_mapping mapping[ATTACH_MAX_MAPPINGS];
	unsigned int nmappings;
	/*
	 * mappings of devices (registers that are passed through): a read could change their state
	 */
	struct process_mapping device[ATTACH_MAX_DEVICES];
	unsigned int ndevices; /* may be more than that */
};

/*
 * Returns whether the kernel uses this thread of the process for itself, or the thread has ended.
 * It must not be stopped. The thread that recovers KVM's large pages (Linux 6.13) has the registers
 * of the vCPU thread that created it, at a KVM_RUN.
 */
bool process_is_worker(pid_t pid, pid_t tid);

/* The activity of a thread, as far as it can be determined without disturbing the thread. */
enum process_activity {
	PROCESS_WAITS, /* in a system call that is not KVM_RUN, or it has ended */
	PROCESS_RUNS,  /* it runs, or its activity is not known */
	PROCESS_GUEST, /* it waits in KVM_RUN, or it runs and has run a guest before */
};

/*
 * Reads the process's name, vCPUs, threads and mappings into *p. Returns 0; -ESRCH if there is no
 * such process; -ENODEV if it has no vCPU; -E2BIG if it has more than ATTACH_MAX_VCPUS; or -EACCES
 * if this is not allowed, and *e names the missing permission (CAP_SYS_PTRACE, the same user,
 * Yama's ptrace_scope).
 */
int process_look(struct process *p, pid_t pid, struct err *e);
/*
 * Adds descriptor fd of vCPU `id` to *p. If it is a copy of one that is in *p already (dup(2)), no
 * vCPU is added.
 */
void process_add_vcpu(struct process *p, unsigned int id, int fd);
/* Sorts the vCPUs by number. Returns 0, -ENODEV or -E2BIG as process_look(). */
int process_check_vcpus(struct process *p, struct err *e);
/*
 * Returns whether two vCPUs have the same number, which means that the process runs several
 * machines.
 */
bool process_has_several(const struct process *p);
/*
 * Drops the vCPU of the helper machine that kvmprof has on hosts that interpret ring 0, if the
 * process is a kvmprof: of two vCPUs with the same number, the helper's was created first. Returns
 * whether one machine is left. For hosts on which the machines cannot be distinguished otherwise.
 */
bool process_drop_own_helper(struct process *p);
/* Drops the vCPUs of all other machines (slots_number_machines()), and sorts the rest by number. */
void process_keep_machine(struct process *p, unsigned int machine);
/* Returns the vCPU, in *p, of a descriptor or of a copy of it; NULL if there is none. */
struct process_vcpu *process_vcpu_of(struct process *p, int fd);
/* Returns whether the calling thread has CAP_SYS_PTRACE; true if that is not known. */
bool process_may_trace(void);
/* Returns whether *c is a KVM_RUN, the system call that runs a vCPU. */
bool process_is_kvm_run(const struct proc_syscall *c);
/* Returns the activity of thread tid of the process. */
enum process_activity process_activity(const struct process *p, pid_t tid);
/*
 * Returns the descriptor of the vCPU for which the thread sleeps in KVM_RUN, or -1 if it does not
 * sleep there.
 */
int process_vcpu_fd(const struct process *p, pid_t tid);
/*
 * Returns how long the thread has run guests, in ticks (sysconf(_SC_CLK_TCK)); 0 if it has ended.
 */
uint64_t process_thread_guest_time(const struct process *p, pid_t tid);
/*
 * Returns when the thread was started, in ticks since boot, or 0 if it has ended. Together with its
 * number this identifies the thread.
 */
uint64_t process_thread_start(const struct process *p, pid_t tid);

/*
 * Returns a copy of the process's descriptor fd, which the caller closes, or -errno. KVM's ioctls
 * on the copy fail, because they are bound to the memory of the process that created it; mmap()
 * works.
 */
int process_borrow(pid_t pid, int fd, struct err *e);

#endif
