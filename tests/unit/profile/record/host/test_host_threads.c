/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of this process are sampled: their time, their names, those that come later, and not those that are left out.
 * Skipped where the host allows no counters.
 */
#include "profile/record/host/host_threads.h"

#include "tests/sample_check.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PERIOD 500000u
#define WORK 60000000u /* ns of a processor, of each thread */
#define SHORT 100000u  /* length of a turn of threads that sleep between turns */

struct worker {
	pthread_t thread;
	const char *name;
	uint64_t turn; /* 0: without a sleep */
	bool moves;    /* from the second processor to the first one */
	_Atomic pid_t tid;
	uint64_t ran;
	pthread_barrier_t *start;
};

static struct host_threads *t;
static uint64_t got[8]; /* weight, by the last letter of the name */
static unsigned int renamed_as[8], samples, unnamed;
static bool damaged;

static uint64_t thread_ns(void)
{
	struct timespec x;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &x);
	return (uint64_t)x.tv_sec * 1000000000u + (uint64_t)x.tv_nsec;
}

/* Where there are two that we may use. */
static void worker_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t begin;

	if (w->moves)
		worker_to(1);
	pthread_setname_np(pthread_self(), w->name);
	w->tid = (pid_t)syscall(SYS_gettid);
	if (w->start)
		pthread_barrier_wait(w->start);
	begin = thread_ns();
	while (thread_ns() - begin < WORK) {
		uint64_t turn = thread_ns();

		while (thread_ns() - turn < (w->turn ? w->turn : 1000))
			;
		if (w->turn)
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
		if (w->moves && thread_ns() - begin > WORK / 2) {
			worker_to(0);
			w->moves = false;
		}
	}
	w->ran = thread_ns() - begin;
	return NULL;
}

static int on_sample(void *ctx, const struct sample *s, bool renamed)
{
	struct sample_host host;
	size_t len = strnlen(s->task.comm, sizeof(s->task.comm));
	unsigned int i =
		len > 7 && !strncmp(s->task.comm, "worker-", 7) ? s->task.comm[7] - '0' : 7;

	(void)ctx;
	i = i < 8 ? i : 7;
	samples++;
	got[i] += s->weight;
	renamed_as[i] += renamed;
	unnamed += len == 0;
	damaged |= !sample_host(s, &host) || !host.n || host.n > SAMPLE_MAX_HOST ||
		   s->task.pid != HOST_THREADS_PID + (uint32_t)getpid() ||
		   s->task.tid <= HOST_THREADS_PID || sample_check(s, sample_size(s)) != 0;
	return 0;
}

static int stop_at(void *ctx, const struct sample *s, bool renamed)
{
	(void)s;
	(void)renamed;
	return ++*(int *)ctx == 3 ? -EPIPE : 0;
}

static int setup(void **state)
{
	(void)state;
	memset(got, 0, sizeof(got));
	memset(renamed_as, 0, sizeof(renamed_as));
	samples = unnamed = 0;
	damaged = false;
	return host_threads_create(&t, PERIOD, 3, NULL);
}

static int teardown(void **state)
{
	(void)state;
	host_threads_destroy(t);
	return 0;
}

static void open_all(const pid_t *but, unsigned int n)
{
	struct err note = { 0 }, why = { 0 };
	int ret = host_threads_open(t, 0, but, n, &note, &why);

	if (ret == -EACCES || ret == -EPERM || ret == -ENOENT || ret == -ENOSYS)
		SKIP("no counters here: %s", why.text);
	assert_int_equal(ret, 0);
}

static void near(uint64_t is, uint64_t want)
{
	/* Time without a sample yet: at most three periods of each processor's counter. */
	assert_in_range(is, want - want / 20 - 6 * PERIOD, want + want / 20 + 6 * PERIOD);
}

