/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/sandbox.h"

#include "base/reporter.h"
#include "base/thread.h"
#include "profile/record/sandbox/filter.h"
#include "profile/record/sandbox/landlock.h"
#include "profile/record/sandbox/rights.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const sandbox_mode_names[] = { "on", "log", "off", "strict", NULL };

/* The state of the process; written by sandbox_begin(), constant afterwards. */
static struct {
	bool begun, filters, capabilities, other_user;
	enum sandbox_scope scope;
	uint64_t counters;
} sandbox;

void sandbox_plan_add(struct sandbox_plan *p, const char *path, enum sandbox_access access)
{
	if (path && *path && p->npaths < SANDBOX_MAX_PATHS)
		p->path[p->npaths++] = (struct sandbox_path){ path, access };
}

void sandbox_probe(struct sandbox_host *out)
{
	out->seccomp = filter_probe();
	out->landlock = landlock_probe(&out->without);
}

/*
 * Ends the process: a thread that serves a guest must not continue with more rights than it should
 * have.
 */
static void sandbox_refused(enum thread_kind kind)
{
	char text[160];
	int n = snprintf(
		text, sizeof(text),
		"kvmprof: sandbox: the host's kernel refuses to bind thread %s: the run ends here; "
		"--sandbox=off runs without\n",
		thread_kind_name(kind));

	reporter_write_raw(text, (size_t)n);
	syscall(SYS_exit_group, 1);
}

/* Does everything that can fail, while the error can still be reported. */
static int sandbox_prepare(enum thread_kind kind)
{
	return sandbox.filters ? -filter_make(kind) : 0;
}

static int sandbox_bind(enum thread_kind kind)
{
	/* A thread that was started before sandbox_begin() has not inherited it. */
	int ret = rights_no_new();

	/* The tracing process keeps its rights over others, its guard does not. */
	if (!ret && (sandbox.capabilities || kind == THREAD_ATTACH_GUARD))
		ret = rights_keep(rights_of(kind, sandbox.counters, sandbox.other_user));
	if (!ret && sandbox.filters)
		ret = filter_enter(kind);
	return ret;
}

/* Runs first in each new thread. */
static void sandbox_enter(enum thread_kind kind)
{
	if (sandbox_bind(kind))
		sandbox_refused(kind);
}

/* Returns the kind of the thread that calls sandbox_begin_main(). */
static enum thread_kind sandbox_main_kind(enum sandbox_scope scope)
{
	return scope == SANDBOX_FILES	  ? THREAD_9P_FILES
	       : scope == SANDBOX_KEEPER  ? THREAD_KEEPER
	       : scope == SANDBOX_NETWORK ? THREAD_NET_SLIRP
	       : scope == SANDBOX_TRACER  ? THREAD_ATTACH_MAIN
					  : THREAD_MAIN;
}

