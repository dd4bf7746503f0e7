/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/diverge/rerun.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/reporter.h"
#include "base/signals.h"
#include "profile/format/perfdata/read.h"
#include "profile/record/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 20000000 /* interval at which enough() is called */
#define SEAL_LOOKS 200
#define SAID_MAX 65536u
#define TOTALS_MAX (16u << 20)

/* -- the profile ---------------------------------------------------------------------------- */

int rerun_open(struct rerun *r, const char *path, struct err *e)
{
	struct perfdata *p;
	const char *name;
	json_t *totals;
	int ret;

	*r = (struct rerun){ .profile = path, .plan = { .fd = -1 }, .said = -1, .totals = -1 };
	ret = perfdata_open(&p, path, e);
	if (ret)
		return ret;
	totals = p->ours ? perfdata_totals(p) : NULL;
	r->engine = json_incref(json_object_get(totals, "engine"));
	json_decref(totals);
	name = json_string_value(json_object_get(r->engine, "name"));
	r->nwords = perfdata_command(p, &r->words);
	perfdata_close(p);
	if (!name || strcmp(name, "exact") != 0)
		return err_set(e, EINVAL,
			       "%s: not a profile of `kvmprof run --engine exact`: only such runs "
			       "can be repeated",
			       path);
	if (r->nwords < 0)
		return err_nomem(e);
	return r->nwords ? 0
			 : err_set(e, EINVAL, "%s: it does not contain the command line of its run",
				   path);
}

static void rerun_forget(struct rerun *r)
{
	int *fds[] = { &r->plan.fd, &r->said, &r->totals };

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	if (r->trace)
		munmap(r->trace, TRACE_SIZE);
	r->trace = NULL;
	json_decref(r->again);
	r->again = NULL;
}

void rerun_close(struct rerun *r)
{
	rerun_forget(r);
	json_decref(r->engine);
	if (r->nwords > 0)
		free(r->words);
}

/* -- the child ------------------------------------------------------------------------------ */

/*
 * Applies the command line, except for what this file determines: the end, the trace, and where
 * messages go.
 */
static void rerun_adjust(struct rerun *r, struct run_options *o)
{
	o->output = r->output;
	o->trace = &r->plan;
	o->call_counts = false;
	o->repeat = 0;
	o->quiet = true;
	o->json = o->summary = false;
	o->control = NULL;
	o->tasks.ps_at_end = false;
	o->tasks.no_status = true;
	/* A trace continues past all places. */
	o->start_at = o->stop_at = NULL;
	o->nmark_at = 0;
	if (!r->plan.nat)
		return;
	/* This file determines the moments of samples, not lines of the console. */
	o->start_on = o->stop_on = NULL;
	o->nmark_on = 0;
	o->delay_s = o->duration_s = 0;
	o->max_samples = 0;
}

__attribute__((format(printf, 2, 0))) static void rerun_print(void *ctx, const char *fmt,
							      va_list ap)
{
	const struct rerun *r = ctx;

	vdprintf(r->said, fmt, ap);
}

static int rerun_as_child(struct rerun *r)
{
	const struct reporter reporter = { rerun_print, r };
	struct run *run = calloc(1, sizeof(*run));
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), status;

	if (!run || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(r->said, STDERR_FILENO) < 0)
		return 1;
	run->asked.reporter = &reporter;
	status = run_options_parse(&run->asked, r->nwords, r->words);
	if (status >= 0)
		return status;
	rerun_adjust(r, &run->asked);
	run->json = fdopen(r->totals, "w");
	status = run_main(run, r->nwords, r->words);
	return run->json && fclose(run->json) ? 1 : status;
}

/*
 * Maps it through a read-only descriptor: otherwise the mapping would prevent it from being sealed.
 */
static int rerun_map_trace(struct rerun *r, struct err *e)
{
	cleanup_close int fd = -1;
	char path[40];
	void *at;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->plan.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	at = fd < 0 ? MAP_FAILED : mmap(NULL, TRACE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_set(e, errno, "trace: %s", strerror(errno));
	r->trace = at;
	return 0;
}

/*
 * Seals the trace, which must not change between the checks and its use. QEMU has ended, or ends
 * soon.
 */
static int rerun_seal_trace(struct rerun *r, struct err *e)
{
	const struct timespec pause = { 0, LOOK_NS };
	int ret = -EBUSY;

	if (!r->trace)
		return 0;
	for (unsigned int i = 0; ret == -EBUSY && i < SEAL_LOOKS; i++) {
		err_clear(e);
		if (i)
			nanosleep(&pause, NULL);
		ret = file_seal(r->plan.fd, FILE_SEAL_ALL, "trace", e);
	}
	return ret;
}

static int rerun_start(struct rerun *r, bool with_trace, struct err *e)
{
	pid_t parent = getpid();
	int ret;

	rerun_forget(r);
	ret = file_in_memory("messages of a run", 0, &r->said, e);
	if (ret)
		return ret;
	ret = file_in_memory("totals of a run", 0, &r->totals, e);
	if (ret)
		return ret;
	if (with_trace) {
		ret = file_in_memory("trace", TRACE_SIZE, &r->plan.fd, e);
		if (ret)
			return ret;
		ret = rerun_map_trace(r, e);
		if (ret)
			return ret;
	}
	fflush(NULL);
	r->pid = fork();
	if (r->pid < 0) {
		r->pid = 0;
		return err_set(e, errno, "cannot start a run: %s", strerror(errno));
	}
	if (!r->pid) {
		signals_init();
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() == parent)
			syscall(SYS_exit_group, rerun_as_child(r));
		syscall(SYS_exit_group, 1);
	}
	return 0;
}

