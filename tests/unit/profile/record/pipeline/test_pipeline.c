/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples that wait until it is known where the kernel is. The machine is two rings. */
#include "profile/record/pipeline/sample_queue.h"
#include "profile/record/pipeline/pipeline.h"

#include "tests/unit/guest_fixture.h"
#include "tests/unit/kallsyms_fixture.h"
#include "tests/unit/kslide_fixture.h"
#include "tests/unit/machine_fixture.h"
#include "vmm/gmem_alloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

#include <cmocka.h>

#define VCPUS 2u
#define MS UINT64_C(1000000)

/* A kernel that is being replaced, and the next one. */
#define OLD_CR3 UINT64_C(0x8000)
#define IDT UINT64_C(0x4000) /* from the start of the old kernel */
#define OLD_SLIDE UINT64_C(0x40000)
#define NEXT_CR3 UINT64_C(0x1000)
#define NEXT_PA UINT64_C(0x200000)

/* The samples that reach the sink: how many, in which order, and where the kernel() was. */
static struct {
	struct gf_sink s;
	struct sink_ops ops;
	uint64_t samples, out_of_order, last_ns, lost;
	uint64_t before_kernel, fail_at;
	unsigned int kernels, io_kernel; /* so many had been told at the last sample of event 1 */
	struct profile_sample last;	 /* its stack is gone */
	uint64_t last_ip;
	char order[400];
	bool kernel;
} seen;

static int take_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	seen.kernel = true;
	seen.kernels++;
	return gf_kernel(s, k, e);
}

static int take_sample(struct sink *s, const struct profile_sample *sample, struct err *e)
{
	(void)s;
	seen.samples++;
	if (sample->event == 1)
		seen.io_kernel = seen.kernels;
	seen.last = *sample;
	seen.last_ip = sample->stack->ip[0];
	if (strlen(seen.order) < sizeof(seen.order) - 1)
		strcat(seen.order, ".");
	seen.before_kernel += !seen.kernel;
	seen.out_of_order += sample->time_ns < seen.last_ns;
	seen.last_ns = sample->time_ns;
	return seen.samples == seen.fail_at ? err_set(e, ENOSPC, "the disk is full") : 0;
}

static int take_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e)
{
	(void)s;
	(void)cpu;
	(void)time_ns;
	(void)e;
	seen.lost += count;
	return 0;
}

/* "name@time(stack)", in the order of the calls, with samples as "." */
static int take_marker(struct sink *s, const struct profile_marker *m, struct err *e)
{
	char *at = seen.order + strlen(seen.order);

	(void)s;
	(void)e;
	snprintf(at, sizeof(seen.order) - (size_t)(at - seen.order), "%s:%s@%u(%u)",
		 markers_kind_name(m->kind), m->name, (unsigned int)m->time_ns,
		 m->stack ? m->stack->n : 0);
	return 0;
}

static struct vm vm;
static struct target target;
static struct pipeline *pipeline;
static struct markers markers;
static struct pipeline_options own;
static uint8_t next_reason, next_event; /* reason and event of the samples that put() makes */
static uint64_t next_exit_addr, next_exit_ns;
static uint64_t next_cr3; /* 0: the vCPU has no page tables */
static uint8_t file[FIX_FILE];

static int setup(void **state)
{
	(void)state;
	vm = (struct vm){ .vcpus = VCPUS, .boot_low = 0x3000000, .boot_high = 0x3010000 };
	memset(&target, 0, sizeof(target));
	memset(&seen, 0, sizeof(seen));
	memset(&own, 0, sizeof(own));
	next_reason = SAMPLE_TIMER;
	next_event = 0;
	next_exit_addr = next_exit_ns = next_cr3 = 0;
	machine_now_ns = 0;
	markers_init(&markers);
	gf_sink_init(&seen.s);
	seen.ops = *seen.s.sink.ops;
	seen.ops.kernel = take_kernel;
	seen.ops.sample = take_sample;
	seen.ops.lost = take_lost;
	seen.ops.marker = take_marker;
	seen.s.sink.ops = &seen.ops;
	for (unsigned int i = 0; i < VCPUS; i++)
		if (ring_init(&vm.ring[i], 16u << 20))
			return -1;
	fix_elf(file);
	if (gmem_alloc(&vm.mem, &(struct gmem_config){ .size = 4u << 20 }, NULL) ||
	    kimage_parse(&target.kernel, "fixture", file, FIX_FILE, NULL))
		return -1;
	target.elf = file;
	target.elf_len = FIX_FILE;
	target.is_linux = true;
	target.symbols = fix_symbols(true);
	return target.symbols ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	pipeline_destroy(pipeline);
	pipeline = NULL;
	markers_deinit(&markers);
	target_close(&target);
	gf_sink_deinit(&seen.s);
	for (unsigned int i = 0; i < VCPUS; i++)
		ring_deinit(&vm.ring[i]);
	gmem_alloc_free(&vm.mem);
	return 0;
}

