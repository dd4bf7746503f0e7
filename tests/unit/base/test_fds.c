/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fds.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

/* A receiver gets what was sent, but no more than it asks for, and nothing stays open behind its back. */
static void descriptors_come_with_a_message(void **state)
{
	int pair[2], pipe_fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(pipe_fd), 0);
	for (unsigned int sent = 0; sent <= 2; sent++)
		for (unsigned int wanted = 1; wanted <= FDS_MAX; wanted++) {
			const struct fds from = { { pipe_fd[0], pipe_fd[1] }, sent };
			struct fds to = { .n = wanted };
			const int before = lowest_free();
			char text[8] = "";

			assert_int_equal(fds_send(pair[0], "four", 4, &from, 0), 4);
			assert_int_equal(fds_receive(pair[1], text, sizeof(text), &to, 0), 4);
			assert_string_equal(text, "four");
			assert_int_equal(to.n, sent < wanted ? sent : wanted);
			for (unsigned int i = 0; i < to.n; i++) {
				assert_int_equal(fcntl(to.fd[i], F_GETFD), FD_CLOEXEC);
				close(to.fd[i]);
			}
			assert_int_equal(lowest_free(), before);
		}
	/* The last one that was sent is the pipe's end for writing. */
	{
		const struct fds from = { { pipe_fd[1] }, 1 };
		struct fds to = { .n = 1 };
		char byte = 0;

		assert_int_equal(fds_send(pair[0], "x", 1, &from, 0), 1);
		assert_int_equal(fds_receive(pair[1], &byte, 1, &to, 0), 1);
		assert_int_equal(write(to.fd[0], "y", 1), 1);
		assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
		assert_int_equal(byte, 'y');
		close(to.fd[0]);
	}
	close(pair[0]);
	/* The end of the socket has no descriptors. */
	{
		struct fds to = { .n = 1 };
		char byte;

		assert_int_equal(fds_receive(pair[1], &byte, 1, &to, 0), 0);
		assert_int_equal(to.n, 0);
	}
	close(pair[1]);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_come_with_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
