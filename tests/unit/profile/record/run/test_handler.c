/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of --on-hang and --on-panic: their environment, their statuses, and one that does not end. */
#include "profile/record/run/handler.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct handler h;
static struct err e;

static void begin(const char *hang, const char *panic)
{
	memset(&h, 0, sizeof(h));
	memset(&e, 0, sizeof(e));
	h.command[HANDLER_HANG] = hang;
	h.command[HANDLER_PANIC] = panic;
	assert_int_equal(handler_start(&h, &e), 0);
}

static int execute(enum handler_event event)
{
	const struct handler_message m = { event, 4711, "deadlock",
					   "tasks wait; $(exit 9) \"quoted\" 'text'" };

	return handler_execute(&h, &m, &e);
}

static void environment(void **state)
{
	char dir[] = "/tmp/test-handler-XXXXXX", file[64], command[400], text[400] = "";
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/out", dir);
	snprintf(command, sizeof(command),
		 "printf '%%s|' \"$KVMPROF_EVENT\" \"$KVMPROF_PID\" \"$KVMPROF_CAUSE\" "
		 "\"$KVMPROF_VERDICT\" >>%s",
		 file);
	begin(command, command);
	assert_int_equal(execute(HANDLER_HANG), 0);
	assert_int_equal(execute(HANDLER_PANIC), 0);
	assert_int_equal(handler_end(&h, 60000, &e), 0);
	f = fopen(file, "re");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_string_equal(text, "hang|4711|deadlock|tasks wait; $(exit 9) \"quoted\" 'text'|"
				  "panic|4711|deadlock|tasks wait; $(exit 9) \"quoted\" 'text'|");
	unlink(file);
	rmdir(dir);
}

static void statuses(void **state)
{
	(void)state;
	begin("exit 3", NULL);
	assert_int_equal(execute(HANDLER_HANG), 0);
	assert_int_equal(handler_end(&h, 60000, &e), -EIO);
	assert_string_equal(e.text, "the command ended with status 3");

	begin("kill -TERM $$", NULL);
	assert_int_equal(execute(HANDLER_HANG), 0);
	assert_int_equal(handler_end(&h, 60000, &e), -EIO);
	assert_string_equal(e.text, "the command ended with status 143");

	/* A command is not ended with the run. */
	begin("exec sleep 2", NULL);
	assert_int_equal(execute(HANDLER_HANG), 0);
	assert_int_equal(handler_end(&h, 1, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "still runs"));
}

static void no_command(void **state)
{
	(void)state;
	begin(NULL, NULL);
	assert_false(h.started);
	assert_int_equal(handler_end(&h, 60000, &e), 0);
	/* A message for which there is no command ends the process, and not this one. */
	begin("true", NULL);
	assert_int_equal(execute(HANDLER_PANIC), 0);
	assert_int_equal(handler_end(&h, 60000, &e), -EIO);
	assert_non_null(strstr(e.text, "has ended"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(environment),
		cmocka_unit_test(statuses),
		cmocka_unit_test(no_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
