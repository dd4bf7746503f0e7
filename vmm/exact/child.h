/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * child: QEMU as a child process: start, standard error, stop tokens, end.
 *
 * QEMU ends when the thread that started it ends (PR_SET_PDEATHSIG). Everything that it is given
 * or returns passes through descriptors: guest memory, images and the shared page are memory
 * files, so that no file is left in any directory. All functions are called by one thread at a
 * time; after child_start() that is the consumer's.
 */
#ifndef KVMPROF_VMM_EXACT_CHILD_H
#define KVMPROF_VMM_EXACT_CHILD_H

#include "base/err.h"
#include "vmm/exact/engine.h"
#include "vmm/exact/exact.h"
#include "vmm/exact/stop.h"

#include <stdbool.h>
#include <sys/types.h>

#define CHILD_TURN 65536u     /* bytes read from one of its pipes per call */
#define CHILD_READY_MS 120000 /* limit for QEMU to load its files; the host may be busy */
#define CHILD_END_MS 1000     /* limit for waiting until a killed QEMU has ended */

/* Absent descriptors are -1. */
struct child {
	pid_t pid; /* 0: no process, or it has been waited for */
	int pidfd;
	int ram; /* memory file with all of the guest's RAM */
	int shared_fd;
	exact_page *shared;   /* mapped; NULL: not yet */
	unsigned int nplaces; /* number of places on the shared page */
	int request, answer;  /* sockets: a token for each stop, and one to resume */
	int console;	      /* what the guest writes to its serial port */
	int errors;	      /* QEMU's standard error */
	int monitor;	      /* QMP */
	int counts;	      /* memory file with the counts of plugin/calls.c */
	int trace;	      /* memory file, duplicate of cfg->trace->fd */
	int kernel, initrd;   /* memory files */
	int sync;	      /* our end; QEMU's child stage ends if it is closed */
	struct nvdimm disk[EXACT_MAX_DISKS];
	unsigned int ndisks;
	int status;	   /* status from waitpid(2); valid once pid is 0 again */
	bool has_begun;	   /* the guest is stopped before its first instruction, or has run */
	bool triple_fault; /* QEMU has reported one */
	char said[400];	   /* QEMU's last error message; "": none */
	char line[1024];   /* the incomplete last line of standard error */
	size_t line_len;
	char machine[4096]; /* the options that define the machine */
};

/* Initialises c: nothing is open. */
void child_init(struct child *c);
/*
 * Creates memory files and descriptors, starts QEMU, and waits (at most CHILD_READY_MS) until its
 * vCPU is stopped before the guest's first instruction; child_resume() resumes it. Returns 0, or
 * -errno with the reason in *e. The caller frees everything with child_deinit(), also after an
 * error.
 */
int child_start(struct child *c, const struct engine *n, const struct exact_config *cfg,
		struct err *e);
/*
 * Reads standard error without blocking, at most CHILD_TURN bytes, and stores the last message in
 * c->said. Returns false when it is closed.
 */
bool child_listen(struct child *c);
/*
 * Receives the token of a stop, without blocking. Returns 0, -EAGAIN if there is none, or -EPROTO
 * if QEMU has closed the connection or sent something else.
 */
int child_stopped(struct child *c);
/* Resumes the vCPU. Does not block. */
void child_resume(struct child *c);
/*
 * Kills QEMU if it runs, and waits for its end for at most CHILD_END_MS, since a process may hang
 * in the kernel. May be called repeatedly.
 */
void child_end(struct child *c);
/*
 * Calls child_end(), closes all descriptors and unmaps the shared page. May be called repeatedly.
 */
void child_deinit(struct child *c);

#endif
