/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples a second through the whole consumer: rings, tasks, mappings, unwinding, perf.data.
 *
 *	bench_consumer [--samples N] [--rounds N] [--feed SECONDS] [--only kernel|programs]
 *
 * The machine is rings and a piece of memory in which consumer_guest.h has made a Linux: its
 * tasks, modules and mappings, and this program with its libraries as the guest's program. The
 * stacks of programs are this program's own, with the bytes that capture would copy, through
 * functions taken at random; those of the kernel are of kernel_text.h, most of them in modules.
 *
 * Each line has the median of the rounds, and the slowest and fastest. "one core": by the
 * processor time that the consumer takes. "two cores": by the clock, while another thread fills
 * the rings. "drained": by the clock, from rings that were filled before, so that nobody else runs.
 * --feed: 64 rings get 10,000 samples a second each for so long, one of two a program's; they are
 * thinned as a vCPU does, and what has no room is lost. It fails where the weights are not the time.
 *
 * On a busy machine the clock says little: `chrt -f 5 bench_consumer` has the processors for itself,
 * but for a twentieth of each second, which Linux gives to others.
 *
 * To compare with an older tree, copy this file, consumer_*.h and kernel_text.h of this folder, and
 * linux_mm_fixture.h and machine_fixture.h of tests/unit there, `make build/bench/bench_consumer`, and see
 * bench_consumer.py.
 */
#include "tests/bench/consumer_machine.h"
#include "base/ring.h"

#include <sched.h>
#include <unistd.h>

#define VCPUS 4u
#define RING_BYTES (64u << 20)
#define FEED_RING_BYTES (4u << 20)
#define MAX_ROUNDS 31u

/* -- feeding --------------------------------------------------------------------- */

struct options {
	unsigned long samples, rounds, feed;
	const char *only;
};

static void feed_all(struct sample **s, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		const struct sample *from = s[i % STACKS];
		unsigned int vcpu = (unsigned int)(i % vm.vcpus);

		while (!has_room(&vm.ring[vcpu], sample_size(from)))
			sched_yield();
		put(vcpu, from);
	}
	wait_empty();
}

/* -- how long the sink waits ------------------------------------------------------ */

static struct {
	struct sink_ops ops; /* the sink's, but for sample() */
	int (*sample)(struct sink *s, const struct profile_sample *sample, struct err *e);
	uint64_t begin_ns, last_ns, first_ns,
		later_ns; /* the longest in the first second, and later */
} gap;

static int gap_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	uint64_t now = clock_mono_ns(),
		 *to = now - gap.begin_ns < NSEC_PER_SEC ? &gap.first_ns : &gap.later_ns;

	if (gap.last_ns && now - gap.last_ns > *to)
		*to = now - gap.last_ns;
	gap.last_ns = now;
	return gap.sample(s, sample, e);
}

/* No sample is under way. */
static void gap_watch(struct sink *sink)
{
	gap.ops = *sink->ops;
	gap.sample = gap.ops.sample;
	gap.ops.sample = gap_sample;
	gap.begin_ns = clock_mono_ns();
	sink->ops = &gap.ops;
}

/* The consumer does nothing else meanwhile. */
struct hold {
	struct pipeline_job job;
	atomic_bool held, let_go;
};

static void hold(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	struct hold *h = (struct hold *)job;

	(void)stats;
	atomic_store(&h->held, true);
	while (!atomic_load(&h->let_go))
		sched_yield();
}

/* Seconds that it takes to empty rings that were filled before. */
static double drain(struct pipeline *p, struct sample **s, unsigned long n)
{
	double took = 0;

	for (unsigned long i = 0; i < n;) {
		struct hold h = { .job = { hold } };
		unsigned int vcpu = (unsigned int)(i % vm.vcpus);
		double begin;

		pipeline_post(p, &h.job, PIPELINE_JOB_COMMAND);
		while (!atomic_load(&h.held))
			sched_yield();
		while (i < n && has_room(&vm.ring[vcpu], sample_size(s[i % STACKS]))) {
			put(vcpu, s[i % STACKS]);
			vcpu = (unsigned int)(++i % vm.vcpus);
		}
		begin = seconds(CLOCK_MONOTONIC);
		atomic_store(&h.let_go, true);
		wait_empty();
		took += seconds(CLOCK_MONOTONIC) - begin;
	}
	return took;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *what, const char *how, double *rate, size_t n)
{
	qsort(rate, n, sizeof(*rate), cmp_double);
	printf("%-30s %-9s %10.0f /s  (%.0f to %.0f)\n", what, how, rate[n / 2], rate[0],
	       rate[n - 1]);
	fflush(stdout);
}

