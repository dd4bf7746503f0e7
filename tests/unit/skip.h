/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sub-test that cannot run here states the reason: tests/run.py shows it, and tests/skips.txt
 * lists the reasons that are accepted where nothing may be skipped.
 */

#ifndef KVMPROF_TESTS_SKIP_H
#define KVMPROF_TESTS_SKIP_H

/* Skips the test. Takes a format and arguments as printf; for a file that includes cmocka.h. */
#define SKIP(...)                           \
	do {                                \
		print_message("skipped: "); \
		print_message(__VA_ARGS__); \
		print_message("\n");        \
		skip();                     \
	} while (0)

#endif
