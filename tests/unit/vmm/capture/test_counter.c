/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/capture/counter.h"

#include "vmm/vm.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/perf_mock.h"
#include "base/vcpu_stats.h"

#define PERIOD UINT64_C(1000003)
#define SEED UINT64_C(0x6b766d70726f66)

static const struct vm_counter cycles = {
	.type = PERF_TYPE_HARDWARE,
	.config = PERF_COUNT_HW_CPU_CYCLES,
	.exclude_host = true,
};
static const struct vm_counter task_clock = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_TASK_CLOCK,
	.clock = true,
};
static const struct vm_counter faults = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS,
};

static int setup(void **state)
{
	(void)state;
	mock_reset();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return mock_open_now() ? -1 : 0; /* each test closes what it opened, also after errors */
}

static struct counter opened(const struct vm_counter *what, uint64_t period, bool jitter)
{
	struct counter c;
	struct err e = { 0 };

	assert_int_equal(counter_open(&c, what, &(struct trigger_rule){ period, jitter, SEED },
				      SIGRTMIN, &e),
			 0);
	assert_int_equal(counter_start(&c, &e), 0);
	return c;
}

static void opens_on_this_thread(void **state)
{
	struct counter c = opened(&cycles, PERIOD, false);
	const struct mock_counter *m = &mock.at[0];

	(void)state;
	assert_int_equal(m->pid, 0); /* the calling thread */
	assert_int_equal(m->cpu, -1);
	assert_int_equal(m->group, -1);
	assert_int_equal(m->flags, PERF_FLAG_FD_CLOEXEC);
	assert_int_equal(m->attr.size, sizeof(m->attr));
	assert_int_equal(m->attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(m->attr.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_int_equal(m->attr.disabled, 1);
	assert_int_equal(m->attr.freq, 0);
	assert_int_equal(m->attr.sample_period, PERIOD);
	assert_int_equal(m->attr.exclude_host, 1);
	assert_int_equal(m->attr.exclude_guest, 0);
	assert_int_equal(m->attr.exclude_user + m->attr.exclude_kernel + m->attr.exclude_hv, 0);
	assert_int_equal(m->attr.precise_ip, 0);
	/* the overflow's signal: to this very thread, and not before it knows where to go */
	assert_int_equal(m->owner.type, F_OWNER_TID);
	assert_int_equal(m->owner.pid, gettid());
	assert_int_equal(m->signo, SIGRTMIN);
	assert_int_equal(m->fl, O_ASYNC | O_NONBLOCK);
	assert_true(m->enabled && m->routed_first);
	counter_close(&c);
	assert_false(m->open);
	counter_close(&c); /* again does no harm */
}

static void modifiers_and_frequency(void **state)
{
	struct vm_counter what = cycles;
	struct counter c;
	const struct mock_counter *m = &mock.at[0];

	(void)state;
	what.exclude_host = false;
	what.exclude_guest = what.exclude_user = what.exclude_hv = true;
	what.precise_ip = 2;
	what.freq = true;
	what.filter = "isa == 1";
	c = opened(&what, 997, true);
	assert_int_equal(m->attr.exclude_host, 0);
	assert_int_equal(m->attr.exclude_guest, 1);
	assert_int_equal(m->attr.exclude_user, 1);
	assert_int_equal(m->attr.exclude_kernel, 0);
	assert_int_equal(m->attr.exclude_hv, 1);
	assert_int_equal(m->attr.precise_ip, 2);
	assert_int_equal(m->attr.freq, 1);
	assert_int_equal(m->attr.sample_freq, 997);
	assert_string_equal(m->filter, "isa == 1");
	counter_close(&c);
}

static void refused(const struct vm_counter *what, int err, const char *text)
{
	struct counter c;
	struct err e = { 0 };

	mock.refuse = err;
	assert_int_equal(counter_open(&c, what, &(struct trigger_rule){ 997, false, 1 }, SIGRTMIN,
				      &e),
			 -err);
	if (!strstr(e.text, text))
		fail_msg("errno %d: `%s' does not say `%s'", err, e.text, text);
	assert_null(strchr(e.text, '\n'));
	counter_close(&c);
}

static void refusals_name_the_cause(void **state)
{
	struct vm_counter fast = cycles;
	char paranoid[64], number[16] = "";
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");

	(void)state;
	if (f) {
		assert_non_null(fgets(number, sizeof(number), f));
		fclose(f);
		number[strcspn(number, "\n")] = '\0';
	}
	snprintf(paranoid, sizeof(paranoid), "perf_event_paranoid is %s", f ? number : "-1000");
	refused(&cycles, ENOENT, "ENOENT");
	refused(&cycles, ENOENT,
		access("/sys/bus/event_source/devices/cpu", F_OK) ? "no hardware PMU"
								  : "processor");
	refused(&faults, ENOENT, "host's kernel does not know it (ENOENT)");
	refused(&cycles, ENODEV, "ENODEV");
	refused(&cycles, EOPNOTSUPP, "mediated vPMU");
	refused(&cycles, EACCES, paranoid);
	refused(&cycles, EPERM, paranoid);
	refused(&cycles, EINVAL, "modifiers");
	refused(&cycles, ENOSYS, "without perf events");
	refused(&cycles, EMFILE, "ulimit -n");
	refused(&cycles, EBUSY, "uses the PMU exclusively");
	refused(&cycles, E2BIG, "perf_event_open");
	fast.freq = true;
	mock.refuse = EINVAL;
	{
		struct counter c;
		struct err e = { 0 };

		assert_int_equal(counter_open(&c, &fast,
					      &(struct trigger_rule){ UINT64_C(1) << 40, false, 1 },
					      SIGRTMIN, &e),
				 -EINVAL);
		assert_non_null(strstr(e.text, "perf_event_max_sample_rate"));
	}
}

static void failures_after_opening_close_it(void **state)
{
	static const int cmd[] = { F_SETOWN_EX, F_SETSIG, F_SETFL };
	struct vm_counter what = cycles;
	struct counter c;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct err e = { 0 };

		mock.refuse_fcntl = cmd[i];
		assert_int_equal(counter_open(&c, &cycles,
					      &(struct trigger_rule){ PERIOD, false, 1 }, SIGRTMIN,
					      &e),
				 -EINVAL);
		assert_int_equal(mock_open_now(), 0);
	}
	{
		struct err e = { 0 };

		mock.refuse_fcntl = 0;
		mock.refuse_filter = true;
		what.filter = "nonsense";
		assert_int_equal(counter_open(&c, &what, &(struct trigger_rule){ PERIOD, false, 1 },
					      SIGRTMIN, &e),
				 -EINVAL);
		assert_non_null(strstr(e.text, "nonsense"));
		assert_int_equal(mock_open_now(), 0);
	}
}

static void probe_tries_with_the_host(void **state)
{
	static const struct {
		int guest_only, any, want;
		bool exclude_host;
		unsigned int opens;
	} row[] = {
		{ 0, 0, 0, true, 1 },
		{ EINVAL, 0, 0, false, 2 },
		{ EOPNOTSUPP, 0, 0, false, 2 },
		{ EINVAL, EOPNOTSUPP, -EINVAL, true, 2 }, /* the first cause is told */
		{ EACCES, 0, -EACCES, true, 1 },
		{ ENOENT, 0, -ENOENT, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct vm_counter what = cycles;
		struct err e = { 0 };

		mock_reset();
		mock.refuse_guest_only = row[i].guest_only;
		mock.refuse = row[i].any;
		assert_int_equal(counter_probe(&what, PERIOD, &e), row[i].want);
		assert_int_equal(what.exclude_host, row[i].exclude_host);
		assert_int_equal(mock.opens, row[i].opens);
		assert_int_equal(mock_open_now(), 0);
		if (row[i].want)
			assert_int_equal(e.code, -row[i].want);
	}
	/* where the processor does not count there is nothing to leave out */
	{
		struct vm_counter what = faults;
		struct err e = { 0 };

		mock_reset();
		mock.refuse = EINVAL;
		assert_int_equal(counter_probe(&what, 1, &e), -EINVAL);
		assert_int_equal(mock.opens, 1);
	}
}

/* The counter goes to where it was asked to overflow, and `late' further. */
static void overflow(uint64_t from, uint64_t late)
{
	mock.at[0].value = from + mock.at[0].period + late;
}

static void strict_periods(void **state)
{
	struct counter c = opened(&cycles, 1000, false);
	uint64_t weight;
	uint32_t missed;

	(void)state;
	/* exactly on time: the kernel goes on by itself */
	mock.at[0].value = 1000;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 1000);
	assert_int_equal(missed, 0);
	assert_int_equal(mock.at[0].periods, 0);
	/* late, but in the next period: its end is nearer then */
	mock.at[0].value = 2300;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 1000);
	assert_int_equal(mock.at[0].period, 700);
	/* three periods at once */
	mock.at[0].value = 5100;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 3000);
	assert_int_equal(missed, 2);
	assert_int_equal(mock.at[0].period, 900);
	counter_close(&c);
}