static void start_on(const struct guest_options *opt)
{
	struct err e = { 0 };

	if (pipeline_start(&pipeline, &(struct pipeline_parts){ &target, &vm, &seen.s.sink }, opt,
			   &own, NULL, &e) < 0)
		fail_msg("%s", e.text);
}

static void start(bool moves)
{
	start_on(&(struct guest_options){ .moves = moves,
					  .files = { .system_debug = "", .cache = "" } });
}

/* A sample with so much stack; waits for room. */
static void put(unsigned int vcpu, uint64_t time_ns, uint64_t rip, uint32_t stack_len)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	struct sample *s;

	while (!(s = ring_reserve(&vm.ring[vcpu], sizeof(*s) + stack_len)))
		nanosleep(&nap, NULL);
	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->vcpu = (uint16_t)vcpu;
	s->reason = next_reason;
	s->event = next_event;
	s->exit_addr = next_exit_addr;
	s->exit_ns = next_exit_ns;
	s->mode = SAMPLE_KERNEL;
	s->time_ns = time_ns;
	s->weight = 1000;
	s->regs.rip = rip;
	s->regs.cs = 0x10;
	if (next_cr3) {
		s->regs.cr0 = UINT64_C(1) << 31;
		s->regs.cr3 = next_cr3;
		s->idt_base = KF_TEXT + IDT;
		s->regs.cr4 = UINT64_C(1) << 5;
		s->regs.efer = 0x500;
	}
	s->regs.gpr[GPR_RSP] = FIX_TEXT - 0x100000;
	if (stack_len) {
		s->nslices = 1;
		s->slice[0] = (struct sample_slice){ FIX_TEXT - 0x100000, 0, stack_len };
		memset(s->stack, 0, stack_len);
	}
	s->stack_len = stack_len;
	ring_commit(&vm.ring[vcpu], sizeof(*s) + stack_len);
}

static int finish(struct pipeline_stats *stats, struct err *e)
{
	struct stack crash;

	return pipeline_finish(pipeline, stats, &crash, e);
}

/* Nothing tells where the kernel is: at the end all that was held is written, without names. */
static void all_held_until_the_end(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	start(true);
	for (uint64_t i = 0; i < 1000; i++)
		put(i % 3 == 0, 1000 + i, i % 2 ? 0x3000100 : FIX_TEXT + 0x100, (uint32_t)(i % 50));
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.held, 1000);
	assert_int_equal(stats.samples, 1000);
	assert_int_equal(stats.weight, 1000000);
	assert_int_equal(seen.samples, 1000);
	assert_int_equal(seen.before_kernel, 0);
	assert_non_null(strstr(gf_log(&seen.s), "kernel 0 0\n"));
}

/* More than may wait: from then on nothing does. */
static void no_more_can_be_held(void **state)
{
	const uint32_t len = SAMPLE_MAX_SLICE;
	/* With 8 bytes in front of each. */
	const uint64_t max = SAMPLE_QUEUE_MAX / (8 + sizeof(struct sample) + len);
	struct pipeline_stats stats;

	(void)state;
	start(true);
	for (uint64_t i = 0; i < max + 500; i++)
		put(0, 1000 + i, FIX_TEXT + 0x100, len);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_in_range(stats.held, max - 2, max);
	assert_int_equal(stats.samples, max + 500);
	assert_int_equal(seen.samples, max + 500);
	assert_int_equal(seen.before_kernel | seen.out_of_order, 0);
}

static void put_by_tables(uint64_t time_ns, uint64_t rip, uint64_t cr3)
{
	next_cr3 = cr3;
	put(0, time_ns, rip, 64);
	next_cr3 = 0;
}

/* Page tables that map the kernel's first 2 MiB to pa. */
static void map_kernel(uint64_t cr3, uint64_t pa)
{
	const uint64_t entry[] = { (cr3 + 0x1000) | 7, (cr3 + 0x2000) | 7, pa | 0x87 };

	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(gmem_write(&vm.mem,
					    cr3 + i * 0x1000 + (KF_TEXT >> (39 - 9 * i) & 511) * 8,
					    &entry[i], 8),
				 0);
}

