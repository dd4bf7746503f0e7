/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of another user: by whom sudo(8) names, and by what the user namespace has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/record/sandbox/rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool has(const char *text, unsigned long id)
{
	char path[] = "/tmp/kvmprof-test.XXXXXX";
	int fd = mkstemp(path);
	bool found;

	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "%s", text) > 0, 1);
	close(fd);
	found = rights_map_has(path, id);
	unlink(path);
	return found;
}

static void test_map(void **state)
{
	(void)state;
	assert_true(has("         0          0 4294967295\n", 61184));
	assert_true(has("0 0 1\n", 0));
	assert_false(has("0 0 1\n", 1));
	assert_false(has("0 0 1\n", 61184));
	assert_true(has("0 1000 1\n1 100000 65536\n", 61184));
	assert_true(has("0 1000 1\n1 100000 65536\n", 65536));
	assert_false(has("0 1000 1\n1 100000 65536\n", 65537));
	assert_false(has("0 0 61184\n65000 65000 9\n", 61184));
	assert_false(has("no map\n", 0));
	assert_false(rights_map_has("/nonexistent", 0));
}

static void test_choice(void **state)
{
	struct rights_user u = { 1, 2 };

	(void)state;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	if (geteuid() || !rights_map_has("/proc/self/uid_map", 65519) ||
	    !rights_map_has("/proc/self/gid_map", 65519)) {
		/* Without a user to become nothing is changed, whatever the environment says. */
		if (!rights_choose_user(&u)) {
			assert_int_equal(u.uid, 1);
			assert_int_equal(u.gid, 2);
		}
		return;
	}
	assert_true(rights_choose_user(&u));
	assert_in_range(u.uid, 61184, 65519);
	assert_int_equal(u.uid, u.gid);
	setenv("SUDO_UID", "1000", 1);
	assert_true(rights_choose_user(&u));
	assert_int_equal(u.uid, 1000);
	assert_int_equal(u.gid, 1000);
	setenv("SUDO_GID", "1001", 1);
	assert_true(rights_choose_user(&u));
	assert_int_equal(u.gid, 1001);
	/* Root is nobody else, and text is no number. */
	for (unsigned int i = 0; i < 4; i++) {
		setenv("SUDO_UID", (const char *[]){ "0", "x", "-1", "99999999999999999999" }[i],
		       1);
		assert_true(rights_choose_user(&u));
		assert_in_range(u.uid, 61184, 65519);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
