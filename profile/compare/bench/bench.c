/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/bench/bench.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/outfile.h"
#include "base/proc.h"
#include "profile/compare/stats/deals.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOG_TAIL 4096 /* bytes of a log in which its last line is looked for */
#define ARGV_MAX (3 * BENCH_ARGS_MAX + 16)
/*
 * Time that a run has after SIGTERM. It writes its profile, of which nothing is used. With a VMM it
 * also ends that, which may take the 2 s of LAUNCH_GRACE_MS twice (vmm/attach/launch.h), and longer
 * on a busy host. A run that is killed leaves its VMM behind.
 */
#define GRACE_MS 1200
#define GRACE_VMM_MS 20000

static const char *const arm_name[BENCH_ARM_MAX] = { "base", "head", "again" };

/* -- what the user says, as words and CPUs --------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* One word, unquoted in place; *from is behind it after. false: a quote has no end. */
static bool take_word(const char **from, char **to)
{
	const char *p = *from;
	char quote = 0;

	for (; *p && (quote || !is_blank(*p)); p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"') {
			quote = quote ? 0 : *p;
		} else {
			if (*p == '\\' && quote != '\'' && p[1])
				p++;
			*(*to)++ = *p;
		}
	}
	*(*to)++ = '\0';
	*from = p;
	return !quote;
}

int bench_args_parse(struct bench_args *a, const char *text, struct err *e)
{
	size_t len = strlen(text);
	cleanup_free char *copy = NULL;
	struct bench_args got = { .n = 0 };
	char *to;

	if (len > BENCH_TEXT_MAX)
		return err_set(e, E2BIG, "%zu bytes of run options, at most %u", len,
			       BENCH_TEXT_MAX);
	/* Words only get shorter; each ends where there was a blank or the end. */
	to = copy = malloc(len + 2);
	if (!copy)
		return err_nomem(e);
	for (;;) {
		while (is_blank(*text))
			text++;
		if (!*text)
			break;
		if (got.n == BENCH_ARGS_MAX)
			return err_set(e, E2BIG, "more than %u run options", BENCH_ARGS_MAX);
		got.word[got.n++] = to;
		if (!take_word(&text, &to))
			return err_set(e, EINVAL, "a quote without an end");
	}
	got.text = take_ptr(copy);
	*a = got;
	return 0;
}

void bench_args_deinit(struct bench_args *a)
{
	free(a->text);
	*a = (struct bench_args){ .n = 0 };
}

int bench_cpus_parse(cpu_set_t *set, const char *text, struct err *e)
{
	const char *p = text;
	struct number_range r;
	int ret;

	CPU_ZERO(set);
	while ((ret = number_range(&p, CPU_SETSIZE - 1, &r)) > 0)
		for (; r.from <= r.to; r.from++)
			CPU_SET(r.from, set);
	return ret ? err_set(e, EINVAL, "'%.60s': expected CPUs below %d such as 0,2-3", text,
			     CPU_SETSIZE)
		   : 0;
}

/* -- the directory and its runs ---------------------------------------------------------------- */

/* A run that was made, for bench.json. */
struct made {
	unsigned int pair;
	enum bench_arm arm;
	bool kept; /* not in failed/ */
	uint64_t unix_ns;
	struct bench_outcome outcome;
};

struct bench {
	const struct bench_options *opt;
	bool head_first[STATS_MAX_RUNS];
	uint8_t again_at[STATS_MAX_RUNS]; /* 0 to 2 */
	unsigned int pairs;
	unsigned int failures[BENCH_ARM_MAX];
	struct made *made; /* BENCH_ARM_MAX for each pair */
	size_t nmade;
	char *self; /* this program, also when its file is replaced meanwhile */
};

static int make_directory(const char *dir, struct err *e)
{
	cleanup_free char *tmp = NULL, *target = outfile_target(dir);
	int ret;

	if (!target || asprintf(&tmp, "%s.tmp-%d", target, (int)getpid()) < 0)
		return err_nomem(e);
	if (mkdir(tmp, 0755))
		return err_set(e, errno, "cannot make %s: %s", tmp, strerror(errno));
	ret = file_publish(tmp, target, e);
	if (ret)
		rmdir(tmp);
	return ret;
}

