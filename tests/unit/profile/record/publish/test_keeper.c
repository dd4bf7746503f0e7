/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keeper: what it renames, and what it refuses of a run that a guest has taken over. */
#include "profile/record/publish/keeper.h"
#include "profile/record/publish/place.h"
#include "tests/unit/profile/record/publish/left.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* -- places -------------------------------------------------------------------------------- */

static void a_profile_gets_its_name_and_modes(void **state)
{
	struct err e = { 0 };
	struct place p;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		char text[2] = { (char)('0' + i), 0 };

		make_profile("a.tmp-1", text);
		p = place_of(PLACE_PROFILE, "a.tmp-1", "a");
		assert_int_equal(place_check(&p, &e), 0);
		assert_int_equal(place_publish(&p, &e), 0);
		assert_true(is_text("a/data", text));
	}
	assert_true(is_text("a.old/data", "1"));
	assert_int_equal(access("a.tmp-1", F_OK), -1);
	assert_int_equal(mode_of("a"), 0700);
	assert_int_equal(mode_of("a/dso"), 0700);
	assert_int_equal(mode_of("a/data"), 0600);
	assert_int_equal(mode_of("a/dso/0123abcd"), 0600);
}

static void a_file_gets_its_name_and_mode(void **state)
{
	struct err e = { 0 };
	struct place p = place_of(PLACE_FILE, "f.tmp-1", "f");

	(void)state;
	make("f.tmp-1", "new");
	make("f", "before");
	assert_int_equal(place_check(&p, &e), 0);
	assert_int_equal(place_publish(&p, &e), 0);
	assert_true(is_text("f", "new") && is_text("f.old", "before"));
	assert_int_equal(mode_of("f"), 0600);
}

static void plant_link(void)
{
	assert_int_equal(unlink("a.tmp-1/text"), 0);
	assert_int_equal(symlink("../secret", "a.tmp-1/text"), 0);
}

static void plant_dir_link(void)
{
	assert_int_equal(rename("a.tmp-1/dso", "elsewhere"), 0);
	assert_int_equal(symlink("../elsewhere", "a.tmp-1/dso"), 0);
}

static void plant_fifo(void)
{
	assert_int_equal(unlink("a.tmp-1/data"), 0);
	assert_int_equal(mkfifo("a.tmp-1/data", 0600), 0);
}

static void plant_socket(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "a.tmp-1/dso/ab" };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

static void plant_hard_link(void)
{
	assert_int_equal(unlink("a.tmp-1/text"), 0);
	assert_int_equal(link("secret", "a.tmp-1/text"), 0);
}

static void plant_file(void)
{
	make("a.tmp-1/.bashrc", "x");
}

static void plant_dir(void)
{
	assert_int_equal(mkdir("a.tmp-1/kcore_dir/more", 0755), 0);
}

static void plant_name_of_no_id(void)
{
	make("a.tmp-1/dso/run.sh", "x");
}

static void exchange_all(void)
{
	assert_int_equal(rename("a.tmp-1", "moved"), 0);
	make_profile("a.tmp-1", "another");
}

static void exchange_for_link(void)
{
	assert_int_equal(rename("a.tmp-1", "moved"), 0);
	assert_int_equal(symlink("moved", "a.tmp-1"), 0);
}

/* A run that was taken over may leave these: each is refused, and nothing else is changed. */
static void what_is_planted_is_refused(void **state)
{
	static void (*const plant[])(void) = {
		plant_link, plant_dir_link, plant_fifo,		 plant_socket, plant_hard_link,
		plant_file, plant_dir,	    plant_name_of_no_id, exchange_all, exchange_for_link,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plant) / sizeof(*plant); i++) {
		struct place p = place_of(PLACE_PROFILE, "a.tmp-1", "a");
		struct err e = { 0 };

		make("secret", "secret");
		make_profile("a", "before");
		make_profile("a.tmp-1", "new");
		assert_int_equal(place_check(&p, &e), 0);
		plant[i]();
		assert_true(place_publish(&p, &e) < 0);
		assert_true(e.code && *e.text);
		assert_true(is_text("a/data", "before"));
		assert_int_equal(access("a.old", F_OK), -1);
		assert_true(is_text("secret", "secret"));
		assert_int_equal(mode_of("secret"), 0644);
		for (const char *const *x = (const char *const[]){ "a", "a.tmp-1", "secret",
								   "elsewhere", "moved", NULL };
		     *x; x++)
			assert_int_equal(file_remove_tree(*x, NULL), 0);
	}
}

