/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events on one vCPU: which signal is whose, when an exit becomes a sample, what it weighs. */
#include "vmm/machine.h"
#include "vmm/capture/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/perf_mock.h"
#include "tests/unit/vcpu_fixture.h"
#include "vmm/capture/source_exit.h"
#include "vmm/vcpu_thread.h"

#define STACK UINT64_C(0xffffc90000010000)
#define FAR UINT64_C(1000000000000000) /* ns: no timer fires in here */

static struct fake f;
static bool held; /* what next() has returned is still in the ring */

static int setup(void **state)
{
	(void)state;
	mock_reset();
	held = false;
	fake_init(&f, 1 << 20);
	atomic_init(&f.vm->control.collect, true);
	atomic_init(&f.v->collect, true);
	signal(VCPU_KICK_SIGNAL, SIG_IGN);
	fake_map_range(&f, STACK, 16384);
	f.v->run->s.regs.regs.rsp = STACK + 0x3f00;
	f.v->run->s.regs.regs.rip = 0xffffffff81000123;
	f.v->run->s.regs.regs.rflags = 0x202;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	source_stop_all(f.v);
	assert_int_equal(mock_open_now(), 0);
	fake_deinit(&f);
	return 0;
}

static void add(const struct vm_event *ev)
{
	unsigned int i = f.vm->cfg.nevents++;

	f.vm->cfg.event[i] = *ev;
	atomic_init(&f.vm->control.armed[i], true);
	atomic_init(&f.vm->control.period[i], ev->period);
}

static void add_counter(enum vm_event_kind kind, uint64_t period)
{
	add(&(struct vm_event){ .kind = kind,
				.period = period,
				.counter = { .type = PERF_TYPE_HARDWARE, .exclude_host = true } });
}

static void add_exits(uint64_t exits, uint64_t period)
{
	add(&(struct vm_event){ .kind = VM_EVENT_EXIT, .period = period, .exits = exits });
}

static void start(void)
{
	struct err e = { 0 };

	atomic_init(&f.vm->control.stack_max, 16384);
	assert_int_equal(source_start_all(f.v, &e), 0);
}

static void signalled(int code, int fd)
{
	siginfo_t info = { .si_code = code };

	info.si_fd = fd;
	source_signalled(f.v, &info);
}

/* The next sample, or NULL; it stays valid until the next call. */
static const struct sample *next(void)
{
	size_t len;

	if (held)
		ring_release(&f.v->ring);
	held = ring_peek(&f.v->ring, &len) != NULL;
	return ring_peek(&f.v->ring, &len);
}

static void no_sample(void)
{
	assert_null(next());
}

