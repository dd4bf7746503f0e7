/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* Makes a closer of both ends of a pipe. */
static struct kvm_closer of_pipe(int fds[2])
{
	assert_int_equal(pipe(fds), 0);
	return (struct kvm_closer){ .vm = fds[0], .vcpu = fds[1] };
}

static void assert_closed(const int fds[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
		assert_int_equal(errno, EBADF);
	}
}

static void closes_on_its_thread(void **state)
{
	struct kvm_closer c;
	int fds[2];

	(void)state;
	c = of_pipe(fds);
	kvm_closer_start(&c);
	assert_true(c.started);
	kvm_closer_finish(&c);
	assert_closed(fds);
	assert_int_equal(c.vm, -1);
	kvm_closer_finish(&c); /* harmless */
}

static void closes_without_a_thread(void **state)
{
	struct kvm_closer c;
	int fds[2];

	(void)state;
	c = of_pipe(fds);
	kvm_closer_finish(&c);
	assert_closed(fds);
}

static void closes_what_there_is(void **state)
{
	struct kvm_closer c;
	int fds[2];

	(void)state;
	c = of_pipe(fds);
	assert_int_equal(close(c.vcpu), 0);
	c.vcpu = -1;
	kvm_closer_start(&c);
	kvm_closer_finish(&c);
	assert_closed(fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_on_its_thread),
		cmocka_unit_test(closes_without_a_thread),
		cmocka_unit_test(closes_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
