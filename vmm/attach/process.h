/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process: another process that runs virtual machines, as /proc tells of it.
 *
 * Nothing here stops or changes it. Sources: proc(5), virt/kvm/kvm_main.c (the name of a
 * vCPU's descriptor, "anon_inode:kvm-vcpu:N", is the same since Linux 4.16).
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
	int fd;		      /* in that process; the first of several that are one open file */
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
	/* mappings of devices (registers that are passed through): a read could change their state */
	struct process_mapping device[ATTACH_MAX_DEVICES];
	unsigned int ndevices; /* may be more than that */
};

/*
 * Returns whether the kernel keeps this thread in the process for itself, or the thread has ended. It must
 * not be stopped. The one that recovers KVM's large pages (Linux 6.13) has the registers of the vCPU's
 * thread that made it, at a KVM_RUN.
 */
bool process_is_worker(pid_t pid, pid_t tid);

/* A thread's activity, as far as it can be seen without disturbing the thread. */
enum process_activity {
	PROCESS_WAITS, /* in a system call that is not KVM_RUN, or it has ended */
	PROCESS_RUNS,  /* it runs, or it can't be seen what it does */
	PROCESS_GUEST, /* it waits in KVM_RUN, or it runs and has run a guest before */
};

/*
 * Fills in *p. -ESRCH: no such process; -ENODEV: it has no vCPU; -E2BIG: it has more than ATTACH_MAX_VCPUS; -EACCES: not
 * allowed, with the permission named that is missing (CAP_SYS_PTRACE, the same user, Yama's ptrace_scope).
 */
int process_look(struct process *p, pid_t pid, struct err *e);
/* Adds a descriptor of vCPU id. A copy of one that is there (dup(2)) adds no vCPU. */
void process_add_vcpu(struct process *p, unsigned int id, int fd);
/* Sorts the vCPUs. Returns 0, -ENODEV or -E2BIG as process_look(). */
int process_check_vcpus(struct process *p, struct err *e);
/* Returns whether two vCPUs have the same number: then the process runs several machines. */
bool process_has_several(const struct process *p);
/*
 * Drops the vCPU of the helper machine that kvmprof has on hosts that interpret ring 0, if the process is kvmprof itself: of two vCPUs of
 * one number the helper's was created first. Returns whether one machine is left. For where the machines cannot be told apart otherwise.
 */
bool process_drop_own_helper(struct process *p);
/* Keeps the vCPUs of one machine (slots_number_machines()), in the order of their numbers. */
void process_keep_machine(struct process *p, unsigned int machine);
/* Returns the vCPU of a descriptor or of a copy of it, or NULL. */
struct process_vcpu *process_vcpu_of(struct process *p, int fd);
/* Returns whether this thread has CAP_SYS_PTRACE; true where that is not known. */
bool process_may_trace(void);
/* Returns whether this is the system call by which a vCPU runs. */
bool process_is_kvm_run(const struct proc_syscall *c);
enum process_activity process_activity(const struct process *p, pid_t tid);
/* Returns the descriptor of the vCPU for which the thread sleeps in KVM_RUN, or -1 if it does not sleep there. */
int process_vcpu_fd(const struct process *p, pid_t tid);
/* Returns how long the thread has run guests, in ticks. */
uint64_t process_thread_guest_time(const struct process *p, pid_t tid);
/* When the thread was started, in ticks since boot: with its number this names it. 0: it has gone. */
uint64_t process_thread_start(const struct process *p, pid_t tid);

/*
 * A copy of its descriptor fd, which the caller closes; or a negative error. ioctls on one of KVM
 * fail, as the memory is another process's; mmap() works.
 */
int process_borrow(pid_t pid, int fd, struct err *e);

#endif