static void what_is_no_profile_stays(void **state)
{
	static const char *const taken[] = { "a", "a.old" };
	struct err e = { 0 };
	struct place p = place_of(PLACE_PROFILE, "a.tmp-1", "a");

	(void)state;
	make_profile("a.tmp-1", "new");
	assert_int_equal(place_check(&p, &e), 0);
	for (size_t i = 0; i < 2; i++) {
		if (i)
			make("a", "before");
		assert_int_equal(mkdir(taken[i], 0755), 0);
		err_clear(&e);
		assert_int_equal(place_publish(&p, &e), -EEXIST);
		assert_int_equal(rmdir(taken[i]), 0);
		assert_int_equal(mkfifo(taken[i], 0644), 0);
		err_clear(&e);
		assert_int_equal(place_publish(&p, &e), -EEXIST);
		assert_int_equal(unlink(taken[i]), 0);
	}
	err_clear(&e);
	assert_int_equal(place_publish(&p, &e), 0);
}

static void removal_follows_no_link(void **state)
{
	struct err e = { 0 };
	struct place p = place_of(PLACE_SCRATCH, "scratch", "");

	(void)state;
	assert_int_equal(mkdir("kept", 0755), 0);
	make("kept/file", "kept");
	assert_int_equal(mkdir("scratch", 0755), 0);
	assert_int_equal(symlink("../kept", "scratch/link"), 0);
	assert_int_equal(place_check(&p, &e), 0);
	assert_int_equal(place_publish(&p, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(place_remove(&p, &e), 0);
	assert_int_equal(access("scratch", F_OK), -1);
	assert_true(is_text("kept/file", "kept"));
	/* Another directory of that name is not the one that was registered. */
	assert_int_equal(place_remove(&p, &e), 0);
	assert_int_equal(mkdir("other", 0755), 0);
	assert_int_equal(mkdir("scratch", 0755), 0);
	p.ino = 0;
	assert_int_equal(place_remove(&p, &e), -EPERM);
}

static void names_are_single_components(void **state)
{
	static const char *const bad[] = { "", ".", "..", "../x", "x/y", "/x", "x/", "same" };
	struct place p;

	(void)state;
	make("same", "x");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		p = place_of(PLACE_FILE, "same", bad[i]);
		assert_int_equal(place_check(&p, NULL), -EINVAL);
		if (!strcmp(bad[i], "same"))
			continue;
		p = place_of(PLACE_FILE, bad[i], "x");
		assert_int_equal(place_check(&p, NULL), -EINVAL);
	}
	p = place_of(PLACE_FILE, "same", "x");
	memset(p.name, 'x', sizeof(p.name)); /* without an end */
	assert_int_equal(place_check(&p, NULL), -EINVAL);
	p = place_of(PLACE_PROFILE, "same", "x"); /* a file is no directory */
	assert_int_equal(place_check(&p, NULL), -EINVAL);
	p = place_of((enum place_kind)77, "same", "x");
	assert_int_equal(place_check(&p, NULL), -EINVAL);
}

/* -- the process ----------------------------------------------------------------------------- */

static int refuses_to_bind(void *ctx, const struct keeper_dir *dir, unsigned int n, struct err *e)
{
	(void)ctx;
	(void)dir;
	(void)n;
	return err_set(e, EPERM, "not bound");
}

/* Returns the keeper's pid: the only child. */
static pid_t child(void)
{
	char path[64], text[32] = "";
	cleanup_close int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	return (pid_t)atoi(text);
}

/* Returns the keeper's socket on this side: the only socket that is open. */
static int socket_of_keeper(void)
{
	for (int fd = 3; fd < 64; fd++) {
		struct stat st;

		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			return fd;
	}
	return -1;
}

static struct keeper *start(void)
{
	const struct keeper_confine none = { NULL, NULL, 0 };
	struct keeper *k = NULL;
	struct err e = { 0 };

	assert_int_equal(keeper_start(&k, &none, &e), 0);
	return k;
}

static void a_sealed_keeper_publishes(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };

	(void)state;
	make_profile("a.tmp-1", "new");
	make("f.tmp-1", "file");
	assert_int_equal(keeper_add(k, KEEPER_PROFILE, "./a.tmp-1", "./a", &e), 0);
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 1);
	assert_int_equal(keeper_seal(k, &e), 0);
	assert_int_equal(keeper_sealed(k, &e), 0);
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "g", &e), -EPERM);
	err_clear(&e);
	assert_int_equal(keeper_publish(k, 2, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(keeper_publish(k, UINT_MAX, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(keeper_publish(k, 0, &e), 0);
	assert_int_equal(keeper_remove(k, 1, &e), 0);
	assert_true(is_text("a/data", "new"));
	assert_int_equal(access("f.tmp-1", F_OK), -1);
	/* The temporary of this profile has its final name by now. */
	assert_true(keeper_publish(k, 0, &e) < 0);
	keeper_end(k);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void one_that_cannot_be_bound_ends(void **state)
{
	const struct keeper_confine refuses = { refuses_to_bind, NULL, 0 };
	struct keeper *k = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(keeper_start(&k, &refuses, &e), 0);
	make_profile("a.tmp-1", "new");
	make_profile("a", "old");
	make("f.tmp-1", "file");
	assert_int_equal(keeper_add(k, KEEPER_PROFILE, "a.tmp-1", "a", &e), 0);
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 1);
	assert_int_equal(keeper_seal(k, &e), 0);
	assert_int_equal(keeper_sealed(k, &e), -EPERM);
	assert_string_equal(e.text, "not bound");
	err_clear(&e);
	assert_int_equal(access("a.tmp-1/data", F_OK), 0);
	/* Nothing gets its name any more, and what had a temporary one is gone. */
	assert_int_equal(keeper_publish(k, 0, &e), -EPIPE);
	assert_true(is_text("a/data", "old"));
	assert_int_equal(access("a.tmp-1", F_OK), -1);
	assert_int_equal(access("f.tmp-1", F_OK), -1);
	assert_int_equal(access("f", F_OK), -1);
	keeper_end(k);
}

static void one_that_cannot_be_bound_removes_at_the_end(void **state)
{
	const struct keeper_confine refuses = { refuses_to_bind, NULL, 0 };
	struct keeper *k = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(keeper_start(&k, &refuses, &e), 0);
	make("f.tmp-1", "file");
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 0);
	assert_int_equal(keeper_seal(k, &e), 0);
	assert_int_equal(keeper_sealed(k, &e), -EPERM);
	keeper_end(k);
	assert_int_equal(access("f.tmp-1", F_OK), -1);
}

static void places_are_limited(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };

	(void)state;
	make("f.tmp-1", "x");
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "../f", &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(keeper_add(k, KEEPER_FILE, "missing", "f", &e), -ENOENT);
	err_clear(&e);
	for (unsigned int i = 0; i < KEEPER_MAX_PLACES; i++)
		assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), (int)i);
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), -E2BIG);
	keeper_end(k);
}

