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
 * processor time that the consumer's threads take. "two cores": by the clock, while another
 * thread fills the rings. --feed: 64 rings get 10,000 samples a second each for so long, one
 * of two a program's, and what has no room is lost.
 *
 * To compare with an older tree, copy this file, consumer_guest.h and kernel_text.h of this
 * folder and tests/unit/linux_mm_fixture.h there, `make build/bench/bench_consumer`, and see
 * bench_consumer.py.
 */
#include "base/clock.h"
#include "profile/live/pipeline.h"
#include "profile/perfdata/sink.h"
#include "tests/bench/consumer_guest.h"

#include <sched.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACKS 1000u /* of each kind */
#define MAX_VCPUS 64u
#define VCPUS 4u
#define RING_BYTES (4u << 20)
#define FEED_HZ 10000u
#define MAX_ROUNDS 31u
#define MAX_STACK 16384u

/* -- the machine ----------------------------------------------------------------- */

struct vm {
	struct gmem mem;
	struct ring ring[MAX_VCPUS];
	unsigned int vcpus;
};

const struct gmem *vm_memory(const struct vm *vm)
{
	return &vm->mem;
}

unsigned int vm_vcpus(const struct vm *vm)
{
	return vm->vcpus;
}

struct ring *vm_ring(struct vm *vm, unsigned int vcpu)
{
	return &vm->ring[vcpu];
}

void vm_end(struct vm *vm, enum vm_end_reason reason)
{
	(void)vm;
	(void)reason;
}

unsigned int vm_io_take(struct vm *vm, struct io_record *out, unsigned int max)
{
	(void)vm;
	(void)out;
	(void)max;
	return 0;
}

uint64_t vm_io_lost(struct vm *vm)
{
	(void)vm;
	return 0;
}

bool vm_event_is_armed(const struct vm *vm, unsigned int event)
{
	(void)vm;
	(void)event;
	return true;
}

void vm_set_slide(struct vm *vm, uint64_t slide)
{
	(void)vm;
	(void)slide;
}

void vm_set_task_plan(struct vm *vm, const struct capture_task_plan *plan)
{
	(void)vm;
	(void)plan;
}

void vm_boot_memory(const struct vm *vm, uint64_t *low, uint64_t *high)
{
	(void)vm;
	*low = *high = 0;
}

uint64_t vm_first_entry_ns(const struct vm *vm)
{
	(void)vm;
	return 1;
}

bool vm_is_collecting(const struct vm *vm)
{
	(void)vm;
	return true;
}

/* -- stacks of this program ------------------------------------------------------ */

#define CHAIN 14u /* and capture(), program_sample(), main() and three of the C library */
#define FUNCTIONS 1024u

typedef uint64_t chain_fn(const uint16_t *path, unsigned int left);
static chain_fn *const chain[FUNCTIONS];
static struct sample *captured;
static uint64_t stack_top;

static __attribute__((noinline)) uint64_t capture(void)
{
	static const unsigned char from[GPR_COUNT] = {
		[GPR_RAX] = REG_RAX, [GPR_RCX] = REG_RCX, [GPR_RDX] = REG_RDX, [GPR_RBX] = REG_RBX,
		[GPR_RSP] = REG_RSP, [GPR_RBP] = REG_RBP, [GPR_RSI] = REG_RSI, [GPR_RDI] = REG_RDI,
		[GPR_R8] = REG_R8,   [GPR_R9] = REG_R9,	  [GPR_R10] = REG_R10, [GPR_R11] = REG_R11,
		[GPR_R12] = REG_R12, [GPR_R13] = REG_R13, [GPR_R14] = REG_R14, [GPR_R15] = REG_R15,
	};
	struct sample *s = captured;
	ucontext_t c;
	uint64_t rsp;

	getcontext(&c);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		s->regs.gpr[i] = (uint64_t)c.uc_mcontext.gregs[from[i]];
	s->regs.rip = (uint64_t)c.uc_mcontext.gregs[REG_RIP];
	rsp = s->regs.gpr[GPR_RSP];
	s->stack_len = stack_top - rsp < MAX_STACK ? (uint32_t)(stack_top - rsp) : MAX_STACK;
	memcpy(s->stack, (const void *)(uintptr_t)rsp, s->stack_len);
	s->slice[0] = (struct sample_slice){ .va = rsp, .len = s->stack_len };
	return rsp;
}

