/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sub-test that cannot run here says why: tests/run.py shows the reason, and tests/skips.txt says
 * which reasons are accepted where nothing may be skipped.
 */

#ifndef KVMPROF_TESTS_SKIP_H
#define KVMPROF_TESTS_SKIP_H

/* A format and its arguments, as of printf; for a file that includes cmocka.h. */
#define SKIP(...)                           \
	do {                                \
		print_message("skipped: "); \
		print_message(__VA_ARGS__); \
		print_message("\n");        \
		skip();                     \
	} while (0)

#endif
