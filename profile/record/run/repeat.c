/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/repeat.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/proc.h"
#include "base/reporter.h"
#include "profile/format/perfdata/read.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Largest size of one file of a profile. */
#define REPEAT_FILE_MAX (64ull << 30)

/* The last of repeated options counts, so the added ones override the user's. */
#define ADDED 7

/* -- one run -------------------------------------------------------------------------------- */

static void become_run(char *const *argv, pid_t parent)
{
	char program[PATH_MAX];
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() == parent)
		execv(proc_program(program), argv);
}

/*
 * Runs the program once. Returns its exit status as a shell does, or -errno if it could not be run.
 */
static int run_once(char *const *argv)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid) {
		become_run(argv, parent);
		kill(getpid(), SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Inserts words before "--", which other words may follow. */
static int run_with(int argc, char **argv, bool first, const char *output)
{
	cleanup_free char **words = calloc((size_t)argc + ADDED + 1, sizeof(*words));
	int n = 0, i = 0;

	if (!words)
		return -ENOMEM;
	words[n++] = (char *)"kvmprof";
	words[n++] = (char *)"run";
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		words[n++] = argv[i];
	words[n++] = (char *)"--repeat=1";
	words[n++] = (char *)"-o";
	words[n++] = (char *)output;
	if (!first) {
		words[n++] = (char *)"--quiet";
		words[n++] = (char *)"--no-summary";
	}
	for (; i < argc; i++)
		words[n++] = argv[i];
	return run_once(words);
}

/* -- comparison -------------------------------------------------------------------------------- */

/* Returns 1 if the files are equal, 0 if not, with the difference in *where, or -errno. */
static int same_file(const char *a, const char *b, struct err *where)
{
	struct file_map x = { 0 }, y = { 0 };
	struct stat of_a, of_b;
	size_t at = 0;
	int ret = 0;

	if (stat(a, &of_a) || stat(b, &of_b))
		return err_set(where, errno, "%.300s: only one of the runs has it", a), 0;
	/* Empty files cannot be mapped. */
	if (of_a.st_size)
		ret = file_map_open(&x, a, REPEAT_FILE_MAX, where);
	if (!ret && of_b.st_size)
		ret = file_map_open(&y, b, REPEAT_FILE_MAX, where);
	if (ret) {
		file_map_close(&x);
		return 0;
	}
	while (at < x.len && at < y.len && x.data[at] == y.data[at])
		at++;
	ret = at == x.len && at == y.len;
	if (!ret)
		err_set(where, EINVAL, "%.300s differs from byte %zu on (of %zu and %zu)", a, at,
			x.len, y.len);
	file_map_close(&x);
	file_map_close(&y);
	return ret;
}

static int same_tree(const char *a, const char *b, struct err *where)
{
	cleanup_closedir DIR *dir = opendir(a);
	struct dirent *d;
	int ret = 1;

	if (!dir)
		return errno == ENOTDIR ? same_file(a, b, where) : -errno;
	while (ret > 0 && (d = readdir(dir))) {
		cleanup_free char *x = NULL, *y = NULL;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (asprintf(&x, "%s/%s", a, d->d_name) < 0 ||
		    asprintf(&y, "%s/%s", b, d->d_name) < 0)
			return -ENOMEM;
		ret = same_tree(x, y, where);
	}
	return ret;
}

static bool same_record(const struct perfdata_record *x, const struct perfdata_record *y)
{
	return x->kind == y->kind && x->time_ns == y->time_ns && x->pid == y->pid &&
	       x->tid == y->tid && x->cpu == y->cpu &&
	       (x->kind != PERFDATA_SAMPLE ||
		(x->sample.ip == y->sample.ip && x->sample.nr == y->sample.nr &&
		 !memcmp(x->sample.chain, y->sample.chain, (size_t)x->sample.nr * 8)));
}

/* Returns the number of the first sample that differs, counted from 1, or 0 if none does. */
static uint64_t first_sample(const char *a, const char *b, uint64_t *time_ns)
{
	struct perfdata *x = NULL, *y = NULL;
	struct perfdata_record rx, ry;
	uint64_t n = 0, found = 0;
	bool hx, hy;

	if (perfdata_open(&x, a, NULL) || perfdata_open(&y, b, NULL)) {
		perfdata_close(x);
		return 0;
	}
	do {
		hx = perfdata_next(x, &rx);
		hy = perfdata_next(y, &ry);
		n += (hx && rx.kind == PERFDATA_SAMPLE) || (!hx && hy);
		if (hx != hy || (hx && !same_record(&rx, &ry))) {
			found = n ? n : 1;
			*time_ns = hx ? rx.time_ns : ry.time_ns;
		}
	} while (hx && hy && !found);
	perfdata_close(x);
	perfdata_close(y);
	return found;
}

static int tell_difference(const struct run_options *o, const char *other, unsigned int run,
			   const struct err *where)
{
	cleanup_free char *kept = NULL;
	uint64_t time_ns = 0, sample = first_sample(o->output, other, &time_ns);
	struct err e = { 0 };

	reporter_printf(o->reporter, "kvmprof: run %u differs from the first: %s\n", run,
			where->text);
	if (sample)
		reporter_printf(o->reporter,
				"kvmprof: the first sample that differs is number %" PRIu64
				", at %" PRIu64 " ns of virtual time\n",
				sample, time_ns);
	if (asprintf(&kept, "%s.differs", o->output) < 0 || file_publish(other, kept, &e)) {
		reporter_printf(o->reporter, "kvmprof: %s\n", e.code ? e.text : "out of memory");
		file_remove_tree(other, NULL);
	} else {
		reporter_printf(o->reporter, "kvmprof: its profile is in %s\n", kept);
	}
	return 1;
}

static int compare_run(const struct run_options *o, const char *other, unsigned int run)
{
	struct err where = { 0 };
	int ret = same_tree(o->output, other, &where);

	if (ret < 0) {
		reporter_printf(o->reporter, "kvmprof: cannot compare %s with %s: %s\n", o->output,
				other, strerror(-ret));
		return 1;
	}
	if (!ret)
		return tell_difference(o, other, run, &where);
	file_remove_tree(other, NULL);
	return 0;
}

int run_repeat(const struct run_options *o, int argc, char **argv)
{
	cleanup_free char *other = NULL;
	int first, status = 0;

	/* Ctrl-C ends the run; then there is nothing to compare. */
	signal(SIGINT, SIG_IGN);
	if (asprintf(&other, "%s.repeat-%d", o->output, (int)getpid()) < 0)
		return 1;
	first = run_with(argc, argv, true, o->output);
	for (unsigned int i = 2; i <= o->repeat && first >= 0 && !status; i++) {
		int again = run_with(argc, argv, false, other);

		if (again < 0)
			first = again;
		else if (again != first) {
			reporter_printf(
				o->reporter,
				"kvmprof: run %u ended with exit status %d, the first with %d\n", i,
				again, first);
			status = 1;
			file_remove_tree(other, NULL);
		} else if (access(other, F_OK) == 0) {
			status = compare_run(o, other, i);
		} else {
			break; /* it failed as the first one did */
		}
	}
	if (first < 0) {
		reporter_printf(o->reporter, "kvmprof: cannot start a run: %s\n", strerror(-first));
		return 1;
	}
	if (!status && !first)
		reporter_printf(o->reporter,
				"kvmprof: %" PRIu64 " runs gave the same profile, byte for byte\n",
				o->repeat);
	return status ? status : first;
}
