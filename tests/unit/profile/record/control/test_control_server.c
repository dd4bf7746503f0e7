/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket's thread against clients that are slow, wrong, hostile or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "profile/record/control/request.h"
#include "profile/record/control/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE (4u << 20) /* more than a socket takes at once */

static char root[64], path[96];
static struct control_listener listener;
static struct control_server *server;
static atomic_uint later_calls, begun;
static atomic_int hold; /* microseconds that a later answer takes */

/* -- the run --------------------------------------------------------------------------- */

static void *work(void *arg)
{
	usleep((useconds_t)atomic_load(&hold));
	control_server_done(arg);
	return NULL;
}

static void fill(struct buf *b, size_t len)
{
	uint8_t *room = buf_reserve(b, len);

	memset(room, 'x', len);
	b->len += len;
}

static bool on_request(void *ctx, const struct control_request *r, struct buf *reply)
{
	struct json_writer w;
	pthread_t thread;

	(void)ctx;
	if (r->cmd == CONTROL_PROFILE) {
		/* One at a time. */
		assert_int_equal(atomic_fetch_add(&begun, 1), 0);
		assert_int_equal(pthread_create(&thread, NULL, work, server), 0);
		pthread_detach(thread);
		return false;
	}
	control_reply_begin(&w, reply, r);
	buf_printf(reply, ",\"fill\":\"");
	if (r->cmd == CONTROL_STATS)
		fill(reply, LARGE);
	if (r->cmd == CONTROL_COLLECT)
		fill(reply, CONTROL_MAX_REPLY);
	buf_u8(reply, '"');
	control_reply_end(&w);
	return true;
}

static bool is_later(enum control_cmd cmd)
{
	return cmd == CONTROL_PROFILE;
}

static void on_later(void *ctx, struct buf *reply)
{
	(void)ctx;
	atomic_fetch_sub(&begun, 1);
	buf_printf(reply, "{\"later\":%u}", atomic_fetch_add(&later_calls, 1) + 1);
}

static void on_tick(void *ctx)
{
	(void)ctx;
}

static const struct control_ops ops = { on_request, is_later, on_later, on_tick };