int bench_create(struct bench **out, const struct bench_options *o, struct err *e)
{
	struct bench *b = calloc(1, sizeof(*b));
	char program[PATH_MAX];
	uint64_t state = o->seed;
	int ret;

	if (b) {
		b->opt = o;
		b->made = calloc((size_t)o->pairs * BENCH_ARM_MAX, sizeof(*b->made));
		b->self = realpath(proc_program(program), NULL);
	}
	if (!b || !b->made || !b->self) {
		bench_destroy(b);
		return err_nomem(e);
	}
	stats_order(o->pairs, o->seed, b->head_first);
	for (unsigned int i = 0; i < o->pairs; i++)
		b->again_at[i] = (uint8_t)(stats_random(&state) % BENCH_ARM_MAX);
	ret = make_directory(o->dir, e);
	if (ret)
		bench_destroy(b);
	else
		*out = b;
	return ret;
}

void bench_destroy(struct bench *b)
{
	if (!b)
		return;
	free(b->made);
	free(b->self);
	free(b);
}

/* -- one run ------------------------------------------------------------------------------------- */

static void run_name(char *name, size_t size, enum bench_arm arm, unsigned int pair)
{
	snprintf(name, size, "%s-%03u", arm_name[arm], pair);
}

static size_t add_words(char **argv, size_t n, const struct bench_args *a)
{
	for (size_t i = 0; i < a->n; i++)
		argv[n++] = a->word[i];
	return n;
}

/* Returns the place of "--", or n. */
static size_t end_of_options(char *const *argv, size_t n)
{
	size_t at = 0;

	while (at < n && strcmp(argv[at], "--") != 0)
		at++;
	return at;
}

/* Behind all options, in front of a command that a program in the guest is given. */
static size_t add_output(char **argv, size_t n, char *profile, char *image)
{
	static char o[] = "-o";
	size_t at = end_of_options(argv, n), add = image ? 3 : 2;

	memmove(argv + at + add, argv + at, (n - at) * sizeof(*argv));
	argv[at] = o;
	argv[at + 1] = profile;
	if (image)
		argv[at + 2] = image;
	return n + add;
}

/* argv has room for ARGV_MAX words. */
static void fill_argv(const struct bench *b, unsigned int side, char **argv, char *profile,
		      char *image)
{
	static char run[] = "run", attach[] = "attach", no_cache[] = "--no-buildid-cache",
		    quiet[] = "-q", end[] = "--";
	const struct bench_args *vmm = &b->opt->vmm[side];
	size_t n = 0;

	argv[n++] = b->self;
	argv[n++] = vmm->n ? attach : run;
	if (!vmm->n)
		argv[n++] = quiet;
	argv[n++] = no_cache;
	n = add_words(argv, n, &b->opt->common);
	n = add_words(argv, n, &b->opt->args[side]);
	n = add_output(argv, n, profile, image);
	if (vmm->n) {
		argv[n++] = end;
		n = add_words(argv, n, vmm);
	}
	argv[n] = NULL;
}

static int execute(const struct bench *b, enum bench_arm arm, const char *name,
		   struct bench_outcome *out, struct err *e)
{
	unsigned int side = arm == BENCH_HEAD;
	const char *given = b->opt->image[side];
	char *argv[ARGV_MAX];
	cleanup_free char *profile = NULL;
	cleanup_free char *image = NULL;
	cleanup_free char *log = NULL;
	struct bench_exec x = {
		.argv = argv,
		.pin = b->opt->cpus ? &b->opt->pin : NULL,
		.timeout_s = b->opt->timeout_s,
		.stop_fd = b->opt->stop_fd,
		.grace_ms = b->opt->vmm[side].n ? GRACE_VMM_MS : GRACE_MS,
	};

	if (asprintf(&profile, "%s/%s", b->opt->dir, name) < 0 ||
	    asprintf(&log, "%s.log", profile) < 0 ||
	    (given && asprintf(&image, "%s%s", *given == '-' ? "./" : "", given) < 0))
		return err_nomem(e);
	fill_argv(b, side, argv, profile, image);
	x.log = log;
	return bench_exec(&x, out, e);
}

