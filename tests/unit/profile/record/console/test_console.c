/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest's console on outputs that are read at once, slowly, or never. */
#include "profile/record/console/console.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void put(struct console *c, const char *text)
{
	for (; *text; text++)
		console_put(c, (uint8_t)*text);
}

static void begin(struct console *c, int fd)
{
	struct err e = { 0 };

	console_init(c, fd);
	if (console_start(c, &e) < 0)
		fail_msg("%s", e.text);
}

/* All that comes within a second after the last byte; up to `want` bytes. */
static size_t get(int fd, char *out, size_t want)
{
	uint64_t last = clock_mono_ns();
	size_t n = 0;

	while (n < want && clock_mono_ns() - last < NSEC_PER_SEC) {
		ssize_t some = read(fd, out + n, want - n);

		if (some > 0) {
			n += (size_t)some;
			last = clock_mono_ns();
		} else {
			usleep(1000);
		}
	}
	return n;
}

static void writes_lines(void **state)
{
	struct console c;
	char got[4096];
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	begin(&c, fd[1]);
	put(&c, "no end\nlogin: ");
	assert_int_equal(get(fd[0], got, 7), 7);
	assert_memory_equal(got, "no end\n", 7);
	usleep(50000); /* a line without an end waits to be flushed */
	assert_int_equal(read(fd[0], got, sizeof(got)), -1);
	assert_int_equal(errno, EAGAIN);
	console_flush(&c);
	assert_int_equal(get(fd[0], got, 7), 7);
	assert_memory_equal(got, "login: ", 7);
	for (int i = 0; i < 1500; i++)
		console_put(&c, (uint8_t)('a' + i % 26));
	console_put(&c, 0); /* guests write any byte */
	console_drain(&c, CONSOLE_FOR_EVER, -1);
	assert_int_equal(read(fd[0], got, sizeof(got)), 1501);
	for (int i = 0; i < 1500; i++)
		assert_int_equal(got[i], 'a' + i % 26);
	assert_int_equal(got[1500], 0);
	assert_int_equal(c.bytes, 7 + 7 + 1501);
	assert_int_equal(console_error(&c), 0);
	assert_int_equal(console_dropped(&c), 0);
	console_deinit(&c);
	close(fd[0]);
	close(fd[1]);
}

static void survives_a_closed_pipe(void **state)
{
	struct console c;
	int fd[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fd), 0);
	close(fd[0]);
	begin(&c, fd[1]);
	for (int i = 0; i < 2 * (int)CONSOLE_RING; i++)
		put(&c, "x\n");
	assert_int_equal(c.bytes, 4u * CONSOLE_RING);
	console_drain(&c, CONSOLE_FOR_EVER, -1);
	assert_int_equal(c.failed, EPIPE);
	assert_int_equal(console_error(&c), 0); /* as with `| head` */
	console_deinit(&c);
	close(fd[1]);
	signal(SIGPIPE, SIG_DFL);

	begin(&c, -1); /* --quiet */
	for (int i = 0; i < 5000; i++)
		put(&c, "x");
	assert_int_equal(c.bytes, 5000);
	console_drain(&c, CONSOLE_FOR_EVER, -1);
	assert_int_equal(console_dropped(&c), 0);
	console_deinit(&c);
}

static void a_full_disk_is_an_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	struct console c;

	(void)state;
	assert_true(fd >= 0);
	begin(&c, fd);
	put(&c, "one line\n");
	console_drain(&c, CONSOLE_FOR_EVER, -1);
	assert_int_equal(console_error(&c), -ENOSPC);
	console_deinit(&c);
	close(fd);
}

struct reader {
	pthread_t thread;
	int fd;
	size_t n, cap;
	char *got;
};

/* Takes its time, but never longer than a vCPU waits. */
static void *read_slowly(void *arg)
{
	struct reader *r = arg;
	ssize_t n;

	for (unsigned int i = 0; (n = read(r->fd, r->got + r->n, r->cap - r->n)) > 0; i++) {
		r->n += (size_t)n;
		if (i < 20)
			usleep(20000);
	}
	return NULL;
}

