/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine for benchmarks of the whole consumer: rings, and memory in which consumer_guest.h has
 * built a Linux, and stacks of this program with the bytes that capture would copy, through
 * randomly chosen functions.
 */
#ifndef KVMPROF_TESTS_BENCH_CONSUMER_MACHINE_H
#define KVMPROF_TESTS_BENCH_CONSUMER_MACHINE_H

#include "profile/record/pipeline/pipeline.h"
#include "profile/format/perfdata/sink.h"
#include "tests/bench/consumer_guest.h"
#include "tests/unit/machine_fixture.h"

#include <ucontext.h>

#define STACKS 1000u /* number of stacks of each kind */
#define MAX_VCPUS MACHINE_MAX_VCPUS
#define FEED_HZ 10000u
#define PERIOD_NS (NSEC_PER_SEC / FEED_HZ)
#define MAX_STACK 16384u

/* -- stacks of this program ------------------------------------------------------ */

#define CHAIN 14u /* and capture(), program_sample(), main() and three functions of the C library */
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

/* -- rings ------------------------------------------------------------------------ */

static struct vm vm;
static struct cg *guest;
static struct target target;

static inline bool has_room(const struct ring *r, size_t len)
{
	size_t used = atomic_load(&r->front->head) - atomic_load(&r->back->tail);

	return r->size - used > 3 * (len + 64);
}

/* Puts a sample into the ring. Returns false if it was dropped. */
static inline bool put_weight(unsigned int vcpu, const struct sample *from, uint64_t weight)
{
	struct sample *s = ring_reserve(&vm.ring[vcpu], sample_size(from));

	if (!s)
		return false;
	memcpy(s, from, sample_size(from));
	s->vcpu = (uint16_t)vcpu;
	s->reason = SAMPLE_TIMER;
	s->weight = weight;
	s->time_ns = clock_mono_ns();
	ring_commit(&vm.ring[vcpu], sample_size(from));
	return true;
}

static inline bool put(unsigned int vcpu, const struct sample *from)
{
	return put_weight(vcpu, from, PERIOD_NS);
}

static inline void wait_empty(void)
{
	const struct timespec nap = { .tv_nsec = 100000 };

	for (unsigned int i = 0; i < vm.vcpus; i++)
		while (atomic_load(&vm.ring[i].front->head) != atomic_load(&vm.ring[i].back->tail))
			nanosleep(&nap, NULL);
}

static inline double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns the processor time of the other threads, which is the consumer's. */
static inline double others(void)
{
	return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

static inline struct pipeline *start(struct sink **sink, unsigned int vcpus, size_t ring_bytes)
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
	if (perfdata_sink_create(sink, &out, &e) < 0 || (*sink)->ops->begin(*sink, &info, &e) < 0 ||
	    pipeline_start(&p, &(struct pipeline_parts){ &target, &vm, *sink }, &opt, &own, NULL,
			   &e) < 0) {
		fprintf(stderr, "bench_consumer: %s\n", e.text);
		exit(1);
	}
	return p;
}

static inline struct pipeline_stats finish(struct pipeline *p, struct sink *sink)
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

#endif
