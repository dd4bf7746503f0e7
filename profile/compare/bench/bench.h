/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench: makes runs of a base and of a head in turn, and keeps them in a directory.
 *
 *   DIR/base-001 head-001 [again-001] ...   profiles; again: the base once more (A/A)
 *   DIR/NAME.log                            the run's output
 *   DIR/failed/                             runs that failed, and those of the same pair, which
 *                                           `kvmprof gate` must not use
 *   DIR/bench.json                          the results of all runs, rewritten after each pair
 *
 * stats_order() determines the order within pairs, on which the paired permutation test rests. The
 * position of the A/A arm among the three is random, too. A run that fails is counted and not
 * repeated: whether a run fails may depend on what is measured.
 *
 * Functions that return int return 0 or -errno. Called by the main thread, see exec.h.
 */
#ifndef KVMPROF_PROFILE_COMPARE_BENCH_BENCH_H
#define KVMPROF_PROFILE_COMPARE_BENCH_BENCH_H

#include "profile/compare/bench/exec.h"
#include "profile/compare/stats/verdict.h"

#include <stdbool.h>
#include <stddef.h>

#define BENCH_ARGS_MAX 256u   /* arguments of one side, with the common ones */
#define BENCH_TEXT_MAX 65536u /* bytes of --base-args */
#define BENCH_FAILURES_MAX 3u /* failed runs of all arms after which the command stops */

/* The words of a line, split like a shell does: blanks, '..', "..", \x; nothing is expanded. */
struct bench_args {
	char *word[BENCH_ARGS_MAX + 1]; /* NULL at the end */
	size_t n;
	char *text; /* the memory of the words; NULL: they are borrowed */
};

/*
 * Splits text into words; the caller frees them with bench_args_deinit(). Returns 0, -EINVAL (a
 * quote without an end), -E2BIG or -ENOMEM.
 */
int bench_args_parse(struct bench_args *a, const char *text, struct err *e);
void bench_args_deinit(struct bench_args *a);

/* Parses a list of CPUs such as "0,2-3" into *set. Returns 0 or -EINVAL. */
int bench_cpus_parse(cpu_set_t *set, const char *text, struct err *e);

enum bench_arm { BENCH_BASE, BENCH_HEAD, BENCH_AGAIN, BENCH_ARM_MAX };

struct bench_options {
	const char *dir;
	const char *image[2];	   /* images of base and head; NULL: the demo guest */
	struct bench_args args[2]; /* arguments of base and head */
	struct bench_args common;  /* precede the arguments of a side */
	/*
	 * VMMs of base and head with their arguments: each run is then a `kvmprof attach -- VMM`,
	 * and the options above are its options. Both or none; n 0: runs are `kvmprof run`s.
	 */
	struct bench_args vmm[2];
	const char *cpus; /* as given, for bench.json; NULL: not pinned */
	cpu_set_t pin;
	unsigned int pairs, warmup; /* pairs: 1 to STATS_MAX_RUNS */
	bool again;		    /* run the A/A arm */
	uint64_t seed;
	double timeout_s; /* time limit of one run; more than 0 */
	int stop_fd;	  /* readable when the user interrupts; -1: never */
};

struct bench;

/*
 * Creates the directory; an existing one is renamed to DIR.old. *o is borrowed until
 * bench_destroy(), with which the caller frees *out. Returns 0 or -errno.
 */
int bench_create(struct bench **out, const struct bench_options *o, struct err *e);
void bench_destroy(struct bench *b);

/* The results of the runs of one pair. */
struct bench_pair {
	unsigned int number; /* from 1 */
	bool complete;	     /* all arms succeeded */
	bool interrupted;
	bool ran[BENCH_ARM_MAX]; /* outcome[] and path[] of this arm are set */
	struct bench_outcome outcome[BENCH_ARM_MAX];
	char path[BENCH_ARM_MAX][64]; /* name in DIR, or in DIR/failed unless complete */
};

/*
 * Runs a pair whose results are not used. Returns 0; -EINTR if interrupted; or -EIO if a run fails,
 * because the next one would, too.
 */
int bench_warm_up(struct bench *b, struct err *e);

/*
 * Runs the next pair and fills in *out. Runs that fail are not an error. Returns 0, or -errno if
 * the bench itself fails (disk full).
 */
int bench_next(struct bench *b, struct bench_pair *out, struct err *e);

/* Returns the number of pairs of bench_next(), also incomplete ones, but not interrupted ones. */
unsigned int bench_pairs_made(const struct bench *b);
/* Returns the number of failed runs of an arm. */
unsigned int bench_failures(const struct bench *b, enum bench_arm arm);

/*
 * Copies the last line of a run's log to text, without control characters; "" if there is no log. p
 * is NULL for bench_warm_up().
 */
void bench_last_log_line(const struct bench *b, const struct bench_pair *p, enum bench_arm arm,
			 char *text, size_t size);

/*
 * Writes bench.json a last time, with how the bench ended: "complete", "interrupted" or "failed".
 * Frees nothing.
 */
int bench_close(struct bench *b, const char *how, struct err *e);

/*
 * Requests from the kernel a counter of hardware instructions that runs in guests only
 * (perf_event_open(2), exclude_host), as sampling by instructions needs it, and closes it. Returns
 * 0, or -errno if there is no such counter. Any thread.
 */
int bench_counter_check(struct err *e);

#endif
