/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 40

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
	/* A message without bytes looks like the end of the socket: its descriptors are closed. */
	{
		const struct fds from = { { pipe_fd[0], pipe_fd[1] }, 2 };
		struct fds to = { .n = FDS_MAX };
		const int before = lowest_free();
		char byte;

		assert_int_equal(fds_send(pair[0], "", 0, &from, 0), 0);
		assert_int_equal(fds_receive(pair[1], &byte, 1, &to, 0), 0);
		assert_int_equal(to.n, 0);
		assert_int_equal(lowest_free(), before);
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

/* Has close_range(2) fail as on Linux before 5.9. */
static void be_an_old_kernel(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(1);
}

/* In a child: ends with status 0 if all but these of the first MANY descriptors are closed. */
static void close_all_but(const int *keep, unsigned int n, bool old)
{
	for (int fd = STDERR_FILENO + 1; fd < MANY; fd++)
		if (dup2(STDERR_FILENO, fd) < 0)
			_exit(2);
	if (old)
		be_an_old_kernel();
	fds_close_others(keep, n);
	for (int fd = 0; fd < MANY; fd++) {
		bool kept = false;

		for (unsigned int i = 0; i < n; i++)
			kept |= keep[i] == fd;
		if ((fcntl(fd, F_GETFD) >= 0) != kept)
			_exit(3);
	}
	_exit(0);
}

static void all_others_are_closed(void **state)
{
	static const struct {
		int fd[6];
		unsigned int n;
	} keep[] = {
		{ { 0 }, 0 },
		{ { 0, 1, 2 }, 3 },
		{ { 20, 2 }, 2 },
		{ { 3, 2 }, 2 },
		{ { 9, 8 }, 2 },
		{ { -1, 7, 7, -1 }, 4 },
		{ { MANY - 1, 0, 30, 12, 31, 2 }, 6 },
	};

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(keep) / sizeof(keep[0]); i++) {
		const pid_t child = fork();
		int status;

		if (!child)
			close_all_but(keep[i / 2].fd, keep[i / 2].n, /* old= */ i % 2);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_come_with_a_message),
		cmocka_unit_test(all_others_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
