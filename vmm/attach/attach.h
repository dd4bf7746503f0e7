/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach: presents a virtual machine that another process runs as a struct vm.
 *
 * After attach_open() all of vm.h applies, except for functions that need kvmprof to be the VMM:
 * there is no console, and vm_end() stops sampling while the machine continues. The tracer, a
 * thread of kvmprof, stops each vCPU thread for its samples. Capture reads registers from the
 * shared kvm_run pages as it does for kvmprof's own guests. Nothing is written into the guest. The
 * only change to the process is the request for registers in these pages, which is withdrawn at the
 * end.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_H
#define KVMPROF_VMM_ATTACH_ATTACH_H

#include "base/capture_plan.h"
#include "base/err.h"
#include "base/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gmem;
struct kvm_host;
struct quirks;
struct vm;

/* How samples are taken. */
enum attach_technique {
	ATTACH_AUTO = 0, /* BPF or PTRACE, whichever yields more samples: choice.h */
	ATTACH_BPF,	 /* by BPF if possible, else by ptrace; an error if BPF cannot be used */
	ATTACH_PTRACE,	 /* each sample stops its thread; BPF is not used for memory either */
};

/* The moments at which the tracing process gives up rights, see attach_config.bind. */
enum attach_bind {
	ATTACH_BIND_PROCESS, /* the whole process, before it has other threads */
	ATTACH_BIND_MAIN,    /* the main thread, before it serves the other process */
};

struct attach_config {
	pid_t pid;
	/* The process becomes a VMM, or starts one, and is followed to its first KVM_RUN. */
	bool follows;
	/* 1 and up, in the order in which the process created its machines; 0: its only one */
	unsigned int machine;
	const char *gdb; /* HOST:PORT of a gdbstub in place of the pid, see gdb.c; NULL: none */
	const struct kvm_host *host; /* the host's capabilities; not used with gdb */
	const struct quirks *quirks;
	struct vm_event event; /* WALL or HOST; gdb: WALL */
	struct capture_plan plan;
	size_t ring_size; /* bytes for each vCPU */
	bool idle_start;
	enum attach_technique technique;
	/* CLOCK_MONOTONIC: the machine must be found by then; 0: no limit */
	uint64_t until_ns;
	/*
	 * Returns whether the caller gives up waiting for the machine. NULL: it waits until
	 * until_ns.
	 */
	bool (*gives_up)(void);
	/*
	 * Gives up rights in the tracing process of split_open(). Returns 0 or a negative error.
	 * NULL: none.
	 */
	int (*bind)(void *ctx, enum attach_bind when, struct err *e);
	void *bind_ctx;
	/*
	 * Called by the tracer's thread while no vCPU is held for it; NULL: nothing is to be done.
	 */
	void (*between)(void *ctx);
	/*
	 * Returns whether the attach is to be given up. Called by the tracer's thread until the
	 * machine is found, which takes long if its vCPUs cannot be stopped. NULL: it is not.
	 */
	bool (*is_over)(void *ctx);
	/*
	 * Called by the tracer's thread when guest memory was found at another place than before.
	 * NULL: nothing is to be done.
	 */
	void (*memory_changed)(void *ctx, const struct gmem *mem);
	void *between_ctx; /* argument of the three functions above */
};

/*
 * Finds the machine's memory and vCPUs and proves that they are right; vm_start() begins to sample.
 * The caller frees *out with vm_destroy(). The process continues unharmed, also after an error.
 * Called by the main thread. Returns 0; -EAGAIN if no vCPU has been in 64-bit mode for seconds,
 * e.g. because firmware runs, so that the caller may try again; or another -errno.
 */
int attach_open(struct vm **out, const struct attach_config *cfg, struct err *e);
/*
 * Waits like vm_join(), for a vm of attach_open(), but at most `ms` milliseconds. Returns whether
 * the thread has ended. Called by the thread that calls vm_join().
 */
bool attach_join_for(struct vm *vm, unsigned int ms);

#endif