/* Messages of each length, with bytes of each kind, past the functions of this side. */
static void odd_messages_change_nothing(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };
	static uint8_t message[16384];
	uint32_t seed = 1;
	int fd;

	(void)state;
	make("f.tmp-1", "x");
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 0);
	assert_int_equal(keeper_seal(k, &e), 0);
	assert_int_equal(keeper_sealed(k, &e), 0);
	fd = socket_of_keeper();
	assert_true(fd >= 0);
	for (unsigned int i = 1; i < 3000; i++) {
		size_t len = i < 64 ? i : (seed >> 8) % sizeof(message) + 1;
		uint8_t answer[1024];
		int32_t ret;

		for (size_t at = 0; at < len; at++) {
			seed = seed * 1103515245u + 12345u;
			message[at] = (uint8_t)(seed >> 16) % (i & 1 ? 256 : 6);
		}
		message[0] |= 4; /* no request has this number: publish is 2, remove is 3 */
		assert_int_equal(send(fd, message, len, MSG_NOSIGNAL), (ssize_t)len);
		assert_true(recv(fd, answer, sizeof(answer), 0) > 4);
		memcpy(&ret, answer, sizeof(ret));
		assert_int_equal(ret, -EINVAL);
	}
	/* The request that registers a place, after the seal. */
	memset(message, 0, sizeof(message));
	for (size_t len = 1; len < sizeof(message); len += len < 16 ? 1 : 61) {
		uint8_t answer[1024];
		int32_t ret;

		assert_int_equal(send(fd, message, len, MSG_NOSIGNAL), (ssize_t)len);
		assert_true(recv(fd, answer, sizeof(answer), 0) > 4);
		memcpy(&ret, answer, sizeof(ret));
		assert_int_equal(ret, -EINVAL);
	}
	assert_true(is_text("f.tmp-1", "x"));
	assert_int_equal(access("f", F_OK), -1);
	assert_int_equal(keeper_publish(k, 0, &e), 0);
	assert_true(is_text("f", "x"));
	keeper_end(k);
}