/* Each period has a new deadline at random, and all that was counted is in the weights. */
static void jittered_periods(void **state)
{
	const struct vm_counter *what[] = { &cycles, &task_clock, &faults };
	const uint64_t length[] = { PERIOD, PERIOD, 7 };

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct counter c;
		uint64_t sum = 0, weight, before = 0, value = 0;
		unsigned int changes = 0, half = 0;
		const unsigned int n = 20000;
		uint32_t missed;

		mock_reset();
		c = opened(what[k], length[k], true);
		assert_in_range(mock.at[0].attr.sample_period, 1, length[k]);
		for (unsigned int i = 0; i < n; i++) {
			uint64_t place;

			/* lateness hides places at a period's start: little of it, then */
			overflow(value, i % 5 || k == 2 ? 0 : i % 97);
			value = mock.at[0].value;
			if (!counter_handle_signal(&c, &weight, &missed)) {
				fail_msg("no period had ended at %llu", (unsigned long long)value);
				break;
			}
			sum += weight;
			assert_int_equal(weight % length[k], 0);
			/* within its period's bounds */
			assert_true(sum + length[k] > value && sum < value + length[k]);
			assert_in_range(mock.at[0].period, 1, 2 * length[k]);
			place = (value + mock.at[0].period - 1) % length[k];
			half += place < length[k] / 2;
			changes += mock.at[0].period != before;
			before = mock.at[0].period;
		}
		assert_true(changes > n / 2);
		/* uniform: half of the places lie in the first half (3 of 7); sigma is 71 */
		assert_in_range(half, n * (length[k] / 2) / length[k] - 400,
				n * (length[k] / 2) / length[k] + 400);
		counter_close(&c);
	}
}