static void signals_find_their_source(void **state)
{
	const struct sample *s;

	(void)state;
	add_counter(VM_EVENT_PERF, 1000);
	add_counter(VM_EVENT_CPU, 500);
	add_counter(VM_EVENT_PERF, 10);
	start();
	assert_int_equal(mock.n, 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_true(mock.at[i].enabled && mock.at[i].signo == VCPU_KICK_SIGNAL);
	/* signals of no counter, and of descriptors that are no counters: nothing is due */
	signalled(POLL_IN, MOCK_FD + 3);
	signalled(POLL_IN, 0);
	signalled(SI_TKILL, MOCK_FD);
	source_take_all(f.v);
	no_sample();
	/* a signal of the last one, in both forms */
	mock.at[2].value = 10;
	signalled(POLL_IN, MOCK_FD + 2);
	source_take_all(f.v);
	s = next();
	assert_non_null(s);
	assert_int_equal(s->event, 2);
	assert_int_equal(s->reason, SAMPLE_PMU);
	assert_int_equal(s->weight, 10);
	mock.at[2].value = 40;
	signalled(POLL_HUP, MOCK_FD + 2);
	source_take_all(f.v);
	s = next();
	assert_non_null(s);
	assert_int_equal(s->weight, 30);
	assert_int_equal(s->overruns, 2);
	assert_int_equal(f.v->stats.overruns, 2);
	/* CPU time is a time */
	mock.at[1].value = 500;
	signalled(POLL_IN, MOCK_FD + 1);
	source_take_all(f.v);
	s = next();
	assert_non_null(s);
	assert_int_equal(s->event, 1);
	assert_int_equal(s->reason, SAMPLE_TIMER);
	/* two at once are two samples */
	mock.at[0].value = 1000;
	mock.at[1].value = 1000;
	signalled(POLL_IN, MOCK_FD);
	signalled(POLL_IN, MOCK_FD + 1);
	source_take_all(f.v);
	assert_int_equal(next()->event, 0);
	assert_int_equal(next()->event, 1);
	no_sample();
}

/* However often a signal comes before the sample is taken, and after: it is one sample. */
static void signal_storm(void **state)
{
	(void)state;
	add_counter(VM_EVENT_PERF, 1000);
	start();
	mock.at[0].value = 5500;
	for (int i = 0; i < 100; i++)
		signalled(POLL_IN, MOCK_FD);
	source_take_all(f.v);
	assert_int_equal(next()->weight, 5000);
	for (int i = 0; i < 100; i++) {
		signalled(POLL_IN, MOCK_FD); /* they were on the way already */
		source_take_all(f.v);
	}
	no_sample();
	assert_int_equal(f.v->stats.overruns, 4);
	assert_int_equal(f.v->stats.samples, 1);
}

/* The queue of real-time signals was full: it is some counter's, and nobody knows whose. */
static void signal_without_a_source(void **state)
{
	siginfo_t info = { .si_signo = SIGIO, .si_code = SI_KERNEL };

	(void)state;
	add_counter(VM_EVENT_PERF, 1000);
	add_counter(VM_EVENT_PERF, 1000);
	start();
	mock.at[1].value = 1000;
	source_signalled(f.v, &info);
	source_take_all(f.v);
	assert_int_equal(next()->event, 1);
	no_sample();
}

static void disarmed_and_armed_again(void **state)
{
	(void)state;
	add_counter(VM_EVENT_PERF, 1000);
	start();
	atomic_store(&f.vm->control.armed[0], false);
	atomic_fetch_add(&f.vm->control.changes, 1);
	source_update_all(f.v);
	assert_int_equal(mock_open_now(), 0);
	mock.at[0].value = 5000;
	signalled(POLL_IN, MOCK_FD); /* was under way */
	source_take_all(f.v);
	no_sample();
	atomic_store(&f.vm->control.armed[0], true);
	atomic_store(&f.vm->control.period[0], 70);
	atomic_fetch_add(&f.vm->control.changes, 1);
	source_update_all(f.v);
	assert_int_equal(mock_open_now(), 1);
	assert_int_equal(mock.at[1].attr.sample_period, 70);
	mock.at[1].value = 70;
	signalled(POLL_IN, MOCK_FD + 1);
	source_take_all(f.v);
	assert_int_equal(next()->weight, 70);
}

/* A counter whose periods the kernel chose gets one of its own. */
static void period_instead_of_a_rate(void **state)
{
	(void)state;
	add_counter(VM_EVENT_PERF, 997);
	f.vm->cfg.event[0].counter.freq = true;
	start();
	assert_true(mock.at[0].attr.freq && mock.at[0].attr.sample_freq == 997);
	atomic_store(&f.vm->control.period[0], 5000);
	source_update_all(f.v);
	assert_false(mock.at[1].attr.freq);
	assert_int_equal(mock.at[1].attr.sample_period, 5000);
	mock.at[1].value = 5000;
	signalled(POLL_HUP, MOCK_FD + 1);
	source_take_all(f.v);
	assert_int_equal(next()->weight, 5000);
}

/* A period that has passed before a change is counted, whether its signal has come or not. */
static void changed_behind_the_deadline(void **state)
{
	(void)state;
	add_counter(VM_EVENT_PERF, 1000);
	start();
	mock.at[0].value = 3500;
	atomic_store(&f.vm->control.period[0], 70);
	atomic_fetch_add(&f.vm->control.changes, 1);
	source_update_all(f.v);
	assert_int_equal(next()->weight, 3000);
	no_sample();
	/* Nothing has passed: nothing is there. */
	mock.at[1].value = 69;
	atomic_store(&f.vm->control.armed[0], false);
	source_update_all(f.v);
	no_sample();
	assert_int_equal(f.v->stats.samples, 1);
}

/* A counter that cannot be opened on the vCPU's thread ends the machine with a reason. */
static void refused_on_the_thread(void **state)
{
	struct err e = { 0 };

	(void)state;
	add_counter(VM_EVENT_PERF, 1000);
	mock.refuse = EACCES;
	assert_int_equal(source_start_all(f.v, &e), -EACCES);
	assert_non_null(strstr(e.text, "vCPU 0: event 0: not allowed (EACCES)"));
}

static void watch_only_without_wall(void **state)
{
	siginfo_t watch = { .si_code = SI_TIMER };

	(void)state;
	add_exits(VM_EXIT_ANY, 1);
	add(&(struct vm_event){ .kind = VM_EVENT_WALL, .period = FAR });
	start();
	assert_false(f.v->watch.armed);
	atomic_store(&f.vm->control.armed[1], false);
	source_update_all(f.v);
	assert_true(f.v->watch.armed);
	/* halted with interrupts off: each look brings the end nearer, and is no sample */
	watch.si_value.sival_int = VM_MAX_EVENTS;
	source_signalled(f.v, &watch);
	source_take_all(f.v);
	no_sample();
	assert_int_equal(f.v->stats.offline, 0);
	atomic_store(&f.vm->control.armed[1], true);
	source_update_all(f.v);
	assert_false(f.v->watch.armed);
}

#define EXITED UINT64_C(1000000)
#define HANDLED UINT64_C(9000000)

/* KVM_RUN has returned 0, and what it returned for was worked for. */
static void exited(void)
{
	source_exit_begin(f.v, EXITED);
	if (f.v->exit_noted)
		source_exit_handled(f.v, HANDLED);
}

static void exit_io(uint16_t port)
{
	f.v->run->exit_reason = KVM_EXIT_IO;
	f.v->run->io.port = port;
	exited();
}

static void exits_are_taken_when_complete(void **state)
{
	const struct sample *s;

	(void)state;
	add_exits(VM_EXIT_BIT(KVM_EXIT_IO), 1);
	start();
	exit_io(0x3f8);
	no_sample(); /* the registers are not complete */
	assert_int_equal(f.v->run->immediate_exit, 1);
	f.v->run->s.regs.regs.rip += 2; /* KVM_RUN was entered, and has finished the instruction */
	f.v->run->exit_reason = KVM_EXIT_INTR;
	source_take_all(f.v);
	s = next();
	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_EXIT);
	assert_int_equal(s->exit, KVM_EXIT_IO);
	assert_int_equal(s->exit_addr, 0x3f8);
	assert_int_equal(s->weight, 1);
	assert_int_equal(s->regs.rip, 0xffffffff81000125);
	assert_int_equal(s->stack_len, 0x100);
	assert_int_equal(s->time_ns, HANDLED);
	assert_int_equal(s->exit_ns, HANDLED - EXITED);
	/* another kind does not count */
	f.v->run->immediate_exit = 0;
	f.v->run->exit_reason = KVM_EXIT_MMIO;
	exited();
	assert_int_equal(f.v->run->immediate_exit, 0);
	no_sample();
}