static void a_sealed_keeper_names_entries(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(mkdir("stage", 0700), 0);
	assert_int_equal(keeper_add(k, KEEPER_STAGE, "stage", NULL, &e), 0);
	if (fd >= 0) {
		assert_int_equal(write(fd, "bytes", 5), 5);
		assert_int_equal(keeper_add_file(k, fd, "s.new", "s", &e), 1);
		close(fd);
	}
	assert_int_equal(keeper_seal(k, &e), 0);
	assert_int_equal(keeper_sealed(k, &e), 0);
	make_profile("stage/1", "new");
	assert_int_equal(keeper_publish_entry(k, 0, "1", "../a", &e), -EINVAL);
	assert_int_equal(access("stage/1", F_OK), -1);
	err_clear(&e);
	make_profile("stage/1", "new");
	assert_int_equal(keeper_publish_entry(k, 7, "1", "a", &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(keeper_publish_entry(k, 0, "1", "a", &e), 0);
	assert_true(is_text("a/data", "new"));
	if (fd >= 0) {
		assert_int_equal(keeper_publish_entry(k, 1, "s.new", "t", &e), -EINVAL);
		err_clear(&e);
		assert_int_equal(keeper_publish(k, 1, &e), 0);
		assert_true(is_text("s", "bytes"));
	}
	keeper_end(k);
}

static void one_that_is_killed_is_lost(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };

	(void)state;
	make("f.tmp-1", "x");
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 0);
	assert_int_equal(kill(child(), SIGKILL), 0);
	assert_int_equal(keeper_publish(k, 0, &e), -EPIPE);
	assert_non_null(strstr(e.text, "that renames results"));
	err_clear(&e);
	assert_int_equal(keeper_remove(k, 0, &e), -EPIPE);
	assert_true(is_text("f.tmp-1", "x"));
	keeper_end(k);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void one_that_is_stopped_is_lost(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };

	(void)state;
	make("f.tmp-1", "x");
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 0);
	assert_int_equal(kill(child(), SIGSTOP), 0);
	keeper_limit_wait(k);
	assert_int_equal(keeper_publish(k, 0, &e), -EPIPE);
	assert_non_null(strstr(e.text, "does not answer"));
	/* It is dead, and will not rename later. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_true(is_text("f.tmp-1", "x"));
	keeper_end(k);
}

static void one_that_is_stopped_delays_no_end(void **state)
{
	struct keeper *k = start();

	(void)state;
	assert_int_equal(kill(child(), SIGSTOP), 0);
	keeper_end(k);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void count_progress(void *ctx)
{
	(*(unsigned int *)ctx)++;
}

static void removal_reports_progress(void **state)
{
	struct err e = { 0 };
	unsigned int n = 0;
	struct place p = place_of(PLACE_PROFILE, "a.tmp-1", "a");

	(void)state;
	p.progress = count_progress;
	p.ctx = &n;
	make_profile("a", "before");
	make_profile("a.old", "long before");
	make_profile("a.tmp-1", "new");
	assert_int_equal(place_check(&p, &e), 0);
	assert_int_equal(place_publish(&p, &e), 0);
	/* The directory itself, two in it and four files: the data goes first. */
	assert_int_equal(n, 7);
	assert_true(is_text("a.old/data", "before"));
}

static void signals_of_a_terminal_do_not_end_it(void **state)
{
	struct keeper *k = start();
	struct err e = { 0 };
	pid_t pid = child();

	(void)state;
	make("f.tmp-1", "x");
	/* Answered: from here on it has blocked them. */
	assert_int_equal(keeper_add(k, KEEPER_FILE, "f.tmp-1", "f", &e), 0);
	for (const int *s = (const int[]){ SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0 }; *s; s++)
		assert_int_equal(kill(pid, *s), 0);
	assert_int_equal(keeper_publish(k, 0, &e), 0);
	keeper_end(k);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_profile_gets_its_name_and_modes),
		TEST(a_file_gets_its_name_and_mode),
		TEST(what_is_planted_is_refused),
		TEST(what_is_no_profile_stays),
		TEST(removal_follows_no_link),
		TEST(names_are_single_components),
		TEST(a_sealed_keeper_publishes),
		TEST(a_sealed_keeper_names_entries),
		TEST(one_that_cannot_be_bound_ends),
		TEST(one_that_cannot_be_bound_removes_at_the_end),
		TEST(places_are_limited),
		TEST(odd_messages_change_nothing),
		TEST(one_that_is_killed_is_lost),
		TEST(one_that_is_stopped_is_lost),
		TEST(one_that_is_stopped_delays_no_end),
		TEST(removal_reports_progress),
		TEST(signals_of_a_terminal_do_not_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