int sandbox_begin(const struct sandbox_plan *p, struct buf *said, struct err *e)
{
	bool own = p->scope != SANDBOX_TRACER;
	struct sandbox_host host;
	int ret;

	if (p->mode == SANDBOX_OFF || sandbox.begun)
		return 0;
	sandbox_probe(&host);
	sandbox.begun = true;
	sandbox.scope = p->scope;
	sandbox.counters = rights_counters(p->perfmon);
	ret = rights_no_new();
	if (ret)
		return err_set(e, -ret, "sandbox: PR_SET_NO_NEW_PRIVS: %s", strerror(-ret));
	if (host.seccomp) {
		filter_prepare(p->mode == SANDBOX_LOG ? FILTER_TELLS : FILTER_ENDS, p);
		sandbox.filters = true;
	} else {
		buf_printf(said, "system calls are not filtered: the host's kernel has no seccomp "
				 "filters");
	}
	/* A process in a Landlock domain cannot trace those outside of it. */
	if (own && host.landlock) {
		ret = landlock_enter(p, host.landlock, e);
		if (ret)
			return ret;
	} else if (own) {
		buf_printf(said, "%sfiles are not confined: %s", said->len ? "; " : "",
			   host.without);
	}
	if (p->missing)
		buf_printf(said, "%s%s", said->len ? "; " : "", p->missing);
	if (p->counters && host.landlock < LANDLOCK_SIGNAL_ABI)
		buf_printf(said,
			   "%sa vCPU thread that counts events can send signals to other processes "
			   "(Linux 6.12 or later confines them)",
			   said->len ? "; " : "");
	if (p->mode == SANDBOX_STRICT && said->len)
		return err_set(e, EPERM, "--sandbox=strict: %.*s", (int)said->len,
			       (const char *)said->data);
	if (p->user) {
		ret = rights_become(p->user);
		if (ret)
			return err_set(e, -ret, "sandbox: cannot become user %u: %s",
				       (unsigned int)p->user->uid, strerror(-ret));
		sandbox.other_user = true;
	}
	if (own && rights_has_any()) {
		ret = rights_keep(
			p->scope == SANDBOX_OWN
				? rights_of_all(sandbox.counters, p->pagemap, sandbox.other_user)
				: rights_of(sandbox_main_kind(p->scope), 0, false));
		if (ret)
			return err_set(e, -ret, "sandbox: cannot drop capabilities: %s",
				       strerror(-ret));
		sandbox.capabilities = true;
	}
	thread_set_entry(sandbox_prepare, sandbox_enter);
	return 0;
}

int sandbox_begin_beside(const struct sandbox_plan *p, struct err *e)
{
	struct buf said;
	int ret;

	buf_init(&said);
	ret = sandbox_begin(p, &said, e);
	buf_deinit(&said);
	return ret;
}

/* Descriptors that a run may have in addition to those that are open when its guest begins. */
#define SANDBOX_FILES_MORE 4096u

/* Returns the lowest unused descriptor number: about as many are open. */
static unsigned int open_files(void)
{
	int fd = dup(STDERR_FILENO);

	if (fd < 0)
		return 0;
	close(fd);
	return (unsigned int)fd;
}

/*
 * Lowers the limits of this process, once all its threads exist:
 *
 *   RLIMIT_CORE    0: the core file of a process with a hostile guest is large and contains secrets
 *   RLIMIT_NPROC   0, except in a run: the process starts no thread and no process. A run's lists
 *                  of system calls allow none either, but KVM itself starts threads in it, which
 *                  this limit would refuse
 *   RLIMIT_NOFILE  in a run: SANDBOX_FILES_MORE more than are open. Other processes keep the host's
 *                  limit, which decides how many files of a share a guest may have open
 *
 * Resources that a run may need in any amount are not limited: file size (a profile, a disk),
 * address space (guest memory), locked memory (rings of counters). Returns 0 or -errno.
 */
static int sandbox_limits(enum sandbox_scope scope)
{
	int ret = rights_limit(RLIMIT_CORE, 0);

	if (ret)
		return ret;
	/* KVM starts a thread in this process at the first KVM_RUN: "kvm: defer huge page recovery vhost task to later" (6.14). */
	return scope == SANDBOX_OWN ? rights_limit(RLIMIT_NOFILE, open_files() + SANDBOX_FILES_MORE)
				    : rights_limit(RLIMIT_NPROC, 0);
}

int sandbox_begin_main(struct err *e)
{
	enum thread_kind kind = sandbox_main_kind(sandbox.scope);
	int ret;

	if (!sandbox.begun)
		return 0;
	ret = sandbox_limits(sandbox.scope);
	if (ret)
		return err_set(e, -ret, "sandbox: limits: %s", strerror(-ret));
	ret = -sandbox_prepare(kind);
	ret = ret ? ret : sandbox_bind(kind);
	return ret ? err_set(e, -ret,
			     "sandbox: the host's kernel refuses to bind thread %s: %s; "
			     "--sandbox=off runs without",
			     thread_kind_name(kind), strerror(-ret))
		   : 0;
}