static void exits_that_need_no_completion(void **state)
{
	static const uint32_t kind[] = { KVM_EXIT_DEBUG, KVM_EXIT_HLT, KVM_EXIT_INTERNAL_ERROR,
					 KVM_EXIT_SHUTDOWN, 200 };
	const struct sample *s;

	(void)state;
	add_exits(VM_EXIT_ANY, 1);
	start();
	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		f.v->run->exit_reason = kind[i];
		exited();
		s = next();
		assert_non_null(s);
		assert_int_equal(s->exit, kind[i]);
		assert_int_equal(s->exit_addr, 0);
		assert_int_equal(f.v->run->immediate_exit, 0);
		/* less what the sample itself took */
		assert_int_equal(s->time_ns, HANDLED);
		assert_true(s->exit_ns && s->exit_ns < HANDLED - EXITED);
	}
	assert_false(f.v->exit_noted);
}

/* A sample that was taken before its exit was handled is not seen before that; nor is what follows. */
static void held_until_the_exit_is_handled(void **state)
{
	const struct sample *s;

	(void)state;
	add_exits(VM_EXIT_ANY, 1);
	add_exits(VM_EXIT_BIT(KVM_EXIT_DEBUG), 1);
	start();
	f.v->run->exit_reason = KVM_EXIT_DEBUG;
	source_exit_begin(f.v, EXITED);
	assert_true(f.v->exit_noted);
	assert_true(capture_sample(f.v, &(struct capture_cause){ .now = EXITED + 1,
								 .reason = SAMPLE_MARKER }));
	no_sample();
	f.v->run->s.regs.regs.rip += 2; /* as handling it may do: the samples are of before */
	source_exit_handled(f.v, HANDLED);
	for (unsigned int i = 0; i < 2; i++) {
		s = next();
		assert_non_null(s);
		assert_int_equal(s->reason, SAMPLE_EXIT);
		assert_int_equal(s->event, i);
		assert_int_equal(s->time_ns, HANDLED);
		assert_true(s->exit_ns && s->exit_ns < HANDLED - EXITED);
		assert_int_equal(s->regs.rip, f.v->run->s.regs.regs.rip - 2);
	}
	s = next();
	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_MARKER);
	assert_int_equal(s->time_ns, EXITED + 1);
	assert_int_equal(s->exit_ns, 0);
	no_sample();
}