/* Frames of different sizes; the calls are no tail calls. */
/* clang-format off */
#define ONE(n)                                                                           \
	static __attribute__((noinline)) uint64_t chain_##n(const uint16_t *path,        \
							    unsigned int left)           \
	{                                                                                \
		uint64_t local[0x##n % 13 + 1], r;                                       \
                                                                                         \
		local[0] = left;                                                         \
		__asm__ volatile("" : : "r"(local) : "memory");                          \
		r = left ? chain[*path](path + 1, left - 1) : capture();                 \
		return r * 0x##n + local[0];                                             \
	}
#define NAME(n) chain_##n,
#define X4(m, n, a, b, c, d) m(n##a) m(n##b) m(n##c) m(n##d)
#define X16(m, n) X4(m, n, 0, 1, 2, 3) X4(m, n, 4, 5, 6, 7) X4(m, n, 8, 9, a, b) X4(m, n, c, d, e, f)
#define X64(m, n, a, b, c, d) X16(m, n##a) X16(m, n##b) X16(m, n##c) X16(m, n##d)
#define X256(m, n)                                                                       \
	X64(m, n, 0, 1, 2, 3) X64(m, n, 4, 5, 6, 7) X64(m, n, 8, 9, a, b) X64(m, n, c, d, e, f)
X256(ONE, 1) X256(ONE, 2) X256(ONE, 3) X256(ONE, 4)
static chain_fn *const chain[FUNCTIONS] = { X256(NAME, 1) X256(NAME, 2) X256(NAME, 3) X256(NAME, 4) };
/* clang-format on */

static __attribute__((noinline)) struct sample *program_sample(unsigned int *seed)
{
	static volatile uint64_t keep;
	uint16_t path[CHAIN];

	captured = calloc(1, sizeof(*captured) + MAX_STACK);
	if (!captured)
		abort();
	captured->version = SAMPLE_VERSION;
	captured->mode = SAMPLE_USER;
	captured->nslices = 1;
	captured->regs.cs = 0x33;
	for (unsigned int i = 0; i < CHAIN; i++)
		path[i] = (uint16_t)(rand_r(seed) % FUNCTIONS);
	keep += chain[path[0]](path + 1, CHAIN - 1);
	return captured;
}

/* -- feeding --------------------------------------------------------------------- */

struct options {
	unsigned long samples, rounds, feed;
	const char *only;
};

static struct vm vm;
static struct cg *guest;
static struct target target;

static bool has_room(const struct ring *r, size_t len)
{
	size_t used =
		atomic_load(&((struct ring *)r)->head) - atomic_load(&((struct ring *)r)->tail);

	return r->size - used > 3 * (len + 64);
}

/* false: it was dropped. */
static bool put(unsigned int vcpu, const struct sample *from)
{
	struct sample *s = ring_reserve(&vm.ring[vcpu], sample_size(from));

	if (!s)
		return false;
	memcpy(s, from, sample_size(from));
	s->vcpu = (uint16_t)vcpu;
	s->reason = SAMPLE_TIMER;
	s->weight = 100000;
	s->time_ns = clock_mono_ns();
	ring_commit(&vm.ring[vcpu], sample_size(from));
	return true;
}

static void wait_empty(void)
{
	const struct timespec nap = { .tv_nsec = 100000 };

	for (unsigned int i = 0; i < vm.vcpus; i++)
		while (atomic_load(&vm.ring[i].head) != atomic_load(&vm.ring[i].tail))
			nanosleep(&nap, NULL);
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time of the other threads: the consumer's. */
static double others(void)
{
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

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

static struct pipeline *start(struct sink **sink, unsigned int vcpus, size_t ring_bytes)
{
	static const struct guest_options opt = { .files = { .system_debug = "", .cache = "" } };
	static const struct pipeline_options own;
	char *argv[] = { "bench_consumer", NULL };
	const struct profile_info info = { .event = { { .name = "cpu-clock" } },
					   .nevents = 1,
					   .vcpus = vcpus,
					   .hostname = "bench",
					   .argc = 1,
					   .argv = argv };
	const struct sink_perfdata_options out = { .path = "bench_consumer.data",
						   .single_file = true,
						   .no_buildid_cache = true };
	struct pipeline *p;
	struct err e = { 0 };

	vm.vcpus = vcpus;
	for (unsigned int i = 0; i < vcpus; i++)
		if (ring_init(&vm.ring[i], ring_bytes))
			abort();
	target = cg_target(guest);
	target_bind(&target, &vm.mem);
	if (sink_perfdata_create(sink, &out, &e) < 0 || (*sink)->ops->begin(*sink, &info, &e) < 0 ||
	    pipeline_start(&p, &(struct pipeline_parts){ &target, &vm, *sink }, &opt, &own, NULL,
			   &e) < 0) {
		fprintf(stderr, "bench_consumer: %s\n", e.text);
		exit(1);
	}
	return p;
}

static struct pipeline_stats finish(struct pipeline *p, struct sink *sink)
{
	static struct stack crash;
	struct pipeline_stats stats;
	struct err e = { 0 };

	if (pipeline_finish(p, &stats, &crash, &e) < 0) {
		fprintf(stderr, "bench_consumer: %s\n", e.text);
		exit(1);
	}
	sink->ops->destroy(sink);
	pipeline_destroy(p);
	for (unsigned int i = 0; i < vm.vcpus; i++)
		ring_deinit(&vm.ring[i]);
	symtab_destroy(target.symbols);
	orc_destroy(target.orc);
	return stats;
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
	double one[MAX_ROUNDS], two[MAX_ROUNDS];
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
	}
	stats = finish(p, sink);
	report(what, "one core", one, o->rounds);
	report(what, "two cores", two, o->rounds);
	printf("  %.1f frames each, %.1f %% whole, %.1f %% unnamed\n",
	       (double)stats.frames / (double)stats.samples,
	       100. * (double)stats.end[STACK_END_ROOT] / (double)stats.samples,
	       100. * (double)stats.unsymbolized / (double)stats.samples);
}

/* As vmm/source.c thins what comes to a ring that is nearly full. */
static unsigned int one_of(unsigned int vcpu)
{
	const struct ring *r = &vm.ring[vcpu];
	size_t free = r->size - (atomic_load(&((struct ring *)r)->head) -
				 atomic_load(&((struct ring *)r)->tail));
	unsigned int n = 1;

	for (size_t limit = r->size / 4; free <= limit && n < 64; limit /= 2)
		n *= 2;
	return n;
}

#define PARTS 10u /* of the time */

/* What is lost of what comes at a steady rate: at all, of each ring, and in each tenth of the time. */
static void bench_feed(struct sample **kernel, struct sample **programs, struct sample *first,
		       const struct options *o)
{
	static uint64_t lost[MAX_VCPUS], fed[MAX_VCPUS], at[PARTS];
	static unsigned int passed[MAX_VCPUS];
	double low = 100, high = 0;
	uint64_t all = 0, gone = 0, least = UINT64_MAX, most = 0, begin, steps = 0;
	struct sink *sink;
	struct pipeline *p = start(&sink, MAX_VCPUS, RING_BYTES);
	double cpu = others();

	put(0, first);
	wait_empty();
	begin = clock_mono_ns();
	while (steps < o->feed * 1000) {
		uint64_t now = clock_mono_ns(), due = (now - begin) / 1000000;
		const struct timespec nap = { .tv_nsec = 500000 };

		/* A step is a millisecond; those that we were too late for are made up. */
		for (; steps < due; steps++)
			for (unsigned int k = 0; k < FEED_HZ / 1000; k++)
				for (unsigned int v = 0; v < MAX_VCPUS; v++) {
					struct sample **s = (k + v) % 2 ? kernel : programs;

					fed[v]++;
					if (++passed[v] >= one_of(v) &&
					    put(v, s[(steps * 7 + k * 131 + v * 17) % STACKS])) {
						passed[v] = 0;
						continue;
					}
					lost[v]++;
					at[steps * PARTS / (o->feed * 1000) % PARTS]++;
				}
		nanosleep(&nap, NULL);
	}
	wait_empty();
	cpu = others() - cpu;
	for (unsigned int v = 0; v < MAX_VCPUS; v++) {
		all += fed[v];
		gone += lost[v];
		least = lost[v] < least ? lost[v] : least;
		most = lost[v] > most ? lost[v] : most;
	}
	finish(p, sink);
	/* The first tenth fills the rings. */
	for (unsigned int i = 1; i < PARTS; i++) {
		double share = 100. * (double)at[i] / ((double)all / PARTS);

		low = share < low ? share : low;
		high = share > high ? share : high;
	}
	printf("64 rings at %u Hz, %lu s: lost %.1f %% of %llu (a ring: %.1f to %.1f %%; "
	       "a tenth of the time: %.1f to %.1f %%)\n",
	       FEED_HZ, o->feed, 100. * (double)gone / (double)all, (unsigned long long)all,
	       100. * (double)least / (double)fed[0], 100. * (double)most / (double)fed[0], low,
	       high);
	printf("  consumer: %.0f %% of a core, %.0f samples for each second of it\n",
	       100. * cpu / ((double)steps / 1000), (double)(all - gone) / cpu);
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
	if (o.feed)
		bench_feed(kernel, programs, kernel[0], &o);
	return 0;
}