static void put_kernel(uint64_t pa, uint64_t slide)
{
	struct kf_shape shape = kf_shapes[3];
	struct kf_places places;
	struct buf image;

	shape.slide = slide;
	buf_init(&image);
	kf_build(&shape, &image, &places);
	assert_int_equal(gmem_write(&vm.mem, pa + slide, image.data, image.len), 0);
	buf_deinit(&image);
}

/* The old kernel has handlers, but no names any more. The next one is complete. */
static void put_kernels(void)
{
	const uint32_t gate[] = { (KF_TEXT + 0x100) & 0xffff, (KF_TEXT + 0x100) & 0xffff0000,
				  KF_TEXT >> 32 };

	target_close(&target);
	target_open_running(&target, "guest");
	map_kernel(OLD_CR3, 0);
	assert_int_equal(gmem_write(&vm.mem, IDT + 14 * 16, gate, sizeof(gate)), 0);
	map_kernel(NEXT_CR3, NEXT_PA);
	put_kernel(NEXT_PA, 0);
}

static void start_running(void)
{
	start_on(&(struct guest_options){ .runs = true,
					  .files = { .system_debug = "", .cache = "" } });
}

/* Samples that waited while the first kernel could not be read are not named by the next kernel. */
static void first_read_fails(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	put_kernels();
	machine_now_ns = 1; /* reads take no time */
	start_running();
	put_by_tables(1000 * MS, KF_TEXT + 0x100, OLD_CR3);
	put_by_tables(1100 * MS, KF_TEXT + 0x100, NEXT_CR3);
	put_by_tables(1200 * MS, 0x100100, NEXT_CR3);
	put_by_tables(1300 * MS, KF_TEXT + 0x100, NEXT_CR3);
	put_by_tables(1301 * MS, KF_TEXT + 0x100, NEXT_CR3);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.in_doubt, 2);
	assert_int_equal(seen.lost, 2);
	assert_int_equal(stats.samples, 3);
	assert_int_equal(seen.samples, 3);
	assert_int_equal(stats.unsymbolized, 1); /* that of the decompressor */
	assert_string_equal(stats.kernel[0].release, "6.1.0-kf");
}

/* A request belongs to the kernel whose code brought it, also if its record is read late. */
static void request_of_the_kernel_before(void **state)
{
	const struct io_record log = { .type = IO_READ,
				       .token = UINT64_C(1) << 48 | 1,
				       .bytes = 4096,
				       .complete_ns = 1001 * MS };
	struct pipeline_stats stats;

	(void)state;
	put_kernels();
	put_kernel(0, OLD_SLIDE);
	own.io[1] = PIPELINE_IO_BYTES;
	vm.io = &log;
	vm.nio = 1;
	put_by_tables(1000 * MS, KF_TEXT + OLD_SLIDE + 0x100, OLD_CR3);
	next_reason = SAMPLE_IO;
	next_exit_addr = log.token;
	put_by_tables(1001 * MS, KF_TEXT + OLD_SLIDE + 0x100, OLD_CR3);
	next_reason = SAMPLE_TIMER;
	put_by_tables(1100 * MS, KF_TEXT + 0x100, NEXT_CR3);
	start_running();
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.kernels, 2);
	assert_int_equal(seen.kernels, 2);
	assert_int_equal(stats.io.records, 1);
	assert_int_equal(stats.event_weight[1], 4096);
	assert_int_equal(stats.kernel[0].samples, 2);
	assert_int_equal(seen.io_kernel, 1);
}

/* A decompressor that is interpreted takes many minutes: twenty of them have room. */
static void a_long_decompression_is_held(void **state)
{
	const uint64_t n = 20 * 60 * 997;
	struct pipeline_stats stats;

	(void)state;
	start(true);
	for (uint64_t i = 0; i < n; i++)
		put(0, 1000 + i, 0x3000100, 64);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.held, n);
	assert_int_equal(stats.weight, n * 1000);
	assert_int_equal(seen.samples, n);
	assert_int_equal(seen.before_kernel | seen.out_of_order, 0);
}

static void nothing_is_held_of_a_kernel_that_stays(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	start(false);
	for (uint64_t i = 0; i < 100; i++)
		put(0, 1000 + i, FIX_SYSCALL + 1, 64);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.samples, 100);
	assert_int_equal(stats.unsymbolized, 0);
}