static void bench(const char *what, struct sample **s, struct sample *first,
		  const struct options *o)
{
	double one[MAX_ROUNDS], two[MAX_ROUNDS], drained[MAX_ROUNDS];
	struct pipeline_stats stats;
	struct sink *sink;
	struct pipeline *p = start(&sink, VCPUS, RING_BYTES);

	/* One in the kernel tells where its tables are; then what is seen first is looked at. */
	put(0, first);
	wait_empty();
	feed_all(s, 4 * STACKS);
	for (size_t r = 0; r < o->rounds; r++) {
		double cpu = others(), clock = seconds(CLOCK_MONOTONIC);

		feed_all(s, o->samples);
		one[r] = (double)o->samples / (others() - cpu);
		two[r] = (double)o->samples / (seconds(CLOCK_MONOTONIC) - clock);
		drained[r] = (double)o->samples / drain(p, s, o->samples);
	}
	stats = finish(p, sink);
	report(what, "one core", one, o->rounds);
	report(what, "two cores", two, o->rounds);
	report(what, "drained", drained, o->rounds);
	printf("  %.1f frames each, %.1f %% whole, %.1f %% unnamed\n",
	       (double)stats.frames / (double)stats.samples,
	       100. * (double)stats.end[STACK_END_ROOT] / (double)stats.samples,
	       100. * (double)stats.unsymbolized / (double)stats.samples);
}

#define PARTS 10u /* number of parts of the time */

/* The result of a feed. */
struct feed {
	uint64_t fed[MAX_VCPUS], lost[MAX_VCPUS], at[PARTS], all, gone;
	/* time whose sample was lost, and which the next one stands for */
	uint64_t owed[MAX_VCPUS];
	unsigned int thinned[MAX_VCPUS];
	double took, cpu;
};

/* As source_sample() in vmm/capture/source.c. false: lost. */
static bool feed_one(struct feed *f, unsigned int v, const struct sample *s)
{
	uint64_t weight = PERIOD_NS + f->owed[v];

	f->fed[v]++;
	f->owed[v] = weight;
	if (++f->thinned[v] < ring_keep_one_of(&vm.ring[v])) {
		ring_drop(&vm.ring[v]);
		return false;
	}
	f->thinned[v] = 0;
	if (!put_weight(v, s, weight))
		return false;
	f->owed[v] = 0;
	return true;
}

/* Each vCPU gets one sample of two in a program. A step is a millisecond of the guests' time. */
static void feed_steadily(struct feed *f, struct sample **kernel, struct sample **programs,
			  uint64_t all_steps)
{
	const struct timespec nap = { .tv_nsec = 500000 };
	uint64_t begin = clock_mono_ns(), steps = 0;
	double cpu = others();

	while (steps < all_steps) {
		uint64_t due = (clock_mono_ns() - begin) / 1000000;

		/* Those that we were too late for are made up. */
		for (; steps < due && steps < all_steps; steps++)
			for (unsigned int k = 0; k < FEED_HZ / 1000; k++)
				for (unsigned int v = 0; v < MAX_VCPUS; v++) {
					struct sample **s = (k + v) % 2 ? kernel : programs;

					if (feed_one(f, v,
						     s[(steps * 7 + k * 131 + v * 17) % STACKS]))
						continue;
					f->lost[v]++;
					f->at[steps * PARTS / all_steps]++;
				}
		nanosleep(&nap, NULL);
	}
	f->took = (double)(clock_mono_ns() - begin) / 1e9;
	wait_empty();
	f->cpu = others() - cpu;
}