/* With their logs. What is not there need not be moved. */
static void set_aside(const struct bench *b, const char *name)
{
	static const char *const suffix[] = { "", ".log" };

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
		cleanup_free char *from = NULL, *to = NULL, *dir = NULL;

		if (asprintf(&dir, "%s/failed", b->opt->dir) < 0 ||
		    asprintf(&from, "%s/%s%s", b->opt->dir, name, suffix[i]) < 0 ||
		    asprintf(&to, "%s/%s%s", dir, name, suffix[i]) < 0)
			return;
		mkdir(dir, 0755);
		rename(from, to);
	}
}

static void remove_run(const struct bench *b, const char *name)
{
	cleanup_free char *path = NULL, *log = NULL;

	if (asprintf(&path, "%s/%s", b->opt->dir, name) < 0 || asprintf(&log, "%s.log", path) < 0)
		return;
	file_remove_tree(path, NULL);
	unlink(log);
}

static void arms_in_order(const struct bench *b, unsigned int pair, enum bench_arm *arm)
{
	unsigned int n = 0, at = b->again_at[pair];
	enum bench_arm first = b->head_first[pair] ? BENCH_HEAD : BENCH_BASE;

	for (unsigned int i = 0; i < BENCH_ARM_MAX; i++) {
		if (i == at)
			arm[i] = BENCH_AGAIN;
		else
			arm[i] = n++ ? (enum bench_arm)(1 - first) : first;
	}
}

/* -- bench.json ---------------------------------------------------------------------------------- */

static void json_words(struct json_writer *w, const char *key, const struct bench_args *a)
{
	json_array_begin(w, key);
	for (size_t i = 0; i < a->n; i++)
		json_str(w, NULL, a->word[i]);
	json_array_end(w);
}

static void json_run(struct json_writer *w, const struct made *m)
{
	char name[64], path[80], end[64];

	run_name(name, sizeof(name), m->arm, m->pair);
	snprintf(path, sizeof(path), "%s%s", m->kept ? "" : "failed/", name);
	bench_outcome_text(&m->outcome, end);
	json_line(w);
	json_put_object(w, NULL, "path", path, "side", arm_name[m->arm], "pair", m->pair,
			"began_unix_ns", m->unix_ns, "seconds", json_fixed(6, m->outcome.seconds),
			"end", end);
}

static int write_json(const struct bench *b, const char *how, struct err *e)
{
	const struct bench_options *o = b->opt;
	cleanup_free char *path = NULL, *tmp = NULL;
	struct json_writer w;
	struct buf j;
	int ret;

	if (asprintf(&path, "%s/bench.json", o->dir) < 0 || asprintf(&tmp, "%s.tmp", path) < 0)
		return err_nomem(e);
	buf_init(&j);
	json_begin(&w, &j);
	json_object_begin(&w, NULL);
	json_put(&w, "version", KVMPROF_VERSION, "how", how, "seed", o->seed, "pairs", o->pairs,
		 "pairs_made", b->pairs, "warmup", o->warmup, "pinned", o->cpus, "base_image",
		 o->image[0], "head_image", o->image[1]);
	json_words(&w, "base_args", &o->args[0]);
	json_words(&w, "head_args", &o->args[1]);
	json_words(&w, "args", &o->common);
	json_words(&w, "base_vmm", &o->vmm[0]);
	json_words(&w, "head_vmm", &o->vmm[1]);
	json_array_begin(&w, "runs");
	for (size_t i = 0; i < b->nmade; i++)
		json_run(&w, &b->made[i]);
	json_line(&w);
	json_array_end(&w);
	json_object_end(&w);
	buf_u8(&j, '\n');
	ret = j.failed ? err_nomem(e) : file_replace(tmp, path, j.data, j.len, e);
	buf_deinit(&j);
	return ret;
}

/* -- pairs --------------------------------------------------------------------------------------- */

int bench_warm_up(struct bench *b, struct err *e)
{
	static const char name[] = "warmup";
	int ret = 0;

	for (unsigned int i = 0; i < 2 && !ret; i++) {
		struct bench_outcome o;
		char end[64], words[200];

		ret = execute(b, i ? BENCH_HEAD : BENCH_BASE, name, &o, e);
		if (!ret && o.end == BENCH_INTERRUPTED) {
			ret = err_set(e, EINTR, "interrupted");
		} else if (!ret && o.end != BENCH_FINE) {
			bench_outcome_text(&o, end);
			bench_last_log_line(b, NULL, BENCH_BASE, words, sizeof(words));
			/* Kept, so that one can see. */
			return err_set(e, EIO,
				       "the %s fails in its first run (%s; %s/warmup.log): %s",
				       arm_name[i], end, b->opt->dir, words);
		}
		remove_run(b, name);
	}
	return ret;
}