/* Samples of one KVM_RUN are in the order of their times: an exit's is when it was handled. */
static void exits_come_before_other_samples(void **state)
{
	const struct sample *s;

	(void)state;
	add(&(struct vm_event){ .kind = VM_EVENT_WALL, .period = 1 });
	add_exits(VM_EXIT_ANY, 1);
	start();
	exit_io(0x3f8);
	f.v->source[0].due = 1;
	source_take_all(f.v);
	s = next();
	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_EXIT);
	s = next();
	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_TIMER);
	assert_true(s->time_ns > HANDLED);
	assert_int_equal(s->exit_ns, 0);
}

static void addresses_of_exits(void **state)
{
	struct kvm_run *run = f.v->run;

	(void)state;
	add_exits(VM_EXIT_ANY, 1);
	start();
	run->exit_reason = KVM_EXIT_MMIO;
	run->mmio.phys_addr = UINT64_C(0xfed000f0);
	exited();
	source_take_all(f.v);
	assert_int_equal(next()->exit_addr, 0xfed000f0);
	run->exit_reason = KVM_EXIT_X86_WRMSR;
	run->msr.index = 0xc0000082;
	exited();
	source_take_all(f.v);
	assert_int_equal(next()->exit_addr, 0xc0000082);
	run->exit_reason = KVM_EXIT_X86_RDMSR;
	exited();
	source_take_all(f.v);
	assert_int_equal(next()->exit, KVM_EXIT_X86_RDMSR);
	run->exit_reason = KVM_EXIT_HYPERCALL;
	run->hypercall.nr = 12;
	exited();
	source_take_all(f.v);
	assert_int_equal(next()->exit_addr, 12);
}

static void every_nth_exit(void **state)
{
	uint64_t sum[2] = { 0, 0 }, taken[2] = { 0, 0 };

	(void)state;
	add(&(struct vm_event){ .kind = VM_EVENT_EXIT,
				.period = 5,
				.exits = VM_EXIT_BIT(KVM_EXIT_IO),
				.jitter = true });
	add_exits(VM_EXIT_ANY, 3);
	start();
	for (unsigned int i = 0; i < 300; i++) {
		const struct sample *s;

		exit_io((uint16_t)i);
		source_take_all(f.v);
		while ((s = next())) {
			sum[s->event] += s->weight;
			taken[s->event]++;
			assert_int_equal(s->exit_addr, i);
			if (s->event == 1)
				assert_int_equal(i % 3, 2);
		}
	}
	assert_int_equal(sum[0], 300);
	assert_int_equal(taken[0], 60);
	assert_int_equal(sum[1], 300);
	assert_int_equal(taken[1], 100);
	assert_int_equal(f.v->stats.overruns, 0);
}

/* A second exit before the first was complete (a string instruction): none is forgotten. */
static void exits_in_a_row(void **state)
{
	(void)state;
	add_exits(VM_EXIT_BIT(KVM_EXIT_IO), 1);
	start();
	exit_io(1);
	exit_io(1);
	exit_io(1);
	source_take_all(f.v);
	assert_int_equal(next()->weight, 3);
	no_sample();
}

