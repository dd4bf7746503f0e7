/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/monitor.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As QEMU 10 prints them, cut to the line that counts. */
#define RUNS "RIP=ffffffff81000000 RFL=00000046 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\\r\\n"
#define HALTED "RIP=ffffffff81000001 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\\r\\n"

static void all_vcpus_must_stand(void **state)
{
	(void)state;
	assert_true(monitor_text_is_halted("CPU#0\\r\\n" HALTED));
	assert_true(monitor_text_is_halted("CPU#0\\r\\n" HALTED "CPU#1\\r\\n" HALTED));
	assert_false(monitor_text_is_halted("CPU#0\\r\\n" HALTED "CPU#1\\r\\n" RUNS));
	assert_false(monitor_text_is_halted("CPU#0\\r\\n" RUNS "CPU#1\\r\\n" HALTED));
	assert_false(monitor_text_is_halted(""));
	assert_false(monitor_text_is_halted("HLT="));
}

static struct monitor m;
static const atomic_bool never;

static int begin(int *other)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	monitor_init(&m, fd[0]);
	*other = fd[1];
	return fd[0];
}

static void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void shutdown_has_a_reason(void **state)
{
	int other, fd = begin(&other);

	(void)state;
	put(other, "{\"QMP\": {}}\r\n{\"return\": {}}\r\n");
	assert_true(monitor_read(&m));
	assert_int_equal(m.end, MONITOR_RUNS);
	/* In pieces, as a stream has it. */
	put(other, "{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-sh");
	assert_true(monitor_read(&m));
	assert_int_equal(m.end, MONITOR_RUNS);
	put(other, "utdown\"}}\r\n");
	close(other);
	assert_false(monitor_read(&m));
	assert_int_equal(m.end, MONITOR_POWEROFF);
	close(fd);
}

static void floods_are_cut(void **state)
{
	static char much[4096];
	int other, fd = begin(&other);

	(void)state;
	memset(much, 'x', sizeof(much) - 1);
	for (unsigned int i = 0; i < 3 * MONITOR_MAX / sizeof(much); i++) {
		put(other, much);
		assert_true(monitor_read(&m));
	}
	put(other, "{\"data\": {\"reason\": \"guest-reset\"}}\r\n");
	assert_true(monitor_read(&m));
	assert_int_equal(m.end, MONITOR_RESET);
	close(other);
	close(fd);
}

static void the_answer_is_waited_for(void **state)
{
	int other, fd = begin(&other);
	char asked[512];

	(void)state;
	put(other, "{\"return\": \"CPU#0\\r\\n" HALTED "\", \"id\": \"regs\"}\r\n");
	/* Text before the question is no answer. */
	assert_int_equal(monitor_is_halted(&m, &never), MONITOR_NO_ANSWER);
	assert_true(read(other, asked, sizeof(asked)) > 0);
	close(other);
	close(fd);
}

static void a_flood_is_given_up(void **state)
{
	static char words[MONITOR_TURN];
	int other, fd = begin(&other);
	size_t sent = 0;
	ssize_t n;
	bool open;

	(void)state;
	memset(words, 'A', sizeof(words));
	assert_int_equal(fcntl(other, F_SETFL, O_NONBLOCK), 0);
	while (!m.floods) {
		assert_true(sent < 4 * MONITOR_MOST);
		/* A peer that is always ready: what a turn takes is bounded all the same. */
		while ((n = write(other, words, sizeof(words))) > 0)
			sent += (size_t)n;
		open = monitor_read(&m);
		assert_int_equal(open, !m.floods);
	}
	assert_int_equal(m.fd, -1);
	assert_int_equal(monitor_is_halted(&m, &never), MONITOR_NO_ANSWER);
	close(other);
	close(fd);
}

/* Answers each question, until the other end is shut down. */
static void *answers(void *ctx)
{
	static const char halted[] =
		"{\"return\": \"CPU#0\\r\\n" HALTED "\", \"id\": \"regs\"}\r\n";
	const int *fd = ctx;
	char asked[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(*fd, asked + len, sizeof(asked) - 1 - len)) > 0) {
		len += (size_t)n;
		asked[len] = '\0';
		if (!strstr(asked, "\"regs\""))
			continue;
		len = 0;
		(void)!send(*fd, halted, sizeof(halted) - 1, MSG_NOSIGNAL);
	}
	return NULL;
}

/* QEMU would answer, but the answer is not waited for. */
static void a_question_ends_with_the_run(void **state)
{
	static const atomic_bool now = true;
	int other, fd = begin(&other);
	pthread_t peer;

	(void)state;
	assert_int_equal(pthread_create(&peer, NULL, answers, &other), 0);
	assert_int_equal(monitor_is_halted(&m, &now), MONITOR_NO_ANSWER);
	shutdown(fd, SHUT_RDWR);
	pthread_join(peer, NULL);
	close(other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_vcpus_must_stand),
		cmocka_unit_test(shutdown_has_a_reason),
		cmocka_unit_test(floods_are_cut),
		cmocka_unit_test(the_answer_is_waited_for),
		cmocka_unit_test(a_flood_is_given_up),
		cmocka_unit_test(a_question_ends_with_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
