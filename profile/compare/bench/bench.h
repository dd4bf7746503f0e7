/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench: runs of a base and of a head, made in turn and kept in a directory.
 *
 *   DIR/base-001 head-001 [again-001] ...   profiles; again: the base once more (A/A)
 *   DIR/NAME.log                            what the run said
 *   DIR/failed/                             runs that failed, and those of the same pair, which
 *                                           `kvmprof gate` must not take
 *   DIR/bench.json                          all of it, written anew after each pair
 *
 * The order within pairs is stats_order()'s, on which the paired permutation test rests. With
 * the A/A arm its place among the three is by chance, too. A run that fails is counted, and
 * never made again: which runs fail may depend on what is being measured. One thread, the main one.
 */
#ifndef KVMPROF_PROFILE_COMPARE_BENCH_BENCH_H
#define KVMPROF_PROFILE_COMPARE_BENCH_BENCH_H

#include "profile/compare/bench/exec.h"
#include "profile/compare/stats/verdict.h"

#include <stdbool.h>
#include <stddef.h>

#define BENCH_ARGS_MAX 256u   /* most arguments of one side, with the common ones */
#define BENCH_TEXT_MAX 65536u /* bytes of --base-args */
#define BENCH_FAILURES_MAX 3u /* then it is over */

/* Words of a line, as a shell splits it: blanks, '..', "..", \x; nothing is expanded. */
struct bench_args {
	char *word[BENCH_ARGS_MAX + 1]; /* NULL at the end */
	size_t n;
	char *text; /* that they are in; or NULL: they are borrowed */
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
	struct bench_args common;  /* before those of a side */
	/*
	 * VMMs of base and head with their arguments: each run is then a `kvmprof attach -- VMM`,
	 * and the options above are its options. Both or none; n 0: runs are `kvmprof run`s.
	 */
	struct bench_args vmm[2];
	const char *cpus; /* as given, for bench.json; NULL: not pinned */
	cpu_set_t pin;
	unsigned int pairs, warmup; /* pairs: 1 to STATS_MAX_RUNS */
	bool again;		    /* with the A/A arm */
	uint64_t seed;
	double timeout_s;
	int stop_fd; /* readable: the user wants an end */
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
	bool complete;	     /* all arms are there */
	bool interrupted;
	bool ran[BENCH_ARM_MAX];
	struct bench_outcome outcome[BENCH_ARM_MAX];
	char path[BENCH_ARM_MAX][64]; /* in the directory; valid when complete */
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

unsigned int bench_pairs_made(const struct bench *b); /* also failed ones */
unsigned int bench_failures(const struct bench *b, enum bench_arm arm);

/* The last line of a run's log, printable, in text; "" when there is none. */
void bench_last_words(const struct bench *b, const struct bench_pair *p, enum bench_arm arm,
		      char *text, size_t size);

/* how: "complete", "interrupted", "failed"; for bench.json. */
int bench_close(struct bench *b, const char *how, struct err *e);

/*
 * Asks the kernel for a counter of hardware instructions that runs in guests only
 * (perf_event_open(2), exclude_host), as sampling by instructions needs it. Returns 0, or -errno
 * with the reason. Any thread.
 */
int bench_counter_check(struct err *e);

#endif