static void every_single_one(void **state)
{
	struct counter c = opened(&faults, 1, true);
	uint64_t weight, sum = 0;
	uint32_t missed;

	(void)state;
	assert_int_equal(mock.at[0].attr.sample_period, 1);
	for (unsigned int i = 1; i < 100; i++) {
		mock.at[0].value = i;
		assert_true(counter_handle_signal(&c, &weight, &missed));
		assert_int_equal(weight, 1);
		sum += weight;
	}
	assert_int_equal(mock.at[0].periods, 0);
	mock.at[0].value += 10; /* ten in one go */
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 10);
	assert_int_equal(missed, 9);
	assert_int_equal(sum + weight, mock.at[0].value);
	counter_close(&c);
}

static void early_signals(void **state)
{
	struct counter c = opened(&task_clock, 1000000, false);
	uint64_t weight = 77;
	uint32_t missed = 77;

	(void)state;
	/* a timer a little early, or a signal left over: it is asked again, for what is missing */
	mock.at[0].value = 999000;
	assert_false(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(mock.at[0].period, 1000);
	assert_int_equal(weight, 77);
	mock.at[0].value = 1000000;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 1000000);
	counter_close(&c);
}

/* An overflow stops it; it goes on once for each signal, after the sample. */
static void one_overflow_at_a_time(void **state)
{
	struct counter c = opened(&faults, 1000, false);
	uint64_t weight;
	uint32_t missed;

	(void)state;
	assert_int_equal(mock.at[0].limit, 1);
	for (unsigned int i = 1; i < 10; i++) {
		mock.at[0].value = i * 1000;
		assert_true(counter_handle_signal(&c, &weight, &missed));
		assert_int_equal(mock.at[0].limit, i);
		counter_resume(&c);
		assert_int_equal(mock.at[0].limit, i + 1);
	}
	counter_close(&c);
}

