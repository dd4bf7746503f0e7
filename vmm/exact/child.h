/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * child: QEMU as a process of ours: how it is started, what it says, how it ends.
 *
 * It ends when the thread that started it does (PR_SET_PDEATHSIG). Whatever it is given or gives
 * goes through descriptors: guest memory, images and the shared page are memory files, so that
 * nothing is left in any directory.
 */
#ifndef KVMPROF_VMM_EXACT_CHILD_H
#define KVMPROF_VMM_EXACT_CHILD_H

#include "base/err.h"
#include "vmm/exact/engine.h"
#include "vmm/exact/exact.h"
#include "vmm/exact/stop.h"

#include <stdbool.h>
#include <sys/types.h>

#define CHILD_TURN 65536u     /* bytes that are taken from one of its pipes in a row */
#define CHILD_READY_MS 120000 /* for QEMU to load what it is given; the host may be busy */
#define CHILD_END_MS 1000

/* All descriptors are -1 where there is none. */
struct child {
	pid_t pid; /* 0: none, or it has been waited for */
	int pidfd;
	int ram; /* memory file with all of the guest's RAM */
	int shared_fd;
	exact_page *shared; /* mapped; NULL: not yet */
	unsigned int nplaces;
	int request, answer; /* sockets: a token for each stop, and one that ends it */
	int console;	     /* what the guest writes to its serial line */
	int errors;	     /* what QEMU says on standard error */
	int monitor;	     /* QMP */
	int counts;	     /* memory file, of what calls.c counts */
	int trace;	     /* memory file, of cfg->trace */
	int kernel, initrd;  /* memory files */
	int sync;	     /* our end, which is open as long as we are there */
	struct nvdimm disk[EXACT_MAX_DISKS];
	unsigned int ndisks;
	int status;	   /* of waitpid(2), once pid is 0 again */
	bool has_begun;	   /* the guest stands before its first instruction, or has run */
	bool triple_fault; /* QEMU has said so */
	char said[400];	   /* the last that QEMU has complained of; "": nothing */
	char line[1024];   /* of errors, as far as it is there */
	size_t line_len;
	char machine[4096]; /* the options that make the machine what it is */
};

void child_init(struct child *c);
/*
 * Memory files and descriptors, then the process, which stands before the guest's first
 * instruction until c->answer is written to.
 */
int child_start(struct child *c, const struct engine *n, const struct exact_config *cfg,
		struct err *e);
/* Takes what is in errors, without waiting: CHILD_TURN bytes at most. False: it is closed. */
bool child_listen(struct child *c);
/* Takes the token of a stop. -EAGAIN: there is none; -EPROTO: QEMU has broken off. */
int child_stopped(struct child *c);
/* The vCPU may go on. */
void child_answer(struct child *c);
/*
 * Ends it if it runs, and waits for it: CHILD_END_MS at most, since a process may hang in the kernel.
 * Any number of times.
 */
void child_end(struct child *c);
/* All of that, and closes what is open. */
void child_deinit(struct child *c);

#endif