/* Each gets what it had of a processor, also in turns that are shorter than a period. */
static void their_time(void **state)
{
	struct worker w[] = { { .name = "worker-0" },
			      { .name = "worker-1", .turn = SHORT },
			      { .name = "worker-2" } };
	pthread_barrier_t start;
	struct host_threads_stats st;
	uint64_t sum = 0, least;
	pid_t but;

	(void)state;
	pthread_barrier_init(&start, NULL, 4);
	for (unsigned int i = 0; i < 3; i++) {
		w[i].start = &start;
		pthread_create(&w[i].thread, NULL, worker_main, &w[i]);
		while (!w[i].tid)
			usleep(100);
	}
	but = w[2].tid;
	open_all(&but, 1);
	pthread_barrier_wait(&start);
	for (unsigned int i = 0; i < 40; i++) {
		usleep(5000);
		assert_int_equal(host_threads_take(t, on_sample, NULL), 0);
	}
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(host_threads_take(t, on_sample, NULL), 0);
	near(got[0], w[0].ran);
	near(got[1], w[1].ran);
	assert_int_equal(got[2], 0);
	assert_false(damaged);
	host_threads_stats(t, &st);
	for (unsigned int i = 0; i < 8; i++)
		sum += got[i];
	assert_int_equal(st.samples, samples);
	assert_int_equal(st.weight_ns, sum);
	assert_int_equal(st.lost, 0);
	/* The first microseconds of each turn are not counted. */
	assert_true(st.counted_ns > (w[0].ran + w[1].ran) / 10 * 9);
	assert_true(st.counted_ns < sum + 20 * PERIOD);
	least = got[0] < got[1] ? got[0] : got[1];
	assert_true(st.most[0].weight_ns >= st.most[1].weight_ns && st.most[1].weight_ns >= least);
	assert_int_equal(renamed_as[0], 1);
	pthread_barrier_destroy(&start);
}

/*
 * Threads that are started afterwards, and have ended before anybody looks. Their names were told on one processor, before
 * they ran on another one.
 */
static void those_that_come(void **state)
{
	struct worker w = { .name = "worker-4", .moves = true };
	const struct timespec moment = { .tv_nsec = 1000000 };

	(void)state;
	open_all(NULL, 0);
	pthread_create(&w.thread, NULL, worker_main, &w);
	pthread_join(w.thread, NULL);
	nanosleep(&moment, NULL);
	assert_int_equal(host_threads_take(t, on_sample, NULL), 0);
	/*
	 * Each sample has its part of the count, also one from before it had its name; where the timer is late, these
	 * are few. By one ring alone it would be a half.
	 */
	assert_in_range(got[4], w.ran / 4 * 3, w.ran / 4 * 5);
	assert_int_equal(renamed_as[4], 1);
	assert_int_equal(unnamed, 0);
	assert_false(damaged);
}

/* Another profile begins, which has no names yet. */
static void named_again(void **state)
{
	(void)state;
	open_all(NULL, 0);
	for (unsigned int i = 0; i < 4; i++) {
		const uint64_t begin = thread_ns();

		if (i == 2)
			host_threads_repeat_names(t);
		while (thread_ns() - begin < WORK / 4)
			;
		assert_int_equal(host_threads_take(t, on_sample, NULL), 0);
		assert_int_equal(renamed_as[7], i < 2 ? 1 : 2);
	}
	host_threads_repeat_names(NULL);
}

static void errors(void **state)
{
	struct host_threads_stats st;
	struct err note = { 0 }, why = { 0 };
	struct worker w = { .name = "worker-5" };
	int n = 0;

	(void)state;
	/* Before it is open there is nothing; nor of a process that is not there. */
	assert_int_equal(host_threads_take(t, on_sample, NULL), 0);
	assert_int_equal(host_threads_take(NULL, on_sample, NULL), 0);
	assert_true(host_threads_open(t, 0x3fffffff, NULL, 0, &note, &why) < 0);
	assert_true(*why.text);
	assert_int_equal(host_threads_take(t, on_sample, NULL), 0);
	host_threads_stats(t, &st);
	assert_int_equal(st.opened, 0);
	host_threads_destroy(t);
	assert_int_equal(host_threads_create(&t, PERIOD, 3, NULL), 0);
	open_all(NULL, 0);
	pthread_create(&w.thread, NULL, worker_main, &w);
	pthread_join(w.thread, NULL);
	/* The first error is the answer, and nobody is asked any more. */
	assert_int_equal(host_threads_take(t, stop_at, &n), -EPIPE);
	assert_int_equal(n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(their_time, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_come, setup, teardown),
		cmocka_unit_test_setup_teardown(named_again, setup, teardown),
		cmocka_unit_test_setup_teardown(errors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
