/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of the guest's network: what it has, and how its end is told. */
#include "tests/unit/skip.h"

#include "base/clock.h"
#include "vmm/dev/net_user.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS (10 * NSEC_PER_SEC)

static struct {
	struct net_link *link;
	atomic_uint ended, received;
	char how[64];
	pid_t *pid; /* PID of the process; shared with it */
} t;

static int bind_network(void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	*t.pid = getpid();
	return 0;
}

static int bind_refuses(void *ctx, struct err *e)
{
	(void)ctx;
	return err_set(e, EPERM, "no such rights");
}

static void network_ended(void *ctx, const char *how)
{
	assert_ptr_equal(ctx, &t);
	snprintf(t.how, sizeof(t.how), "%s", how);
	atomic_fetch_add(&t.ended, 1);
}

static void receive(void *ctx, const uint8_t *frame, size_t len)
{
	(void)frame;
	assert_ptr_equal(ctx, &t);
	assert_true(len >= 14 && len <= NET_FRAME_MAX);
	atomic_fetch_add(&t.received, 1);
}

static const struct net_config config = {
	.kind = NET_USER, .bind = bind_network, .ended = network_ended, .ctx = &t
};

static int set_up(void **state)
{
	(void)state;
	t.link = NULL;
	t.ended = t.received = 0;
	t.pid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return t.pid == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(t.pid, 4096);
	/* No process is left. */
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

static void begin(void)
{
	struct err e = { 0 };
	int ret = net_user_new(&t.link, &config, receive, &t, &e);

	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(t.link->start(t.link, &e), 0);
}

/* RFC 826: 10.0.2.15 looks for 10.0.2.2. */
static bool send_arp(void)
{
	uint8_t f[42] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 1,	2,    3,  4, 8, 6,
			  0,	1,    8,    0,	  6,	4,    0,    1,	  0x52, 0x54, 1,  2, 3, 4,
			  10,	0,    2,    15,	  0,	0,    0,    0,	  0,	0,    10, 0, 2, 2 };

	return t.link->send(t.link, f, sizeof(f));
}

static bool wait_until(atomic_uint *n, unsigned int least)
{
	uint64_t end = clock_mono_ns() + LIMIT_NS;

	while (atomic_load(n) < least && clock_mono_ns() < end)
		usleep(1000);
	return atomic_load(n) >= least;
}

/* Standard streams, its socket and a pipe; none of them is another's. */
static void has_little(void **state)
{
	char path[64], to[256];
	struct dirent *d;
	unsigned int n = 0;
	DIR *dir;

	(void)state;
	begin();
	assert_int_not_equal(*t.pid, getpid());
	snprintf(path, sizeof(path), "/proc/%d/fd", *t.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		ssize_t len;

		if (d->d_name[0] == '.')
			continue;
		n++;
		len = readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1);
		assert_true(len > 0);
		to[len] = 0;
		if (atoi(d->d_name) > 2)
			assert_true(!strncmp(to, "socket:", 7) || !strncmp(to, "pipe:", 5));
	}
	closedir(dir);
	assert_int_equal(n, 5);
	t.link->destroy(t.link);
	assert_int_equal(t.ended, 0);
}

static void carries_frames(void **state)
{
	(void)state;
	begin();
	assert_true(send_arp());
	assert_true(wait_until(&t.received, 1));
	t.link->destroy(t.link);
	assert_int_equal(kill(*t.pid, 0), -1);
}

static void its_end_is_told_once(void **state)
{
	(void)state;
	begin();
	assert_int_equal(kill(*t.pid, SIGKILL), 0);
	assert_true(wait_until(&t.ended, 1));
	assert_string_equal(t.how, "was ended by signal 9");
	/* Frames that are sent from now on are lost. */
	for (unsigned int i = 0; i < 100; i++)
		assert_false(send_arp());
	t.link->destroy(t.link);
	assert_int_equal(t.ended, 1);
}

/* A vCPU does not wait for it, and neither does the end. */
static void one_that_is_stopped_keeps_nobody(void **state)
{
	uint64_t begun = clock_mono_ns();
	bool taken = true;

	(void)state;
	begin();
	assert_int_equal(kill(*t.pid, SIGSTOP), 0);
	for (unsigned int i = 0; i < 100000 && taken; i++)
		taken = send_arp();
	assert_false(taken);
	t.link->destroy(t.link);
	assert_int_equal(kill(*t.pid, 0), -1);
	assert_true(clock_mono_ns() - begun < LIMIT_NS);
}

static void one_without_rights_is_told(void **state)
{
	struct net_config cfg = config;
	struct err e = { 0 };
	int ret;

	(void)state;
	cfg.bind = bind_refuses;
	ret = net_user_new(&t.link, &cfg, receive, &t, &e);
	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	assert_int_equal(ret, -EPERM);
	assert_string_equal(e.text, "no such rights");
}

/* The process talks to us as it likes: what is no frame does not come to the guest. */
static int bind_and_babble(void *ctx, struct err *e)
{
	static const struct {
		int32_t ret;
		char text[sizeof(((struct err *)NULL)->text)];
	} begun;
	static uint8_t bytes[65536];

	(void)ctx;
	(void)e;
	if (write(3, &begun, sizeof(begun)) < 0)
		return -EPIPE;
	for (size_t len = 1; len <= sizeof(bytes); len = len < 20 ? len + 1 : len * 2)
		(void)!write(3, bytes, len);
	(void)!write(3, bytes, NET_FRAME_MAX + 1);
	(void)!write(3, bytes, NET_FRAME_MAX);
	sleep(3600);
	return 0;
}

static void what_is_no_frame_is_dropped(void **state)
{
	struct net_config cfg = config;
	struct err e = { 0 };
	int ret;

	(void)state;
	cfg.bind = bind_and_babble;
	ret = net_user_new(&t.link, &cfg, receive, &t, &e);
	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(t.link->start(t.link, &e), 0);
	/* 14 to 19, 20 to 1280, and the last one: receive() looks at each length. */
	assert_true(wait_until(&t.received, 6 + 7 + 1));
	usleep(50000);
	assert_int_equal(t.received, 6 + 7 + 1);
	t.link->destroy(t.link);
	assert_int_equal(t.ended, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(has_little),
		TEST(carries_frames),
		TEST(its_end_is_told_once),
		TEST(one_that_is_stopped_keeps_nobody),
		TEST(one_without_rights_is_told),
		TEST(what_is_no_frame_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