static void start(const struct control_limits *limits)
{
	assert_int_equal(control_server_start(&server, &listener, &ops, NULL, limits, NULL), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/s", root);
	atomic_store(&later_calls, 0);
	atomic_store(&begun, 0);
	atomic_store(&hold, 1000);
	server = NULL;
	return control_listen(&listener, path, NULL);
}

static int teardown(void **state)
{
	(void)state;
	control_server_stop(server);
	control_unlisten(&listener);
	return file_remove_tree(root, NULL);
}

/* -- a client -------------------------------------------------------------------------- */

static int client(void)
{
	/* A lost reply fails the test instead of hanging it. */
	const struct timeval patience = { .tv_sec = 30 };
	int fd = control_connect(path, NULL);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static void say(int fd, const char *text)
{
	size_t len = strlen(text);

	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

/* A line without its end; the length, 0 when the server has closed. */
static size_t hear(int fd, char *line, size_t size)
{
	static char chunk[65536];
	size_t n = 0;

	for (bool end = false; !end;) {
		/* Bytes after the line stay for the next call. */
		ssize_t got = recv(fd, chunk, sizeof(chunk), MSG_PEEK);
		char *nl = got > 0 ? memchr(chunk, '\n', (size_t)got) : NULL;
		size_t len = nl ? (size_t)(nl - chunk) : (size_t)got;

		if (got < 0 && errno != ECONNRESET)
			fail_msg("no reply: %s", strerror(errno));
		if (got <= 0)
			return 0;
		if (n < size - 1)
			memcpy(line + n, chunk, len < size - 1 - n ? len : size - 1 - n);
		n += len;
		end = nl != NULL;
		assert_int_equal(recv(fd, chunk, len + end, 0), len + end);
	}
	line[n < size ? n : size - 1] = '\0';
	return n;
}

static void expect(int fd, const char *want)
{
	char line[400];

	assert_int_not_equal(hear(fd, line, sizeof(line)), 0);
	if (!strstr(line, want))
		fail_msg("heard %s, not %s", line, want);
}

static void expect_closed(int fd)
{
	char line[400];

	assert_int_equal(hear(fd, line, sizeof(line)), 0);
	close(fd);
}

/* Somebody else is served as if nothing were. */
static void expect_served(void)
{
	int fd = client();

	say(fd, "{\"cmd\":\"status\",\"id\":77}\n");
	expect(fd, "\"id\":77");
	close(fd);
}

/* -- tests ----------------------------------------------------------------------------- */

static void test_lines(void **state)
{
	int fd;

	(void)state;
	start(NULL);
	fd = client();
	say(fd, "{\"cmd\":\"status\",\"id\":1}\n{\"cmd\":\"status\",\"id\":2}\r\n{\"cmd\":");
	expect(fd, "\"ok\":true,\"id\":1");
	expect(fd, "\"id\":2");
	expect_served();
	say(fd, "\"status\",\"id\":3}\n\n");
	expect(fd, "\"id\":3");
	expect(fd, "\"ok\":false"); /* the empty line */
	/* Nothing more is sent, but what was is answered. */
	say(fd, "{\"cmd\":\"status\",\"id\":4}\n");
	shutdown(fd, SHUT_WR);
	expect(fd, "\"id\":4");
	expect_closed(fd);
}

static void test_garbage(void **state)
{
	unsigned char noise[4096];
	int fd;

	(void)state;
	start(NULL);
	srand(1);
	for (unsigned int i = 0; i < 200; i++) {
		fd = client();
		for (unsigned int k = 0; k < sizeof(noise); k++)
			noise[k] = (unsigned char)rand();
		(void)!send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		/* Gone at once, half of the time without hearing anything. */
		if (i % 2)
			(void)!recv(fd, noise, sizeof(noise), MSG_DONTWAIT);
		close(fd);
	}
	fd = client();
	say(fd, "GET / HTTP/1.1\r\n{\"cmd\":\"status\"}\n");
	expect(fd, "not a line of JSON");
	expect(fd, "\"ok\":true");
	close(fd);
	expect_served();
}

/* The longest line is one of CONTROL_MAX_LINE bytes; of a longer one no more is read. */
static void test_long_lines(void **state)
{
	static char line[1 << 20];
	struct pollfd p;
	size_t sent = 0;
	int fd;

	(void)state;
	start(NULL);
	fd = client();
	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"cmd\":\"status\",\"id\":8}", 23);
	line[CONTROL_MAX_LINE] = '\n';
	assert_int_equal(send(fd, line, CONTROL_MAX_LINE + 1, MSG_NOSIGNAL), CONTROL_MAX_LINE + 1);
	expect(fd, "\"id\":8");
	line[CONTROL_MAX_LINE] = ' ';
	p = (struct pollfd){ .fd = fd, .events = POLLOUT };
	while (sent < sizeof(line) && poll(&p, 1, 10000) == 1) {
		ssize_t n = send(fd, line + sent, sizeof(line) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			break;
		sent += (size_t)n;
	}
	assert_true(sent < sizeof(line));
	close(fd);
	fd = client();
	memset(line, 'a', CONTROL_MAX_LINE + 1);
	assert_int_equal(send(fd, line, CONTROL_MAX_LINE + 1, MSG_NOSIGNAL), CONTROL_MAX_LINE + 1);
	expect(fd, "too long");
	expect_closed(fd);
	expect_served();
}

static void test_many_clients(void **state)
{
	int fd[CONTROL_MAX_CLIENTS], more;

	(void)state;
	start(NULL);
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		fd[i] = client();
		say(fd[i], "{\"cmd\":\"status\"}\n");
		expect(fd[i], "\"ok\":true");
	}
	more = client();
	expect(more, "too many clients");
	expect_closed(more);
	close(fd[3]);
	/* Its place is free, once the server has seen it. */
	for (unsigned int tries = 0; tries < 100; tries++) {
		char line[200];

		more = client();
		(void)!send(more, "{\"cmd\":\"status\"}\n", 17, MSG_NOSIGNAL);
		if (hear(more, line, sizeof(line)) && strstr(line, "\"ok\":true"))
			break;
		close(more);
		more = -1;
		usleep(20000);
	}
	assert_true(more >= 0);
	close(more);
	for (unsigned int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (i != 3)
			close(fd[i]);
}

static void test_large_replies(void **state)
{
	char line[100];
	int fd;

	(void)state;
	start(NULL);
	fd = client();
	/* The second is begun only when the first is taken. */
	say(fd, "{\"cmd\":\"stats\"}\n{\"cmd\":\"stats\",\"id\":2}\n");
	expect_served();
	assert_true(hear(fd, line, sizeof(line)) > LARGE);
	assert_true(hear(fd, line, sizeof(line)) > LARGE);
	assert_non_null(strstr(line, "\"id\":2"));
	say(fd, "{\"cmd\":\"collect\",\"on\":true,\"id\":3}\n");
	assert_true(hear(fd, line, sizeof(line)) < 200);
	assert_non_null(strstr(line, "\"ok\":false,\"id\":3"));
	/* In the middle of a reply it is gone. */
	say(fd, "{\"cmd\":\"stats\"}\n");
	assert_int_equal(recv(fd, line, sizeof(line), 0), sizeof(line));
	close(fd);
	expect_served();
}

static void test_time_limits(void **state)
{
	const struct control_limits limits = { 300 * 1000000ull, 300 * 1000000ull,
					       900 * 1000000ull };
	int half, deaf, idle;
	char c[1000];

	(void)state;
	start(&limits);
	half = client();
	deaf = client();
	idle = client();
	say(half, "{\"cmd\":");
	say(deaf, "{\"cmd\":\"stats\"}\n");
	expect_served();
	expect_closed(half);
	/* The bytes that the socket accepted arrive, then the end. */
	usleep(1000000);
	for (size_t n = 0;;) {
		ssize_t got = recv(deaf, c, sizeof(c), 0);

		if (got <= 0)
			break;
		n += (size_t)got;
		assert_true(n < LARGE);
	}
	close(deaf);
	expect_closed(idle);
	expect_served();
}

static void test_later(void **state)
{
	int a, b;

	(void)state;
	start(NULL);
	atomic_store(&hold, 200000);
	a = client();
	b = client();
	say(a, "{\"cmd\":\"profile\"}\n{\"cmd\":\"status\",\"id\":5}\n");
	say(b, "{\"cmd\":\"profile\"}\n{\"cmd\":\"profile\"}\n");
	/* Others need not wait. */
	expect_served();
	assert_int_equal(atomic_load(&later_calls), 0);
	expect(a, "\"later\":");
	expect(a, "\"id\":5");
	expect(b, "\"later\":");
	expect(b, "\"later\":3");
	/* The client has gone before the reply: no other client gets it. */
	say(a, "{\"cmd\":\"profile\"}\n");
	expect_served();
	close(a);
	say(b, "{\"cmd\":\"profile\"}\n");
	expect(b, "\"later\":5");
	close(b);
}

/* A request in progress at the end is completed, and its reply can still be read. */
static void test_stop(void **state)
{
	int fd, other;

	(void)state;
	start(NULL);
	atomic_store(&hold, 300000);
	fd = client();
	other = client();
	say(fd, "{\"cmd\":\"profile\"}\n");
	while (!atomic_load(&begun))
		usleep(1000);
	say(other, "{\"cmd\":\"profile\"}\n");
	control_server_stop(server);
	server = NULL;
	expect(fd, "\"later\":1");
	expect_closed(fd);
	expect_closed(other);
	assert_int_equal(atomic_load(&later_calls), 1);
}

/* A client that takes nothing does not hold up the end. */
static void test_stop_deaf(void **state)
{
	uint64_t before;
	int fd;

	(void)state;
	start(NULL);
	fd = client();
	say(fd, "{\"cmd\":\"stats\"}\n");
	expect_served();
	before = clock_mono_ns();
	control_server_stop(server);
	server = NULL;
	/* Far below the limit for writing, on however busy a machine. */
	assert_true(clock_mono_ns() - before < 9 * NSEC_PER_SEC);
	close(fd);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_lines),	 TEST(test_garbage),	   TEST(test_long_lines),
		TEST(test_many_clients), TEST(test_large_replies), TEST(test_time_limits),
		TEST(test_later),	 TEST(test_stop),	   TEST(test_stop_deaf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