static void full_ring_owes_the_weight(void **state)
{
	uint64_t sum = 0;
	const struct sample *s;

	(void)state;
	ring_deinit(&f.v->ring);
	assert_int_equal(ring_init(&f.v->ring, 256 << 10), 0);
	add_exits(VM_EXIT_BIT(KVM_EXIT_IO), 1);
	start();
	for (unsigned int i = 0; i < 1000; i++) {
		exit_io(1);
		source_take_all(f.v);
	}
	assert_true(ring_dropped(&f.v->ring) > 0);
	while ((s = next()))
		sum += s->weight;
	assert_true(sum < 1000);
	exit_io(1);
	source_take_all(f.v);
	s = next();
	assert_int_equal(sum + s->weight, 1001);
}

/*
 * Without a consumer fewer and fewer samples find room, one after several, and their weights add
 * up.
 */
static void nearly_full_ring_takes_fewer(void **state)
{
	unsigned int taken = 0, of[5] = { 0 };
	uint64_t sum = 0, last = 10;
	const struct sample *s;

	(void)state;
	add_counter(VM_EVENT_PERF, 10);
	start();
	for (unsigned int i = 1; i <= 5000; i++) {
		mock.at[0].value = 10 * i;
		signalled(POLL_IN, MOCK_FD);
		source_take_all(f.v);
	}
	for (; (s = next()); taken++) {
		unsigned int n = (unsigned int)(s->weight / 10);

		assert_true(s->weight >= last);
		assert_true(n == 1 || n == 2 || n == 4 || n == 8);
		of[n == 1 ? 0 : n == 2 ? 1 : n == 4 ? 2 : 3]++;
		last = s->weight;
		sum += s->weight;
	}
	assert_true(of[0] > of[1] && of[1] > 10 && of[2] > 10);
	assert_int_equal(taken + ring_dropped(&f.v->ring), 5000);
	/* There is room again: the next one that is taken has all that was lost. */
	for (unsigned int i = 5001; i <= 5010; i++) {
		mock.at[0].value = 10 * i;
		signalled(POLL_IN, MOCK_FD);
		source_take_all(f.v);
	}
	while ((s = next()))
		sum += s->weight;
	assert_int_equal(sum, 50100);
}

/* The machine ends with an exit: what waits for another KVM_RUN gets one. */
static void last_exit(void **state)
{
	(void)state;
	add_exits(VM_EXIT_BIT(KVM_EXIT_IO), 1);
	start();
	source_exit_last(f.v);
	assert_int_equal(mock.runs, 0);
	exit_io(0x64);
	source_exit_last(f.v);
	assert_int_equal(mock.runs, 1);
	assert_int_equal(next()->exit_addr, 0x64);
}

static void collecting_nothing_counts(void **state)
{
	(void)state;
	add_exits(VM_EXIT_BIT(KVM_EXIT_IO), 1);
	start();
	atomic_store(&f.vm->control.collect, false);
	exit_io(1);
	source_take_all(f.v);
	no_sample();
	assert_int_equal(f.v->stats.uncollected, 1);
	atomic_store(&f.vm->control.collect, true);
	exit_io(1);
	source_take_all(f.v);
	assert_int_equal(next()->weight, 1);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(signals_find_their_source),
		TEST(signal_storm),
		TEST(signal_without_a_source),
		TEST(disarmed_and_armed_again),
		TEST(period_instead_of_a_rate),
		TEST(changed_behind_the_deadline),
		TEST(refused_on_the_thread),
		TEST(watch_only_without_wall),
		TEST(exits_are_taken_when_complete),
		TEST(exits_that_need_no_completion),
		TEST(held_until_the_exit_is_handled),
		TEST(exits_come_before_other_samples),
		TEST(addresses_of_exits),
		TEST(every_nth_exit),
		TEST(exits_in_a_row),
		TEST(full_ring_owes_the_weight),
		TEST(nearly_full_ring_takes_fewer),
		TEST(last_exit),
		TEST(collecting_nothing_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