static void feed_report(const struct feed *f, const struct options *o)
{
	uint64_t least = UINT64_MAX, most = 0;
	double low = 100, high = 0, a_second = (double)(f->all - f->gone) / f->cpu;
	double owns = 1 - a_second / (MAX_VCPUS * FEED_HZ);

	for (unsigned int v = 0; v < MAX_VCPUS; v++) {
		least = f->lost[v] < least ? f->lost[v] : least;
		most = f->lost[v] > most ? f->lost[v] : most;
	}
	/* The first tenth fills the rings. */
	for (unsigned int i = 1; i < PARTS; i++) {
		double share = 100. * (double)f->at[i] / ((double)f->all / PARTS);

		low = share < low ? share : low;
		high = share > high ? share : high;
	}
	printf("64 rings at %u Hz for %lu s (fed in %.1f s): lost %.1f %% of %llu (a ring: %.1f to "
	       "%.1f %%; a tenth of the time: %.1f to %.1f %%)\n",
	       FEED_HZ, o->feed, f->took, 100. * (double)f->gone / (double)f->all,
	       (unsigned long long)f->all, 100. * (double)least / (double)f->fed[0],
	       100. * (double)most / (double)f->fed[0], low, high);
	printf("  consumer: %.0f %% of a core, %.0f samples for each second of it; with a core of "
	       "its own, as among 16: lost %.1f %%\n",
	       100. * f->cpu / f->took, a_second, owns > 0 ? 100. * owns : 0.);
	printf("  longest time between two samples at the sink: %.1f ms, %.1f ms in the first "
	       "second\n",
	       (double)gap.later_ns / 1e6, (double)gap.first_ns / 1e6);
}

/*
 * Measures the losses at a steady rate of samples. Returns false if the weights do not add up to
 * the time that was fed.
 */
static bool bench_feed(struct sample **kernel, struct sample **programs, struct sample *first,
		       const struct options *o)
{
	static struct feed f;
	struct pipeline_stats stats;
	struct sink *sink;
	struct pipeline *p = start(&sink, MAX_VCPUS, FEED_RING_BYTES);
	uint64_t owed = 0;

	put(0, first);
	wait_empty();
	gap_watch(sink);
	feed_steadily(&f, kernel, programs, o->feed * 1000);
	for (unsigned int v = 0; v < MAX_VCPUS; v++) {
		f.all += f.fed[v];
		f.gone += f.lost[v];
		owed += f.owed[v];
	}
	stats = finish(p, sink);
	feed_report(&f, o);
	printf("  weights: %.6f s, and %.6f s that no sample came to stand for, of %.6f s of all "
	       "vCPUs\n",
	       (double)(stats.weight - PERIOD_NS) / 1e9, (double)owed / 1e9,
	       (double)f.all * PERIOD_NS / 1e9);
	return stats.weight - PERIOD_NS + owed == f.all * PERIOD_NS;
}

static bool parse(struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		unsigned long *to = !strcmp(argv[i], "--samples")  ? &o->samples
				    : !strcmp(argv[i], "--rounds") ? &o->rounds
				    : !strcmp(argv[i], "--feed")   ? &o->feed
								   : NULL;

		if (i + 1 == argc)
			return false;
		if (to)
			*to = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--only"))
			o->only = argv[i + 1];
		else if (argv[i][0] == '-')
			return false;
	}
	return o->rounds && o->rounds <= MAX_ROUNDS;
}

int main(int argc, char **argv)
{
	static struct sample *programs[STACKS], *kernel[STACKS];
	struct options o = { .samples = 40000, .rounds = 7 };
	unsigned int seed = 1;

	if (!parse(&o, argc, argv)) {
		fprintf(stderr, "usage: see the beginning of tests/bench/bench_consumer.c\n");
		return 2;
	}
	guest = cg_create(&vm.mem, &stack_top, &seed);
	for (unsigned int i = 0; i < STACKS; i++) {
		programs[i] = program_sample(&seed);
		cg_of_task(guest, programs[i], i % CG_TASKS);
		kernel[i] = kt_sample(&seed);
		cg_of_task(guest, kernel[i], i % CG_TASKS);
	}
	if (!o.only || !strcmp(o.only, "kernel"))
		bench("kernel, depth 15, 100 modules", kernel, kernel[0], &o);
	if (!o.only || !strcmp(o.only, "programs"))
		bench("programs, depth 20", programs, kernel[0], &o);
	if (o.feed && !bench_feed(kernel, programs, kernel[0], &o)) {
		fprintf(stderr, "bench_consumer: these do not add up\n");
		return 1;
	}
	return 0;
}
