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
#include "profile/record/sandbox/rights.h"

#include <stdbool.h>
#include <stdint.h>

enum sandbox_mode {
	SANDBOX_ON,
	SANDBOX_LOG, /* calls outside of the lists are told on standard error, once each, and made */
	SANDBOX_OFF,
	SANDBOX_STRICT, /* as SANDBOX_ON; a host that lacks a part of it is refused */
};

/* NULL-terminated: "on", "log", "off", "strict". */
extern const char *const sandbox_mode_names[];

/* Whose machine it is decides what can be given up. */
enum sandbox_scope {
	SANDBOX_OWN, /* our own: all of it */
	/*
	 * The process of attach that traces: system calls are filtered. Landlock forbids to trace any process outside
	 * of its domain.
	 */
	SANDBOX_TRACER,
	SANDBOX_FILES,	 /* none: the process of a share, whose one thread is THREAD_9P_FILES */
	SANDBOX_KEEPER,	 /* none: the process that renames results, THREAD_KEEPER */
	SANDBOX_NETWORK, /* none: the process of the network, whose one thread is THREAD_NET_SLIRP */
};

/* What a path of the plan is opened for; with a directory, also all below it. */
enum sandbox_access {
	SANDBOX_READ,
	SANDBOX_WRITE, /* read, write, make, remove, rename */
	SANDBOX_OWN_DIR, /* read, write, make and remove files and directories: no links, no moves to another directory */
	SANDBOX_MOVE,  /* read, make, remove, rename; files are not written */
	SANDBOX_RMDIR, /* remove empty directories */
	SANDBOX_SHARE, /* as SANDBOX_WRITE, for a guest: links, fifos and sockets, too */
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
	bool reboots; /* the main thread sets vCPUs and the machine to what they were before the first instruction */
	bool counters; /* a vCPU's thread may open counters of itself again, once it runs */
	bool perfmon;  /* CAP_PERFMON is needed, by a vCPU's thread that opens counters */
	bool signals;  /* to a process that is no child of its domain, of which it has a pidfd */
	bool gdb;      /* a gdbstub is talked to, through a socket that is open */
	bool pagemap;  /* CAP_SYS_ADMIN is, until sandbox_begin_main(), for /proc/self/pagemap */
	const struct rights_user
		*user;	     /* whose the process becomes; NULL: it stays. Borrowed as paths are */
	const char *missing; /* a protection that the caller could not get; NULL: none */
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
	bool mounts; /* namespace_probe(), of the caller that needs it: it takes a process */
};
void sandbox_probe(struct sandbox_host *out);

/*
 * Before threads that a guest has to do with are started: all but the main thread's own filter.
 * Each thread_start() from here on begins with the thread's own. `said` gets a line for each part
 * that this host does not enforce, without newline at the end, or is left empty. Once in a process.
 * -ENOMEM, or -errno of a kernel that refuses what it said it has.
 */
int sandbox_begin(const struct sandbox_plan *p, struct buf *said, struct err *e);
/* Does the same in a process beside a run's own one, which reports what the host does not enforce. */
int sandbox_begin_beside(const struct sandbox_plan *p, struct err *e);
/* Once all threads are there: the main thread's filter, as vm_config.ready, or that of a device's process. */
int sandbox_begin_main(struct err *e);

#endif