/* -- both runs ------------------------------------------------------------------------------- */

/* Returns whether it has ended, now or before. */
static bool rerun_has_ended(struct rerun *r)
{
	int status;

	if (r->pid && waitpid(r->pid, &status, WNOHANG) == r->pid) {
		r->pid = 0;
		r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return !r->pid;
}

static void rerun_wait(struct rerun side[2], rerun_enough_fn enough)
{
	const struct timespec pause = { 0, LOOK_NS };
	bool told = false;

	for (;;) {
		bool first = rerun_has_ended(&side[0]), second = rerun_has_ended(&side[1]);

		if (first && second)
			return;
		if (!told && enough && enough(side)) {
			told = true;
			for (unsigned int i = 0; i < 2; i++)
				if (side[i].pid)
					kill(side[i].pid, SIGTERM);
		}
		nanosleep(&pause, NULL);
	}
}

/* Reads `engine` of its totals; if there is none, its last message becomes the error. */
static int rerun_result(struct rerun *r, struct err *e)
{
	char said[SAID_MAX + 1], *last = said, *at;
	json_t *totals;
	ssize_t n;
	FILE *f;

	if (lseek(r->totals, 0, SEEK_END) <= (off_t)TOTALS_MAX && !lseek(r->totals, 0, SEEK_SET)) {
		f = fdopen(dup(r->totals), "r");
		totals = f ? json_loadf(f, 0, NULL) : NULL;
		if (f)
			fclose(f);
		r->again = json_incref(json_object_get(totals, "engine"));
		json_decref(totals);
	}
	if (r->again)
		return 0;
	n = pread(r->said, said, SAID_MAX, 0);
	said[n > 0 ? n : 0] = '\0';
	while ((at = strchr(last, '\n')) && at[1])
		last = at + 1;
	last[strcspn(last, "\n")] = '\0';
	if ((at = strstr(last, ": ")) && !strncmp(last, "kvmprof", 7))
		last = at + 2;
	return err_set(e, EIO, "%s: its run cannot be repeated: %s", r->profile,
		       *last ? last : "it reported no reason");
}

int rerun_both(struct rerun side[2], bool with_trace, rerun_enough_fn enough, struct err *e)
{
	int ret = rerun_start(&side[0], with_trace, e);

	ret = ret ? ret : rerun_start(&side[1], with_trace, e);
	for (unsigned int i = 0; ret && i < 2; i++)
		if (side[i].pid)
			kill(side[i].pid, SIGTERM);
	rerun_wait(side, enough);
	for (unsigned int i = 0; i < 2 && !ret; i++) {
		ret = rerun_result(&side[i], e);
		if (!ret)
			ret = rerun_seal_trace(&side[i], e);
	}
	return ret;
}

/* -- comparison with the profile -------------------------------------------------------------- */

int rerun_check(const struct rerun *r, struct err *e)
{
	static const struct {
		const char *key, *what;
	} inputs[] = {
		{ "kernel_sha256", "its kernel is another one now" },
		{ "initrd_sha256", "its RAM disk is another one now" },
		{ "cmdline", "its kernel's command line is another one now" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(inputs); i++) {
		const char *was = json_string_value(json_object_get(r->engine, inputs[i].key));
		const char *is = json_string_value(json_object_get(r->again, inputs[i].key));

		if (!was || !is || strcmp(was, is) != 0)
			return err_set(
				e, ESTALE,
				"%s: %s (%.16s, and the profile has %.16s): record the profile "
				"anew, or put the file back",
				r->profile, inputs[i].what, is ? is : "none", was ? was : "none");
	}
	if (json_object_get(r->engine, "disks") &&
	    !json_equal(json_object_get(r->engine, "disks"), json_object_get(r->again, "disks")))
		return err_set(e, ESTALE,
			       "%s: a disk has changed since: record the profile anew, or put the "
			       "file back",
			       r->profile);
	return 0;
}