/* The output for a vCPU whose registers are lost. */
static void last_sample_of_each_vcpu(void **state)
{
	struct pipeline_stats stats;
	struct stack crash;

	(void)state;
	start(false);
	for (uint64_t i = 0; i < 10; i++)
		put(0, 1000 + i, FIX_SYSCALL + i, 64);
	assert_int_equal(pipeline_finish(pipeline, &stats, &crash, NULL), 0);
	assert_int_equal(pipeline_last(pipeline, 0)->time_ns, 1009);
	assert_int_equal(pipeline_last(pipeline, 0)->stack.ip[0], FIX_SYSCALL + 9);
	assert_int_equal(pipeline_last(pipeline, 0)->stack.exact[0], 1);
	assert_int_equal(pipeline_last(pipeline, 1)->time_ns, 0);
}

static void samples_lost(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	start(false);
	ring_drop(&vm.ring[1]);
	ring_drop(&vm.ring[1]);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.dropped, 2);
	assert_int_equal(seen.lost, 2);
}

/* The machine is asked to end, the rest is counted but not written, the first error told. */
static void disk_that_is_full(void **state)
{
	struct pipeline_stats stats;
	struct err e = { 0 };

	(void)state;
	start(true);
	seen.fail_at = 10;
	for (uint64_t i = 0; i < 100; i++)
		put(0, 1000 + i, FIX_TEXT + 0x100, 64);
	assert_int_equal(finish(&stats, &e), -ENOSPC);
	assert_string_equal(e.text, "the disk is full");
	assert_int_equal(vm.end, VM_END_ERROR);
	assert_int_equal(seen.samples, 10);
	assert_int_equal(stats.samples, 100);
}

/* Each in its place between the samples, those of breakpoints with their stacks. */
static void markers_in_order(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	own.markers = &markers;
	own.breakpoint_name[1] = "fix_syscall";
	own.breakpoint_kind[1] = MARKER_START;
	markers_add(&markers, MARKER_CONSOLE, "early", 5, 5, 0);
	markers_add(&markers, MARKER_CONTROL, "late", 4, 1005, 0);
	markers_add(&markers, MARKER_DELAY, "between", 7, 25, 0);
	next_reason = SAMPLE_MARKER;
	next_event = 1;
	put(1, 15, FIX_SYSCALL + 1, 64);
	next_reason = SAMPLE_TIMER;
	next_event = 0;
	put(0, 10, FIX_SYSCALL + 1, 64);
	put(0, 20, FIX_SYSCALL + 1, 64);
	put(0, 30, FIX_SYSCALL + 1, 64);
	start(false);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_string_equal(seen.order, "console:early@5(0).start:fix_syscall@15(1)."
					"delay:between@25(0).control:late@1005(0)");
	assert_int_equal(stats.samples, 3); /* a marker is none */
	assert_int_equal(stats.weight, 3000);
	assert_int_equal(markers.added, 4);
}

/*
 * Packets and requests in one log: each is weighed by its own events, with the stack of who brought it, and told
 * apart. What was received, what was lost, and what nobody brought is counted and in no event.
 */
static void packets_and_requests(void **state)
{
	static const struct io_record log[] = {
		{ .type = IO_RECEIVED,
		  .bytes = 90,
		  .submit_ns = 5,
		  .complete_ns = 6,
		  .raised_ns = 7 },
		{ .type = IO_SENT, .token = UINT64_C(2) << 48 | 1, .bytes = 60, .complete_ns = 9 },
		{ .type = IO_READ,
		  .token = UINT64_C(1) << 48 | 1,
		  .bytes = 4096,
		  .complete_ns = 9 },
		{ .type = IO_SENT, .token = UINT64_C(2) << 48 | 1, .bytes = 7, .status = IO_ERROR },
		{ .type = IO_SENT, .bytes = 100, .complete_ns = 20 },
		{ .type = IO_RECEIVED, .bytes = 1, .status = IO_ERROR },
		{ .type = IO_RAISED, .complete_ns = 10 },
	};
	struct io_requests packets, requests;
	struct pipeline_stats stats;

	(void)state;
	io_stages_init(&packets);
	io_stages_init(&requests);
	own.io[0] = PIPELINE_NET_BYTES;
	own.io[2] = PIPELINE_IO_BYTES;
	own.packets = &packets;
	own.requests = &requests;
	vm.io = log;
	vm.nio = sizeof(log) / sizeof(log[0]);
	vm.io_lost = 3;
	vm.packets_lost = 4;
	next_reason = SAMPLE_IO;
	next_exit_addr = UINT64_C(2) << 48 | 1;
	put(1, 1000, FIX_SYSCALL + 1, 64);
	next_exit_addr = UINT64_C(1) << 48 | 1;
	put(0, 2000, FIX_TEXT + 0x100, 64);
	start(false);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_true(stats.net.wanted && stats.io.wanted);
	assert_int_equal(stats.net.records, 5);
	assert_int_equal(stats.net.failed, 2);
	assert_int_equal(stats.net.unknown, 1);
	assert_int_equal(stats.net.unknown_bytes, 100);
	assert_int_equal(stats.net.lost, 4);
	assert_int_equal(stats.io.records, 1);
	assert_int_equal(stats.io.lost, 3);
	assert_int_equal(stats.event_weight[0], 60);
	assert_int_equal(stats.event_weight[2], 4096);
	assert_int_equal(seen.samples, 2);
	assert_int_equal(packets.n, 5);
	assert_int_equal(packets.list[0].raised_ns, 7);
	assert_int_equal(packets.list[0].r.bytes, 90);
	assert_int_equal(packets.list[1].vcpu, 1);
	assert_int_equal(requests.n, 1);
	assert_int_equal(requests.list[0].r.bytes, 4096);
	io_stages_deinit(&packets);
	io_stages_deinit(&requests);
}