/* The kernel would not start a tracepoint again: the signal's handler stops it. */
static void tracepoints_are_stopped_by_hand(void **state)
{
	struct vm_counter what = { .type = PERF_TYPE_TRACEPOINT, .config = 103 };
	struct counter c = opened(&what, 1, true);
	uint64_t weight;
	uint32_t missed;

	(void)state;
	assert_int_equal(mock.at[0].limit, 0); /* not limited to one overflow */
	for (unsigned int i = 1; i < 10; i++) {
		assert_true(mock.at[0].enabled);
		mock.at[0].value = i;
		counter_signalled(&c);
		assert_false(mock.at[0].enabled);
		assert_true(counter_handle_signal(&c, &weight, &missed));
		counter_resume(&c);
	}
	counter_close(&c);
	/* the others by the kernel: there is nothing for the handler to do */
	mock_reset();
	c = opened(&faults, 1, true);
	counter_signalled(&c);
	assert_true(mock.at[0].enabled);
	counter_close(&c);
}

static void kernel_chosen_periods(void **state)
{
	struct vm_counter what = cycles;
	struct counter c;
	uint64_t weight;
	uint32_t missed;

	(void)state;
	what.freq = true;
	c = opened(&what, 997, true);
	mock.at[0].value = 123456;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 123456);
	mock.at[0].value = 200000;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 200000 - 123456);
	assert_int_equal(missed, 0);
	assert_false(counter_handle_signal(&c, &weight, &missed)); /* nothing was counted since */
	assert_int_equal(mock.at[0].periods, 0);
	counter_close(&c);
}

/* It had the PMU for a part of the time: known at each sample, each time once. */
static void shared_counters_are_noted(void **state)
{
	struct counter c = opened(&cycles, 1000, false);
	struct vm_counter_stats st = { 0 };
	uint64_t weight;
	uint32_t missed;

	(void)state;
	mock.at[0].value = 1000;
	mock.at[0].enabled_ns = 900;
	mock.at[0].running_ns = 300;
	assert_true(counter_handle_signal(&c, &weight, &missed));
	assert_int_equal(weight, 1000); /* what was counted, not scaled */
	counter_note(&c, &st);
	counter_note(&c, &st);
	assert_int_equal(st.enabled_ns, 900);
	assert_int_equal(st.running_ns, 300);
	mock.at[0].enabled_ns = 1000;
	mock.at[0].running_ns = 400;
	assert_int_equal(counter_read(&c), 1000);
	counter_note(&c, &st);
	assert_int_equal(st.enabled_ns, 1000);
	assert_int_equal(st.running_ns, 400);
	counter_close(&c);
}

/* Records are taken out of the ring, whatever they are, also where it begins anew. */
static void ring_tells_of_throttling(void **state)
{
	struct counter c = opened(&cycles, 1000, false);
	struct mock_counter *m = &mock.at[0];
	const uint64_t lost[] = { 1, 7 }, stamp[] = { 1, 2, 3 };
	struct vm_counter_stats st = { 0 };

	(void)state;
	assert_non_null(m->ring);
	for (unsigned int i = 1; i <= 100; i++) {
		mock_record(m, PERF_RECORD_SAMPLE, NULL, 0);
		mock_record(m, PERF_RECORD_THROTTLE, stamp, 3);
		mock_record(m, PERF_RECORD_UNTHROTTLE, stamp, 3);
		mock_record(m, PERF_RECORD_LOST, lost, 2);
		counter_note(&c, &st);
		assert_int_equal(st.throttled, i);
		assert_int_equal(st.lost, 7 * i);
		assert_int_equal(m->ring->data_tail, m->ring->data_head);
	}
	assert_true(m->ring->data_head > 4096);
	/* no end of a record: it is left, and so is what follows */
	mock_record(m, PERF_RECORD_THROTTLE, stamp, 3);
	m->ring->data_head -= 8;
	counter_note(&c, &st);
	assert_int_equal(st.throttled, 100);
	assert_int_equal(m->ring->data_tail, m->ring->data_head);
	counter_close(&c);
	/* without memory for a ring it counts all the same */
	mock_reset();
	mock.refuse_ring = true;
	c = opened(&cycles, 1000, false);
	counter_note(&c, &st);
	assert_int_equal(st.throttled, 100);
	counter_close(&c);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(opens_on_this_thread),
		TEST(modifiers_and_frequency),
		TEST(refusals_name_the_cause),
		TEST(failures_after_opening_close_it),
		TEST(probe_tries_with_the_host),
		TEST(strict_periods),
		TEST(jittered_periods),
		TEST(every_single_one),
		TEST(early_signals),
		TEST(one_overflow_at_a_time),
		TEST(tracepoints_are_stopped_by_hand),
		TEST(kernel_chosen_periods),
		TEST(shared_counters_are_noted),
		TEST(ring_tells_of_throttling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
