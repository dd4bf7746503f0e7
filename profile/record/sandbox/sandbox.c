/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/sandbox.h"

#include "base/thread.h"
#include "profile/record/sandbox/filter.h"
#include "profile/record/sandbox/landlock.h"
#include "profile/record/sandbox/rights.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const sandbox_mode_names[] = { "on", "log", "off", NULL };

/* Of the process; written by sandbox_begin(), const afterwards. */
static struct {
	bool begun, filters, capabilities;
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

/* A thread that a guest has to do with must not go on with more rights than it shall have. */
static void sandbox_refused(enum thread_kind kind)
{
	dprintf(STDERR_FILENO,
		"kvmprof: sandbox: the host's kernel refuses to bind thread %s: the run ends here; "
		"--sandbox=off runs without\n",
		thread_kind_name(kind));
	syscall(SYS_exit_group, 1);
}

/* Of an attached run, the others have to do with the machine: their calls are those of tracing it. */
static bool sandbox_binds(enum thread_kind kind)
{
	return sandbox.scope != SANDBOX_ATTACHED || kind == THREAD_CONSOLE ||
	       kind == THREAD_CONTROL;
}

/* What can fail, while there is still somebody to tell. */
static int sandbox_prepare(enum thread_kind kind)
{
	return sandbox_binds(kind) && sandbox.filters ? -filter_make(kind) : 0;
}

static int sandbox_bind(enum thread_kind kind)
{
	int ret = 0;

	if (!sandbox_binds(kind))
		return 0;
	if (sandbox.capabilities)
		ret = rights_keep(rights_of(kind, sandbox.counters));
	if (!ret && sandbox.filters)
		ret = filter_enter(kind);
	return ret;
}

/* Each new thread, first of all. */
static void sandbox_enter(enum thread_kind kind)
{
	if (sandbox_bind(kind))
		sandbox_refused(kind);
}

int sandbox_begin(const struct sandbox_plan *p, struct buf *said, struct err *e)
{
	bool own = p->scope != SANDBOX_ATTACHED;
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
	/* A process in a Landlock domain may not trace those outside of it. */
	if (own && host.landlock) {
		ret = landlock_enter(p, host.landlock, e);
		if (ret)
			return ret;
	} else if (own) {
		buf_printf(said, "%sfiles are not confined: %s", said->len ? "; " : "",
			   host.without);
	}
	if (own && rights_any()) {
		ret = rights_keep(p->scope == SANDBOX_FILES
					  ? rights_of(THREAD_9P_FILES, 0)
					  : rights_of_all(sandbox.counters, p->pagemap));
		if (ret)
			return err_set(e, -ret, "sandbox: cannot drop capabilities: %s",
				       strerror(-ret));
		sandbox.capabilities = true;
	}
	thread_set_entry(sandbox_prepare, sandbox_enter);
	return 0;
}

int sandbox_begin_main(struct err *e)
{
	enum thread_kind kind = sandbox.scope == SANDBOX_FILES ? THREAD_9P_FILES : THREAD_MAIN;
	int ret;

	if (!sandbox.begun || sandbox.scope == SANDBOX_ATTACHED)
		return 0;
	ret = -sandbox_prepare(kind);
	ret = ret ? ret : sandbox_bind(kind);
	return ret ? err_set(e, -ret,
			     "sandbox: the host's kernel refuses to bind thread %s: %s; "
			     "--sandbox=off runs without",
			     thread_kind_name(kind), strerror(-ret))
		   : 0;
}