/* How long an exit was worked for reaches the profile; other samples have nothing of the kind. */
static void times_of_exits(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	next_exit_ns = 77;
	next_reason = SAMPLE_EXIT;
	put(0, 1000, FIX_SYSCALL + 1, 64);
	start(false);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(seen.last.exit_ns, 77);
	assert_int_equal(seen.last_ip, FIX_SYSCALL + 1);
}

/* Samples that were taken to find the kernel are neither written nor held. */
static void looks_are_not_written(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	start(true);
	next_reason = SAMPLE_LOOK;
	for (uint64_t i = 0; i < 50; i++)
		put(0, 1000 + i, FIX_TEXT + 0x100, 64);
	next_reason = SAMPLE_TIMER;
	put(0, 2000, FIX_TEXT + 0x100, 64);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.held, 1);
	assert_int_equal(stats.samples, 1);
	assert_int_equal(seen.samples, 1);
}

static void so_many_samples(void **state)
{
	struct pipeline_stats stats;

	(void)state;
	own.max_samples = 7;
	start(false);
	for (uint64_t i = 0; i < 50; i++)
		put(0, 1000 + i, FIX_SYSCALL + 1, 64);
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(vm.end, VM_END_SAMPLES);
	assert_int_equal(stats.samples, 7);
	assert_int_equal(seen.samples, 7);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct {
	struct pipeline_job job;
	pthread_t thread;
	uint64_t samples;
	atomic_bool done;
} work;

static void do_work(struct pipeline_job *job, const struct pipeline_stats *stats)
{
	assert_ptr_equal(job, &work.job);
	work.thread = pthread_self();
	work.samples = stats->samples;
	atomic_store(&work.done, true);
}

/* A job runs on the consumer's thread, also while nothing comes, one after the other. */
static void jobs(void **state)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	struct pipeline_stats stats;
	pthread_t first = pthread_self();

	(void)state;
	start(false);
	work.job.run = do_work;
	for (unsigned int i = 0; i < 5; i++) {
		uint64_t last = 0;

		for (unsigned int k = 0; k < 10 * i; k++)
			put(0, 1000 + 100 * i + k, FIX_SYSCALL + 1, 64);
		/* Until it has seen all of them: it does not wait for the rings to be empty. */
		do {
			atomic_store(&work.done, false);
			pipeline_post(pipeline, &work.job, PIPELINE_JOB_COMMAND);
			while (!atomic_load(&work.done))
				nanosleep(&nap, NULL);
			assert_true(work.samples >= last);
			last = work.samples;
		} while (last < 5 * i * (i + 1));
		assert_int_equal(last, 5 * i * (i + 1));
		assert_false(pthread_equal(work.thread, pthread_self()));
		if (i)
			assert_true(pthread_equal(work.thread, first));
		first = work.thread;
	}
	assert_int_equal(finish(&stats, NULL), 0);
	assert_int_equal(stats.samples, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_held_until_the_end),
		T(no_more_can_be_held),
		T(a_long_decompression_is_held),
		T(nothing_is_held_of_a_kernel_that_stays),
		T(first_read_fails),
		T(request_of_the_kernel_before),
		T(last_sample_of_each_vcpu),
		T(samples_lost),
		T(disk_that_is_full),
		T(markers_in_order),
		T(packets_and_requests),
		T(times_of_exits),
		T(looks_are_not_written),
		T(so_many_samples),
		T(jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
