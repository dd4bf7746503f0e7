/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char file[64];

/* In a child, which a signal may end. Returns how it ended. */
static int child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		alarm(0);
		signals_init();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void nap(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&ts, &ts))
		;
}

static void is_hit(void)
{
	close(open(file, O_CREAT | O_WRONLY, 0600));
	assert_true(signals_remove(file) >= 0);
	kill(getpid(), SIGTERM);
}

static void files_are_removed(void **state)
{
	struct stat st;
	int status;

	(void)state;
	snprintf(file, sizeof(file), "/tmp/test_signals.%d", (int)getpid());
	status = child(is_hit);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(stat(file, &st), -1);
}

static void is_told(void)
{
	struct pollfd p = { .events = POLLIN };

	signals_set(SIGNALS_REPORT);
	p.fd = signals_fd();
	if (poll(&p, 1, 0) != 0)
		_exit(2);
	kill(getpid(), SIGINT);
	if (poll(&p, 1, 0) != 1 || !signals_pending() || !signals_take() || signals_take() ||
	    poll(&p, 1, 0) != 0)
		_exit(3);
	/* timeout(1) sends it twice. */
	kill(getpid(), SIGINT);
	_exit(signals_take() ? 0 : 4);
}

static void the_first_is_reported(void **state)
{
	(void)state;
	assert_int_equal(child(is_told), 0);
}

/* It must not last as long as this if it is ended. */
static void hang(void)
{
	nap(60000);
}

static void is_hit_twice(void)
{
	signals_set(SIGNALS_REPORT);
	kill(getpid(), SIGINT);
	nap(SIGNALS_AGAIN_MS + 50);
	kill(getpid(), SIGHUP);
	hang();
}

static void is_watched(void)
{
	signals_set(SIGNALS_WATCH);
	kill(getpid(), SIGTERM);
	hang();
}

static void work_for(unsigned int ms)
{
	clock_t end = clock() + (clock_t)ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		;
}

/* A host that takes the processor away makes an idle process look like this one. */
static void is_watched_and_seems_to_work(void)
{
	signals_set(SIGNALS_WATCH);
	kill(getpid(), SIGTERM);
	for (int i = 0; i < 60; i++) {
		work_for(4);
		nap(1000);
	}
}

static void has_grace(void)
{
	signals_set(SIGNALS_GRACE);
	kill(getpid(), SIGTERM);
	nap(SIGNALS_GRACE_MS / 4);
	if (!signals_take())
		_exit(2);
	hang();
}

static void one_that_hangs_is_ended(void **state)
{
	int status;

	(void)state;
	status = child(is_hit_twice);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
	status = child(is_watched);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	status = child(is_watched_and_seems_to_work);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	status = child(has_grace);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void works(void)
{
	time_t end = time(NULL) + 2 * SIGNALS_GRACE_MS / 1000 + 1;

	signals_set(SIGNALS_WATCH);
	kill(getpid(), SIGTERM);
	while (time(NULL) < end)
		;
	signals_watch(false);
}

static void one_that_works_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(child(works), 0);
}

static void ignores_hup(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signals_init();
	kill(getpid(), SIGINT);
	signals_set(SIGNALS_REPORT);
	kill(getpid(), SIGHUP);
	if (signals_take())
		_exit(2);
	kill(getpid(), SIGINT);
	_exit(signals_take() ? 0 : 3);
}

static void nohup_is_heeded(void **state)
{
	(void)state;
	assert_int_equal(child(ignores_hup), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_removed),
		cmocka_unit_test(the_first_is_reported),
		cmocka_unit_test(one_that_hangs_is_ended),
		cmocka_unit_test(one_that_works_is_left_alone),
		cmocka_unit_test(nohup_is_heeded),
	};

	/* Whoever runs the tests may ignore it, as nohup(1) does. */
	signal(SIGHUP, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
