/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox: rights that a run gives up before its guest's first instruction.
 *
 * What a guest can attack is the code behind its devices, and the code that reads its memory. Each
 * thread may make the system calls of its list (calls.h) and no others: seccomp(2) ends the
 * process at the first other one, and a line names the call and the thread. Files are opened below
 * the directories of the plan alone: landlock(7). No thread gets rights back by execve(2)
 * (PR_SET_NO_NEW_PRIVS), and a process of root's drops its capabilities.
 *
 * The state is the process's, as the rights are. All calls come from the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_SANDBOX_SANDBOX_H
#define KVMPROF_PROFILE_RECORD_SANDBOX_SANDBOX_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum sandbox_mode {
	SANDBOX_ON,
	SANDBOX_LOG, /* calls outside of the lists are told on standard error, once each, and made */
	SANDBOX_OFF,
};

/* NULL-terminated: "on", "log", "off". */
extern const char *const sandbox_mode_names[];

/* Whose machine it is decides what can be given up. */
enum sandbox_scope {
	SANDBOX_OWN,	  /* our own: all of it */
	SANDBOX_ATTACHED, /* another process's: ptrace(2) needs rights throughout */
	SANDBOX_FILES,	  /* none: the process of a share, whose one thread is THREAD_9P_FILES */
};

/* What a path of the plan is opened for; with a directory, also all below it. */
enum sandbox_access {
	SANDBOX_READ,
	SANDBOX_WRITE, /* read, write, make, remove, rename */
	SANDBOX_SHARE, /* the same, for a guest: links, fifos and sockets, too */
};

#define SANDBOX_MAX_PATHS 64u

struct sandbox_path {
	const char *path; /* borrowed until sandbox_begin() returns */
	enum sandbox_access access;
};

struct sandbox_plan {
	enum sandbox_mode mode;
	enum sandbox_scope scope;
	bool network; /* TCP: else neither connections nor ports */
	/*
	 * The host interprets ring 0, and vCPUs run SIMD instructions that it refuses from memory of
	 * their own (vmm/pvm): they may map memory as code, then.
	 */
	bool makes_code;
	bool perfmon; /* CAP_PERFMON is needed, by a vCPU's thread that opens counters */
	bool signals; /* to a process that is no child of its domain, of which it has a pidfd */
	bool pagemap; /* CAP_SYS_ADMIN is, until sandbox_begin_main(), for /proc/self/pagemap */
	struct sandbox_path path[SANDBOX_MAX_PATHS];
	unsigned int npaths;
};

/* NULL is no path; one that is not there by sandbox_begin() is none. More than there is room for: lost. */
void sandbox_plan_add(struct sandbox_plan *p, const char *path, enum sandbox_access access);

/* What this host's kernel can enforce. */
struct sandbox_host {
	bool seccomp;
	int landlock;	     /* its ABI; 0: none */
	const char *without; /* why there is no Landlock; NULL: there is */
};
void sandbox_probe(struct sandbox_host *out);

/*
 * Before threads that a guest has to do with are started: all but the main thread's own filter.
 * Each thread_start() from here on begins with the thread's own. `said` gets a line for each part
 * that this host does not enforce, without newline at the end, or is left empty. Once in a process.
 * -ENOMEM, or -errno of a kernel that refuses what it said it has.
 */
int sandbox_begin(const struct sandbox_plan *p, struct buf *said, struct err *e);
/* Once all threads are there: the main thread's filter, as vm_config.ready, or that of a share's process. */
int sandbox_begin_main(struct err *e);

#endif
