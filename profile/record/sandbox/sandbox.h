/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox: the rights that a run gives up before its guest's first instruction.
 *
 * A guest can attack the code behind its devices, and the code that reads its memory. Each thread
 * may make the system calls of its list (calls.h) only: seccomp(2) ends the process at the first
 * other one, and a line names the call and the thread. Files can be opened only below the
 * directories of the plan: landlock(7). No thread regains rights by execve(2)
 * (PR_SET_NO_NEW_PRIVS), and a process of root's drops its capabilities.
 *
 * The state belongs to the process, as the rights do. All functions are called by the main thread
 * only.
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
	/* calls that are not in the lists are printed on standard error, once each, and made */
	SANDBOX_LOG,
	SANDBOX_OFF,
	SANDBOX_STRICT, /* as SANDBOX_ON, but a host that lacks a part of it is refused */
};

/* "on", "log", "off", "strict"; NULL-terminated. */
extern const char *const sandbox_mode_names[];

/* The kind of process, which decides what can be given up. */
enum sandbox_scope {
	SANDBOX_OWN, /* a run of its own machine: everything is given up */
	/*
	 * The tracing process of attach: system calls are filtered. There is no Landlock, which
	 * forbids tracing processes outside of its domain.
	 */
	SANDBOX_TRACER,
	SANDBOX_FILES,	 /* the process of a share, whose only thread is THREAD_9P_FILES */
	SANDBOX_KEEPER,	 /* the process that renames results, THREAD_KEEPER */
	SANDBOX_NETWORK, /* the process of the network, whose only thread is THREAD_NET_SLIRP */
};

/* The use of a path in the plan; for a directory, also of everything below it. */
enum sandbox_access {
	SANDBOX_READ,
	SANDBOX_WRITE, /* read, write, create, remove, rename */
	/*
	 * read, write, create and remove files and directories: no links, no moves to another
	 * directory
	 */
	SANDBOX_OWN_DIR,
	SANDBOX_MOVE,  /* read, create, remove, rename; files are not written */
	SANDBOX_RMDIR, /* remove empty directories */
	SANDBOX_SHARE, /* as SANDBOX_WRITE, for a guest: also links, fifos and sockets */
};

/* The most paths of a plan. */
#define SANDBOX_MAX_PATHS 64u

struct sandbox_path {
	const char *path; /* borrowed until sandbox_begin() returns */
	enum sandbox_access access;
};

struct sandbox_plan {
	enum sandbox_mode mode;
	enum sandbox_scope scope;
	bool network; /* TCP is needed; otherwise neither connections nor ports */
	/*
	 * the main thread resets vCPUs and the machine to their state before the first instruction
	 */
	bool reboots;
	bool counters; /* a vCPU's thread opens counters of itself again while it runs */
	bool perfmon;  /* CAP_PERFMON is needed by a vCPU's thread that opens counters */
	/* a process that is no child in its domain, of which it has a pidfd, is sent signals */
	bool signals;
	bool served; /* a disk is read through a socket that is open */
	bool gdb;    /* a gdbstub is used through a socket that is open */
	/* CAP_SYS_ADMIN is needed until sandbox_begin_main(), for /proc/self/pagemap */
	bool pagemap;
	/* the user that the process becomes; NULL: unchanged. Borrowed as paths are */
	const struct rights_user *user;
	const char *missing; /* a protection that the caller could not establish; NULL: none */
	struct sandbox_path path[SANDBOX_MAX_PATHS];
	unsigned int npaths;
};

/*
 * Adds a path. NULL, "", and a path that does not exist at sandbox_begin(), are ignored. Beyond
 * SANDBOX_MAX_PATHS it is not added, and cannot be accessed.
 */
void sandbox_plan_add(struct sandbox_plan *p, const char *path, enum sandbox_access access);

/* The protections that this host's kernel can enforce. */
struct sandbox_host {
	bool seccomp;
	int landlock;	     /* its ABI; 0: none */
	const char *without; /* why there is no Landlock; NULL: there is */
	/* namespace_probe(), set by the caller that needs it, because it starts a process */
	bool mounts;
};
/* Fills in all members except mounts. */
void sandbox_probe(struct sandbox_host *out);

/*
 * Restricts the process except for the main thread's own filter. To be called once in a process,
 * before threads that serve a guest are started: each later thread_start() begins with the
 * restriction of the new thread. `said` gets a line for each part that this host does not enforce,
 * without a newline at the end, or stays empty. Returns 0, -ENOMEM, or -errno if the kernel refuses
 * what it reported to support; *e has the reason.
 */
int sandbox_begin(const struct sandbox_plan *p, struct buf *said, struct err *e);
/* Does the same in a process beside the run's own one, which reports the missing parts. */
int sandbox_begin_beside(const struct sandbox_plan *p, struct err *e);
/*
 * Applies the main thread's filter when all threads exist, as vm_config.ready, or that of a
 * device's process. Returns 0 or -errno with the reason in *e.
 */
int sandbox_begin_main(struct err *e);

#endif