/* Several rings full, and the one who puts it is faster than the one who reads. */
static void a_slow_reader_gets_all(void **state)
{
	struct reader r = { .cap = 4u * CONSOLE_RING };
	struct console c;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	r.fd = fd[0];
	r.got = malloc(r.cap);
	assert_non_null(r.got);
	begin(&c, fd[1]);
	assert_int_equal(pthread_create(&r.thread, NULL, read_slowly, &r), 0);
	for (unsigned int i = 0; i < 3u * CONSOLE_RING; i++)
		console_put(&c, (uint8_t)(i % 61 ? 'a' + i % 23 : '\n'));
	console_drain(&c, CONSOLE_FOR_EVER, -1);
	assert_int_equal(console_dropped(&c), 0);
	console_deinit(&c);
	close(fd[1]);
	pthread_join(r.thread, NULL);
	close(fd[0]);
	assert_int_equal(r.n, 3u * CONSOLE_RING);
	for (unsigned int i = 0; i < r.n; i++)
		if (r.got[i] != (char)(i % 61 ? 'a' + i % 23 : '\n'))
			fail_msg("byte %u is %d", i, r.got[i]);
	free(r.got);
}

/*
 * Without a reader, a writer waits once and never again. A reader that comes back is told where
 * bytes are missing, and how many.
 */
static void nobody_reads(void **state)
{
	size_t all = 3u * CONSOLE_RING, cap = all + 4096, n, gap_at, after;
	char *got = malloc(cap + 1), *gap;
	unsigned long long dropped;
	struct console c;
	int fd[2];

	(void)state;
	assert_non_null(got);
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	assert_int_equal(fcntl(fd[1], F_SETFL, 0), 0);
	begin(&c, fd[1]);
	for (size_t i = 0; i < all; i++)
		console_put(&c, (uint8_t)('a' + i % 23));
	dropped = console_dropped(&c);
	assert_true(dropped > CONSOLE_RING && dropped < all);
	/* A reader, and room: the gap's end is where the next byte comes. */
	n = get(fd[0], got, all - dropped);
	assert_int_equal(n, all - dropped);
	put(&c, "again\n");
	console_drain(&c, CONSOLE_FOR_EVER, -1);
	n += get(fd[0], got + n, cap - n);
	got[n] = 0;
	for (gap_at = 0; got[gap_at] == 'a' + (char)(gap_at % 23); gap_at++)
		;
	assert_int_equal(gap_at, all - dropped);
	gap = got + gap_at;
	assert_int_equal(sscanf(gap, "\n[kvmprof: %llu bytes", &dropped), 1);
	assert_int_equal(gap_at + dropped, all);
	after = strcspn(gap + 1, "\n") + 2;
	assert_string_equal(gap + after, "again\n");
	assert_int_equal(console_dropped(&c), dropped);
	console_deinit(&c);
	close(fd[0]);
	close(fd[1]);
	free(got);
}

/* The end: a reader that never comes is not waited for, nor one when something else happens. */
static void the_end_is_bounded(void **state)
{
	int fd[2], other[2];
	struct console c;
	uint64_t dropped;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pipe(other), 0);
	begin(&c, fd[1]);
	for (unsigned int i = 0; i < CONSOLE_RING / 2; i++)
		console_put(&c, 'x');
	console_drain(&c, CONSOLE_SHORTLY, other[0]);
	dropped = console_dropped(&c); /* the pipe has 64 KiB, in pages that may not be full */
	assert_true(dropped >= CONSOLE_RING / 2 - 65536 && dropped < CONSOLE_RING / 2 - 16384);
	put(&c, "more\n");
	assert_int_equal(write(other[1], "!", 1), 1);
	console_drain(&c, CONSOLE_FOR_EVER, other[0]);
	assert_int_equal(console_dropped(&c), dropped + 5);
	/* A run that is ending does not wait for room. */
	console_end(&c);
	for (unsigned int i = 0; i < 2 * CONSOLE_RING; i++)
		console_put(&c, 'x');
	console_deinit(&c);
	close(fd[0]);
	close(fd[1]);
	close(other[0]);
	close(other[1]);
}

/* Ctrl-S: the writer waits within write(), and comes out of it at the end. */
static void a_stopped_terminal(void **state)
{
	struct console c;
	int master, slave;

	(void)state;
	master = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	begin(&c, slave);
	c.apart = false;
	for (unsigned int i = 0; i < 200000; i++)
		console_put(&c, 'x');
	console_flush(&c);
	usleep(200000); /* until it waits */
	console_status(&c, "nobody sees it");
	console_hide_status(&c);
	console_drain(&c, CONSOLE_SHORTLY, -1);
	assert_true(console_dropped(&c) > 0);
	console_deinit(&c);
	close(slave);
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_lines),
		cmocka_unit_test(survives_a_closed_pipe),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(a_slow_reader_gets_all),
		cmocka_unit_test(nobody_reads),
		cmocka_unit_test(the_end_is_bounded),
		cmocka_unit_test(a_stopped_terminal),
	};

	return cmocka_run_group_tests_name("console", tests, NULL, NULL);
}
