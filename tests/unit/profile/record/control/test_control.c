/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests, replies and places of the control socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "profile/record/control/path.h"
#include "profile/record/control/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	unsetenv("XDG_RUNTIME_DIR");
	return file_remove_tree(root, NULL);
}

static const char *at(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

/* -- requests -------------------------------------------------------------------------- */

static struct control_request r;

static void good(const char *line)
{
	struct err e = { 0 };

	if (control_request_parse(&r, line, strlen(line), &e))
		fail_msg("%s: %s", line, e.text);
}

static void bad(const char *line, const char *why)
{
	struct err e = { 0 };

	assert_int_equal(control_request_parse(&r, line, strlen(line), &e), -EINVAL);
	if (!strstr(e.text, why))
		fail_msg("%s: '%s', not '%s'", line, e.text, why);
}

static void test_requests(void **state)
{
	(void)state;
	good("{\"cmd\":\"hello\",\"version\":1}");
	assert_int_equal(r.cmd, CONTROL_HELLO);
	assert_int_equal(r.value, 1);
	assert_false(r.has_id);
	good(" { \"id\" : -4 , \"cmd\" : \"status\" } ");
	assert_true(r.cmd == CONTROL_STATUS && r.has_id && r.id == -4);
	good("{\"cmd\":\"collect\",\"on\":false}");
	assert_true(r.cmd == CONTROL_COLLECT && !r.on);
	good("{\"cmd\":\"vcpu\",\"vcpu\":3,\"on\":true}");
	assert_true(r.cmd == CONTROL_VCPU && r.on && !r.all && r.vcpu == 3);
	good("{\"cmd\":\"vcpu\",\"vcpu\":\"all\",\"on\":true}");
	assert_true(r.all);
	good("{\"cmd\":\"disarm\",\"event\":\"cycles:G\"}");
	assert_true(r.cmd == CONTROL_DISARM && r.nevents == 1);
	assert_string_equal(r.event[0].name, "cycles:G");
	good("{\"cmd\":\"event\",\"events\":[\"wall\",2]}");
	assert_true(r.nevents == 2 && !*r.event[1].name && r.event[1].index == 2);
	good("{\"cmd\":\"period\",\"value\":1000000,\"event\":0}");
	assert_true(r.cmd == CONTROL_PERIOD && r.value == 1000000);
	good("{\"value\":0.5,\"event\":\"wall\",\"cmd\":\"freq\"}");
	assert_true(r.cmd == CONTROL_FREQ && r.hz == 0.5);
	good("{\"cmd\":\"freq\",\"event\":\"wall\",\"value\":100}");
	assert_true(r.hz == 100);
	good("{\"cmd\":\"snapshot\",\"path\":\"a\\u00e9\"}");
	assert_string_equal(r.path, "a\xc3\xa9");
	good("{\"cmd\":\"profile\"}");
	assert_true(!r.since && !r.max_stacks && !r.max_depth);
	good("{\"cmd\":\"profile\",\"since\":7,\"max_stacks\":10,\"max_depth\":5}");
	assert_true(r.since == 7 && r.max_stacks == 10 && r.max_depth == 5);
	good("{\"cmd\":\"text\",\"addr\":\"0xFFFFffff81000000\"}");
	assert_true(r.addr == 0xffffffff81000000u && !r.len);
}

static void test_bad_requests(void **state)
{
	char line[CONTROL_MAX_LINE + 200];

	(void)state;
	bad("", "not a line of JSON");
	bad("{\"cmd\":\"sta", "not a line of JSON");
	bad("{\"cmd\":\"status\"} x", "not a line of JSON");
	bad("[]", "must be a JSON object");
	bad("{}", "needs a 'cmd'");
	bad("{\"cmd\":1}", "needs a 'cmd'");
	bad("{\"cmd\":\"frob\"}", "no command 'frob'");
	bad("{\"cmd\":\"status\",\"cmd\":\"stop\"}", "duplicate");
	bad("{\"cmd\":\"status\",\"id\":\"x\"}", "'id' must be");
	bad("{\"cmd\":\"status\",\"on\":true}", "'status' has no member 'on'");
	bad("{\"cmd\":\"collect\"}", "'collect' needs 'on'");
	bad("{\"cmd\":\"collect\",\"on\":1}", "true or false");
	bad("{\"cmd\":\"vcpu\",\"vcpu\":-1,\"on\":true}", "vCPU's number");
	bad("{\"cmd\":\"vcpu\",\"vcpu\":\"1\",\"on\":true}", "vCPU's number");
	bad("{\"cmd\":\"arm\",\"event\":\"\"}", "event's name");
	bad("{\"cmd\":\"event\",\"events\":[]}", "list of 1 to 8");
	bad("{\"cmd\":\"event\",\"events\":[1,2,3,4,5,6,7,8,9]}", "list of 1 to 8");
	bad("{\"cmd\":\"event\",\"events\":[null]}", "event's name");
	bad("{\"cmd\":\"period\",\"event\":0,\"value\":0}", "whole number");
	bad("{\"cmd\":\"period\",\"event\":0,\"value\":1.5}", "whole number");
	bad("{\"cmd\":\"period\",\"event\":0,\"value\":99999999999999999999}", "not a line");
	bad("{\"cmd\":\"freq\",\"event\":0,\"value\":-1}", "number of samples");
	bad("{\"cmd\":\"freq\",\"event\":0,\"value\":\"9\"}", "number of samples");
	bad("{\"cmd\":\"max-stack\",\"frames\":0}", "from 1 to");
	bad("{\"cmd\":\"snapshot\",\"path\":\"\"}", "a path of 1 to 4095");
	bad("{\"cmd\":\"mark\",\"name\":\"a\\u0000b\"}", "not a line");
	bad("{\"cmd\":\"mark\",\"name\":\"\xff\"}", "not a line");
	bad("{\"cmd\":\"profile\",\"max_stacks\":0}", "from 1 to 10000");
	bad("{\"cmd\":\"text\",\"addr\":4096}", "an address as");
	bad("{\"cmd\":\"text\",\"addr\":\"0x\"}", "an address as");
	bad("{\"cmd\":\"text\",\"addr\":\"0x-1\"}", "an address as");
	bad("{\"cmd\":\"text\",\"addr\":\"0x10000000000000000\"}", "an address as");
	/* An id that could be read is there for the reply. */
	bad("{\"cmd\":\"frob\",\"id\":9}", "frob");
	assert_true(r.has_id && r.id == 9);
	memset(line, ' ', sizeof(line));
	line[CONTROL_MAX_LINE + 1] = '\0';
	bad(line, "8192 bytes at most");
	snprintf(line, sizeof(line), "{\"cmd\":\"snapshot\",\"path\":\"%05000d\"}", 0);
	bad(line, "a path of 1 to 4095");
	for (unsigned int i = 0; i < CONTROL_CMDS; i++) {
		snprintf(line, sizeof(line), "{\"cmd\":\"%s\",\"nope\":1}",
			 control_cmd_name((enum control_cmd)i));
		bad(line, "nope");
	}
}

/* -- replies --------------------------------------------------------------------------- */

static void test_replies(void **state)
{
	struct json_writer w;
	struct buf b;

	(void)state;
	r = (struct control_request){ .has_id = true, .id = 5 };
	buf_init(&b);
	control_reply_begin(&w, &b, &r);
	json_u64(&w, "n", 3);
	json_bool(&w, "on", true);
	json_str(&w, "at", "0xffffffffffffffff");
	control_reply_end(&w);
	control_reply_error(&b, &r, "no \"x\"");
	buf_u8(&b, 0);
	assert_string_equal((char *)b.data, "{\"ok\":true,\"id\":5,\"n\":3,\"on\":true,"
					    "\"at\":\"0xffffffffffffffff\"}"
					    "{\"ok\":false,\"id\":5,\"error\":\"no \\\"x\\\"\"}");
	buf_deinit(&b);
}

/* -- places ---------------------------------------------------------------------------- */

static void test_listen(void **state)
{
	struct control_listener a, b;
	struct err e = { 0 };
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(control_connect(at("s"), &e), -ENOENT);
	assert_int_equal(control_listen(&a, at("s"), NULL), 0);
	assert_int_equal(stat(at("s"), &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	fd = control_connect(at("s"), NULL);
	assert_true(fd >= 0);
	close(fd);
	/* It is in use. */
	err_clear(&e);
	assert_int_equal(control_listen(&b, at("s"), &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "another program listens there"));
	control_unlisten(&b);
	assert_int_equal(stat(at("s"), &st), 0);
	control_unlisten(&a);
	assert_int_not_equal(stat(at("s"), &st), 0);
	control_unlisten(&a);
}

static void test_stale(void **state)
{
	struct control_listener dead, a, b;
	struct err e = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(control_listen(&dead, at("s"), NULL), 0);
	close(dead.fd); /* as of one that was killed */
	assert_int_equal(control_connect(at("s"), &e), -ECONNREFUSED);
	assert_int_equal(control_listen(&a, at("s"), NULL), 0);
	/* Somebody took our place: theirs stays. */
	unlink(at("s"));
	assert_int_equal(control_listen(&b, at("s"), NULL), 0);
	control_unlisten(&a);
	assert_int_equal(stat(at("s"), &st), 0);
	control_unlisten(&b);
	assert_int_not_equal(stat(at("s"), &st), 0);
}

static void test_bad_places(void **state)
{
	struct control_listener l;
	struct err e = { 0 };
	struct stat st;
	char path[300];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/%0200d", root, 0);
	assert_int_equal(control_listen(&l, path, &e), -ENAMETOOLONG);
	assert_non_null(strstr(e.text, "107 bytes"));
	err_clear(&e);
	f = fopen(at("file"), "w");
	fclose(f);
	assert_int_equal(control_listen(&l, at("file"), &e), -EEXIST);
	assert_non_null(strstr(e.text, "not a socket"));
	assert_int_equal(stat(at("file"), &st), 0);
	err_clear(&e);
	assert_int_equal(symlink("file", at("link")), 0);
	assert_int_equal(control_listen(&l, at("link"), &e), -EEXIST);
	err_clear(&e);
	assert_int_equal(control_listen(&l, at("no/s"), &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot create a socket"));
	err_clear(&e);
	assert_int_equal(control_listen(&l, "", &e), -EINVAL);
}

static void test_auto(void **state)
{
	pid_t pid[CONTROL_MAX_FOUND];
	struct control_listener l;
	struct err e = { 0 };
	char want[128];
	FILE *f;

	(void)state;
	setenv("XDG_RUNTIME_DIR", root, 1);
	assert_int_equal(control_find(pid), 0);
	assert_int_equal(control_listen(&l, CONTROL_PATH_AUTO, NULL), 0);
	snprintf(want, sizeof(want), "%s/kvmprof-%d.sock", root, (int)getpid());
	assert_string_equal(l.path, want);
	/* A file that is no socket of ours is not listed as a run. */
	f = fopen(at("kvmprof-1.sock"), "w");
	fclose(f);
	f = fopen(at("kvmprof-x.sock"), "w");
	fclose(f);
	assert_int_equal(control_find(pid), 1);
	assert_int_equal(pid[0], getpid());
	control_unlisten(&l);
	assert_int_equal(control_find(pid), 0);
	/* Others may write there. */
	assert_int_equal(chmod(root, 0777), 0);
	assert_int_equal(control_listen(&l, CONTROL_PATH_AUTO, &e), -EPERM);
	assert_non_null(strstr(e.text, "--control PATH"));
	chmod(root, 0700);
	setenv("XDG_RUNTIME_DIR", at("missing"), 1);
	assert_int_equal(control_listen(&l, CONTROL_PATH_AUTO, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_bad_requests),

		cmocka_unit_test(test_replies),
		cmocka_unit_test_setup_teardown(test_listen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_auto, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