int bench_next(struct bench *b, struct bench_pair *out, struct err *e)
{
	struct bench_pair p = { .number = b->pairs + 1, .complete = true };
	struct made *first = &b->made[b->nmade];
	enum bench_arm arm[BENCH_ARM_MAX];
	unsigned int n = 0;

	arms_in_order(b, b->pairs, arm);
	for (unsigned int i = 0; i < BENCH_ARM_MAX && !p.interrupted; i++) {
		enum bench_arm a = arm[i];
		int ret;

		if (a == BENCH_AGAIN && !b->opt->again)
			continue;
		run_name(p.path[a], sizeof(p.path[a]), a, p.number);
		first[n] = (struct made){ .pair = p.number,
					  .arm = a,
					  .unix_ns = clock_ns(CLOCK_REALTIME) };
		ret = execute(b, a, p.path[a], &p.outcome[a], e);
		if (ret)
			return ret;
		p.ran[a] = true;
		p.complete &= p.outcome[a].end == BENCH_FINE;
		p.interrupted = p.outcome[a].end == BENCH_INTERRUPTED;
		first[n++].outcome = p.outcome[a];
		if (!p.interrupted && p.outcome[a].end != BENCH_FINE)
			b->failures[a]++;
	}
	for (unsigned int i = 0; i < n; i++) {
		first[i].kept = p.complete;
		if (p.interrupted)
			remove_run(b, p.path[first[i].arm]);
		else if (!p.complete)
			set_aside(b, p.path[first[i].arm]);
	}
	if (!p.interrupted) {
		b->nmade += n;
		b->pairs++;
	}
	*out = p;
	return write_json(b, "running", e);
}

unsigned int bench_pairs_made(const struct bench *b)
{
	return b->pairs;
}

unsigned int bench_failures(const struct bench *b, enum bench_arm arm)
{
	return b->failures[arm];
}

void bench_last_log_line(const struct bench *b, const struct bench_pair *p, enum bench_arm arm,
			 char *text, size_t size)
{
	cleanup_free char *path = NULL;
	cleanup_fclose FILE *f = NULL;
	char tail[LOG_TAIL + 1], *line;
	size_t n;

	text[0] = '\0';
	if ((p ? asprintf(&path, "%s/%s%s.log", b->opt->dir, p->complete ? "" : "failed/",
			  p->path[arm])
	       : asprintf(&path, "%s/warmup.log", b->opt->dir)) < 0)
		return;
	f = fopen(path, "re");
	if (!f)
		return;
	/* A shorter log has no such place, and is read from its start. */
	fseek(f, -LOG_TAIL, SEEK_END);
	n = fread(tail, 1, LOG_TAIL, f);
	while (n && (tail[n - 1] == '\n' || tail[n - 1] == '\r'))
		n--;
	tail[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (tail[i] != '\n' && ((unsigned char)tail[i] < 0x20 || tail[i] == 0x7f))
			tail[i] = '?';
	line = strrchr(tail, '\n');
	snprintf(text, size, "%s", line ? line + 1 : tail);
}

int bench_close(struct bench *b, const char *how, struct err *e)
{
	return write_json(b, how, e);
}

/* -- the host ------------------------------------------------------------------------------------ */

int bench_counter_check(struct err *e)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_host = 1,
		.disabled = 1,
	};
	cleanup_close int fd =
		(int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return err_set(e, errno,
			       "not allowed to count instructions (perf_event_open: %s; "
			       "see /proc/sys/kernel/perf_event_paranoid)",
			       strerror(errno));
	if (errno == EBUSY)
		return err_set(e, errno,
			       "another event uses the PMU exclusively (perf_event_open: %s): end "
			       "the profiler that uses it",
			       strerror(errno));
	return err_set(e, errno,
		       "this host has no counter of guest instructions "
		       "(perf_event_open: %s)",
		       strerror(errno));
}
