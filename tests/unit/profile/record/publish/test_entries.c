/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the names that entries get while a run goes on, and of removals at its end. */
#include "profile/record/publish/place.h"
#include "tests/unit/profile/record/publish/left.h"

/* -- entries of a stage ------------------------------------------------------------------------ */

static struct place stage_of(const char *name)
{
	struct place p = place_of(PLACE_STAGE, name, "");

	p.dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p.dir >= 0);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(place_check(&p, NULL), 0);
	return p;
}

static void entries_get_names(void **state)
{
	struct place p = stage_of("stage");
	struct err e = { 0 };

	(void)state;
	assert_int_equal(mkdir("sub", 0755), 0);
	for (unsigned int i = 0; i < 3; i++) {
		char text[] = "PERFILE2 0";

		text[sizeof(text) - 2] = (char)('0' + i);

		make_profile("stage/1", text);
		assert_int_equal(place_publish_entry(&p, "1", "sub/a", &e), 0);
		assert_true(is_text("sub/a/data", text));
	}
	assert_true(is_text("sub/a.old/data", "PERFILE2 1"));
	assert_int_equal(mode_of("sub/a"), 0700);
	make("stage/2", "PERFILE2 new");
	make("f.data", "PERFILE2 before");
	assert_int_equal(place_publish_entry(&p, "2", "f.data", &e), 0);
	assert_true(is_text("f.data", "PERFILE2 new") && is_text("f.data.old", "PERFILE2 before"));
	assert_int_equal(mode_of("f.data"), 0600);
	/* Other programs take no file of such a name for theirs; the files of a directory have names of a profile's. */
	make("stage/3", "PERFILE2=x\nall:\n\ttrue\n");
	assert_int_equal(place_publish_entry(&p, "3", "GNUmakefile", &e), -EINVAL);
	assert_int_equal(access("GNUmakefile", F_OK), -1);
	assert_int_equal(access("stage/3", F_OK), -1);
	err_clear(&e);
	assert_int_equal(place_publish(&p, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(place_remove(&p, &e), 0);
	assert_int_equal(access("stage", F_OK), -1);
	close(p.dir);
}

/* The names come from a run that a guest may have taken over. */
static void entries_get_no_other_names(void **state)
{
	static const char *const paths[] = {
		"",	     ".",	"..",	  "/",	      "/a",  "a/",   "a//b",	"./a",
		"../a",	     "sub/.",	"sub/..", "sub/../a", ".rc", ".d/a", "sub/.rc", "link/a",
		"missing/a", "plain/a", "plain",  "fifo",     "dir", "stop", "link",	"work",
	};
	static const char *const entries[] = { "", ".", "..", "x/y", "../plain", "missing" };
	struct place p = stage_of("stage");
	char name[PATH_MAX];
	struct err e = { 0 };

	(void)state;
	for (const char *const *d = (const char *const[]){ "sub", "dir", ".d", "stop.old", NULL };
	     *d; d++)
		assert_int_equal(mkdir(*d, 0755), 0);
	assert_int_equal(symlink("sub", "link"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	make("plain", "text");
	make("stop", "PERFILE2");
	/* A directory of the user's that has a file of that name, and no profile's. */
	make_profile("work", "some text");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		for (const char *const *entry = (const char *const[]){ "1", "2", NULL }; *entry;
		     entry++) {
			make_profile("stage/1", "PERFILE2");
			make("stage/2", "PERFILE2");
			err_clear(&e);
			assert_true(place_publish_entry(&p, *entry, paths[i], &e) < 0);
			assert_true(e.code && *e.text);
			/* An entry that gets no name takes no room until the run's end. */
			assert_int_equal(access(**entry == '1' ? "stage/1" : "stage/2", F_OK), -1);
			assert_int_equal(file_remove_tree("stage/1", NULL), 0);
			assert_int_equal(file_remove_tree("stage/2", NULL), 0);
		}
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		assert_true(place_publish_entry(&p, entries[i], "a", NULL) < 0);
	memset(name, 'x', sizeof(name)); /* without an end, and as long as a name may be */
	make_profile("stage/1", "PERFILE2");
	assert_true(place_publish_entry(&p, "1", name, NULL) < 0);
	assert_int_equal(access("stage/1", F_OK), -1);
	make_profile("stage/1", "PERFILE2");
	name[NAME_MAX] = 0;
	assert_int_equal(place_publish_entry(&p, "1", name, NULL), -ENAMETOOLONG);
	assert_true(is_text("plain", "text") && is_text("stop", "PERFILE2"));
	assert_true(is_text("work/data", "some text"));
	assert_int_equal(access("stage/1", F_OK), -1);
	assert_int_equal(access("a", F_OK), -1);
	close(p.dir);
}

static void what_is_no_profile_gets_no_name(void **state)
{
	struct place p = stage_of("stage");

	(void)state;
	make("stage/1", "#!/bin/sh");
	assert_int_equal(place_publish_entry(&p, "1", "a.data", NULL), -EPERM);
	make("stage/2", "PERFILE");
	assert_int_equal(place_publish_entry(&p, "2", "a.data", NULL), -EPERM);
	assert_int_equal(symlink("../secret", "stage/3"), 0);
	make("secret", "PERFILE2");
	assert_true(place_publish_entry(&p, "3", "a.data", NULL) < 0);
	assert_int_equal(link("secret", "stage/4"), 0);
	assert_int_equal(place_publish_entry(&p, "4", "a.data", NULL), -EPERM);
	make_profile("stage/5", "x");
	make("stage/5/.bashrc", "x");
	assert_int_equal(place_publish_entry(&p, "5", "a.data", NULL), -EPERM);
	assert_int_equal(mkfifo("stage/6", 0600), 0);
	assert_true(place_publish_entry(&p, "6", "a.data", NULL) < 0);
	assert_int_equal(access("a.data", F_OK), -1);
	assert_int_equal(mode_of("secret"), 0644);
	/* Another directory of the stage's name is none. */
	assert_int_equal(rename("stage", "moved"), 0);
	assert_int_equal(mkdir("stage", 0755), 0);
	make_profile("stage/1", "x");
	assert_int_equal(place_publish_entry(&p, "1", "a", NULL), -EPERM);
	p.kind = PLACE_SCRATCH;
	assert_int_equal(place_publish_entry(&p, "1", "a", NULL), -EINVAL);
	close(p.dir);
}

/* -- what has another kind of name --------------------------------------------------------------- */

static void a_snapshot_replaces(void **state)
{
	struct place p = place_of(PLACE_SNAPSHOT, "s.new", "s");
	struct err e = { 0 };

	(void)state;
	make("s", "before");
	make("s.new", "new");
	assert_int_equal(place_check(&p, &e), 0);
	assert_int_equal(place_publish(&p, &e), 0);
	assert_true(is_text("s", "new"));
	assert_int_equal(access("s.old", F_OK), -1);
	assert_int_equal(mode_of("s"), 0600);
	/* One that has no name until then. */
	p.file = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (p.file < 0)
		return;
	assert_int_equal(write(p.file, "third", 5), 5);
	assert_int_equal(place_check(&p, &e), 0);
	assert_int_equal(place_remove(&p, &e), 0);
	assert_int_equal(place_publish(&p, &e), 0);
	assert_true(is_text("s", "third"));
	assert_int_equal(access("s.new", F_OK), -1);
	close(p.file);
	/* A directory that came to its name stays. */
	assert_int_equal(unlink("s"), 0);
	assert_int_equal(mkdir("s", 0755), 0);
	p.file = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(place_check(&p, &e), 0);
	assert_int_equal(place_publish(&p, &e), -EEXIST);
	assert_int_equal(access("s.new", F_OK), -1);
	close(p.file);
}

static void a_socket_is_removed(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "sock" };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct place p = place_of(PLACE_SOCKET, "sock", "");

	(void)state;
	make("sock", "no socket");
	assert_int_equal(place_check(&p, NULL), -EINVAL);
	assert_int_equal(unlink("sock"), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(place_check(&p, NULL), 0);
	assert_int_equal(place_publish(&p, NULL), -EINVAL);
	assert_int_equal(place_remove(&p, NULL), 0);
	assert_int_equal(access("sock", F_OK), -1);
}

/* The run created the cache: without an addition it goes with the place for them, and else stays. */
static void an_empty_cache_is_removed(void **state)
{
	struct place p = place_of(PLACE_CACHE, "stage", "cache");

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		if (i < 2)
			assert_int_equal(mkdir("cache", 0755), 0);
		p.dir = open("cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (i == 2)
			break;
		assert_int_equal(mkdirat(p.dir, "stage", 0755), 0);
		assert_int_equal(place_check(&p, NULL), 0);
		if (i) {
			assert_int_equal(mkdir("cache/stage/prog", 0755), 0);
			assert_int_equal(mkdir("cache/stage/prog/0123456789", 0755), 0);
			make("cache/stage/prog/0123456789/elf", "x");
		}
		/* Again and again: the place stays until it is removed. */
		for (unsigned int n = 0; n < 3; n++)
			assert_int_equal(place_publish(&p, NULL), 0);
		assert_int_equal(place_remove(&p, NULL), 0);
		assert_int_equal(access("cache", F_OK), i ? 0 : -1);
		assert_int_equal(access("cache/stage", F_OK), -1);
		close(p.dir);
	}
	assert_true(is_text("cache/prog/0123456789/elf", "x"));
	/* One that existed has no name here. */
	p.name[0] = 0;
	assert_int_equal(file_remove_tree("cache/prog", NULL), 0);
	assert_int_equal(file_remove_tree("cache/.build-id", NULL), 0);
	assert_int_equal(mkdirat(p.dir, "stage", 0755), 0);
	assert_int_equal(place_check(&p, NULL), 0);
	assert_int_equal(place_remove(&p, NULL), 0);
	assert_int_equal(access("cache", F_OK), 0);
	close(p.dir);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(entries_get_names),
		TEST(entries_get_no_other_names),
		TEST(what_is_no_profile_gets_no_name),
		TEST(a_snapshot_replaces),
		TEST(a_socket_is_removed),
		TEST(an_empty_cache_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
