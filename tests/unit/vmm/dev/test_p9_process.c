/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of a share: what it has, what it answers, and how its end is told. */
#include "base/buf.h"
#include "base/file.h"
#include "guest/p9_messages.h"
#include "vmm/dev/p9_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
	char dir[64];
	struct p9_process *p;
	void *page; /* as a guest's memory: not for forked processes */
} t;

static const struct p9_confine unbound;

static int begin(const struct p9_confine *confine, struct err *e)
{
	const struct p9_share share = { .dir = t.dir,
					.read_only = false,
					.max_files = P9_MAX_FILES };

	return p9_process_start(&t.p, &share, confine, e);
}

static int set_up(void **state)
{
	struct err e = { 0 };

	(void)state;
	strcpy(t.dir, "/tmp/kvmprof-p9p.XXXXXX");
	t.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t.page == MAP_FAILED || madvise(t.page, 4096, MADV_DONTFORK) || !mkdtemp(t.dir))
		return -1;
	return begin(&unbound, &e);
}

static int tear_down(void **state)
{
	(void)state;
	p9_process_end(t.p);
	munmap(t.page, 4096);
	/* Nothing is left to wait for. */
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return -1;
	return file_remove_tree(t.dir, NULL);
}

/* One request of `type` with these bytes behind its tag: the type of the answer. */
static unsigned int ask_of(struct p9_process *p, uint8_t type, const struct buf *body)
{
	uint8_t *at = p9_process_request(p);
	uint32_t len = 7 + (uint32_t)body->len;
	size_t n;

	memcpy(at, &len, 4);
	at[4] = type;
	at[5] = 77;
	at[6] = 0;
	if (body->len)
		memcpy(at + 7, body->data, body->len);
	assert_int_equal(p9_process_handle(p, len, P9_MSIZE, &n), 0);
	assert_true(n >= 7);
	assert_int_equal(p9_process_reply(p)[5], 77);
	return p9_process_reply(p)[4];
}

static void put_text(struct buf *b, const char *s)
{
	buf_u16(b, (uint16_t)strlen(s));
	buf_add(b, s, strlen(s));
}

static unsigned int attach(struct p9_process *p, uint32_t fid)
{
	struct buf b;
	unsigned int ret;

	buf_init(&b);
	buf_u32(&b, P9_MSIZE);
	put_text(&b, "9P2000.L");
	assert_int_equal(ask_of(p, TVERSION, &b), TVERSION + 1);
	buf_deinit(&b);
	buf_init(&b);
	buf_u32(&b, fid);
	buf_u32(&b, UINT32_MAX);
	put_text(&b, "");
	put_text(&b, "");
	buf_u32(&b, 0);
	ret = ask_of(p, TATTACH, &b);
	buf_deinit(&b);
	return ret;
}

static unsigned int walk(struct p9_process *p, uint32_t from, uint32_t to, const char *name)
{
	struct buf b;
	unsigned int ret;

	buf_init(&b);
	buf_u32(&b, from);
	buf_u32(&b, to);
	buf_u16(&b, 1);
	put_text(&b, name);
	ret = ask_of(p, TWALK, &b);
	buf_deinit(&b);
	return ret;
}

/* The one child that this process has. */
static pid_t child(void)
{
	char path[64], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	return (pid_t)atoi(text);
}

static void it_answers(void **state)
{
	(void)state;
	assert_int_equal(attach(t.p, 1), TATTACH + 1);
	assert_int_equal(walk(t.p, 1, 2, "missing"), RLERROR);
	assert_int_equal(p9_process_reply(t.p)[7], ENOENT);
	/* Its fids are forgotten. */
	assert_int_equal(p9_process_reset(t.p), 0);
	assert_int_equal(walk(t.p, 1, 2, "missing"), RLERROR);
	assert_int_equal(p9_process_reply(t.p)[7], EBADF);
}

/* Standard input and output lead nowhere; then standard error, the socket, and the share. */
static void it_has_nothing_of_ours(void **state)
{
	int ours = open("/proc/self/exe", O_RDONLY);
	char path[64], own_fds[64], to[128], page[64], line[512];
	struct p9_process *other;
	struct dirent *d;
	unsigned int n = 0;
	pid_t pid;
	FILE *f;
	DIR *dir;

	(void)state;
	/* It is made while there is another one, and a file that stays open through execve(2). */
	p9_process_end(t.p);
	assert_int_equal(p9_process_start(&other,
					  &(struct p9_share){ .dir = t.dir,
							      .read_only = true,
							      .max_files = 64 },
					  &unbound, NULL),
			 0);
	pid = child();
	assert_int_equal(begin(&unbound, NULL), 0);
	p9_process_end(other);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	pid = child();
	snprintf(own_fds, sizeof(own_fds), "/proc/%d/fd", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		ssize_t len;

		if (*d->d_name == '.')
			continue;
		n++;
		len = readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1);
		assert_true(len > 0);
		to[len] = 0;
		if (strcmp(d->d_name, "2"))
			assert_true(!strcmp(to, "/dev/null") || !strncmp(to, "socket:", 7) ||
				    !strncmp(to, "pipe:", 5) || !strcmp(to, t.dir) ||
				    !strcmp(to, own_fds));
	}
	closedir(dir);
	assert_int_equal(n, 7);
	snprintf(page, sizeof(page), "%lx-", (unsigned long)t.page);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		assert_int_not_equal(strncmp(line, page, strlen(page)), 0);
	fclose(f);
	close(ours);
}

/* As in a run that was started with standard input closed, and may open few files. */
static void any_number_will_do_for_its_socket(void **state)
{
	struct rlimit old, few;
	int input = dup(STDIN_FILENO);

	(void)state;
	p9_process_end(t.p);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ 256, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	close(STDIN_FILENO);
	assert_int_equal(begin(&unbound, NULL), 0);
	assert_int_equal(attach(t.p, 1), TATTACH + 1);
	dup2(input, STDIN_FILENO);
	close(input);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void its_end_is_told(void **state)
{
	struct buf b;
	struct err e = { 0 };
	size_t n = 1;

	(void)state;
	kill(child(), SIGKILL);
	assert_int_equal(p9_process_handle(t.p, 7, 64, &n), -EPIPE);
	assert_int_equal(n, 0);
	assert_string_equal(p9_process_how(t.p), "was ended by signal 9");
	assert_int_equal(p9_process_reset(t.p), -EPIPE);
	buf_init(&b);
	assert_int_equal(p9_process_save(t.p, &b, &e), -EPIPE);
	assert_string_equal(e.text, "the process of the share was ended by signal 9");
	buf_deinit(&b);
}

/* As one that its guest has taken over might not. */
static void one_that_does_not_listen_is_ended(void **state)
{
	struct err e = { 0 };

	(void)state;
	kill(child(), SIGSTOP);
	p9_process_end(t.p);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(begin(&unbound, &e), 0);
}

/* Whatever the main thread wants to know has a time limit. */
static void no_question_waits_for_good(void **state)
{
	struct err e = { 0 };
	struct buf b;

	(void)state;
	kill(child(), SIGSTOP);
	buf_init(&b);
	assert_int_equal(p9_process_save(t.p, &b, &e), -EPIPE);
	assert_string_equal(e.text, "the process of the share does not answer");
	assert_int_equal(p9_process_reset(t.p), -EPIPE);
	buf_deinit(&b);
}

/* Enters a Landlock domain from which no signal leaves: linux/landlock.h of Linux 6.12. 0 or -1. */
static int no_signals(void)
{
	const uint64_t attr[3] = { 0, 0, 2 };
	int fd = (int)syscall(444, attr, sizeof(attr), 0);

	return fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(446, fd, 0) ? -1 : 0;
}

/* The parent of a stopped process of a share, whose standard error is `out`: 0, when all is as it must be. */
static int stopped_parent(int out, bool ends)
{
	struct p9_process *p;
	struct err e = { 0 };
	pid_t pid;

	dup2(out, STDERR_FILENO);
	close(out);
	if (p9_process_start(&p, &(struct p9_share){ .dir = t.dir, .max_files = 64 }, &unbound, &e))
		return 2;
	pid = child();
	kill(pid, SIGSTOP);
	/* A kernel before 6.12 has no such domain; then signals are no obstacle. */
	if (!no_signals() && kill(pid, SIGKILL) != -1)
		return 3;
	if (!ends)
		return 0;
	p9_process_end(p);
	return waitpid(pid, NULL, WNOHANG) != -1;
}

/* In the run's domain the process is out of reach for signals, and it ends all the same. */
static void one_that_is_stopped_ends_without_signals(void **state)
{
	(void)state;
	for (int ends = 0; ends < 2; ends++) {
		struct pollfd fd;
		int pair[2], status;
		pid_t parent;
		char byte;

		assert_int_equal(pipe(pair), 0);
		parent = fork();
		if (parent == 0) {
			close(pair[0]);
			_exit(stopped_parent(pair[1], ends));
		}
		close(pair[1]);
		assert_int_equal(waitpid(parent, &status, 0), parent);
		assert_int_equal(status, 0);
		/* Neither the parent nor the process has the other end any more. */
		fd = (struct pollfd){ .fd = pair[0], .events = POLLIN };
		assert_int_equal(poll(&fd, 1, 60000), 1);
		assert_int_equal(read(pair[0], &byte, 1), 0);
		close(pair[0]);
	}
}

static void *kill_soon(void *arg)
{
	usleep(50000);
	p9_process_kill(arg);
	return NULL;
}

static void who_waits_for_an_answer_is_woken(void **state)
{
	pthread_t thread;
	size_t n;

	(void)state;
	kill(child(), SIGSTOP);
	assert_int_equal(pthread_create(&thread, NULL, kill_soon, t.p), 0);
	assert_int_equal(p9_process_handle(t.p, 7, 64, &n), -EPIPE);
	pthread_join(thread, NULL);
}

static void a_share_that_is_not_there(void **state)
{
	const struct p9_share share = { .dir = "/nowhere/at/all",
					.read_only = false,
					.max_files = 64 };
	struct p9_process *p;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(p9_process_start(&p, &share, &unbound, &e), -ENOENT);
	assert_string_equal(e.text, "/nowhere/at/all: No such file or directory");
}

static int refuse(void *ctx, struct p9_share *share, struct err *e)
{
	assert_string_equal(share->dir, t.dir);
	return err_set(e, EPERM, "%s", (const char *)ctx);
}

static void what_cannot_be_bound_does_not_begin(void **state)
{
	const struct p9_confine confine = { refuse, "the host refuses" };
	struct err e = { 0 };

	(void)state;
	p9_process_end(t.p);
	assert_int_equal(begin(&confine, &e), -EPERM);
	assert_string_equal(e.text, "the host refuses");
	assert_int_equal(begin(&unbound, &e), 0);
}

/* More than one message has room for, and what another device has saved behind it. */
static void its_state_goes_from_one_to_the_next(void **state)
{
	enum { FIDS = 1500 };
	char name[201] = "";
	struct cursor in;
	struct err e = { 0 };
	struct buf b;
	char path[512];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	snprintf(path, sizeof(path), "%s/%s", t.dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(attach(t.p, 1), TATTACH + 1);
	for (uint32_t i = 2; i < FIDS; i++)
		assert_int_equal(walk(t.p, 1, i, name), TWALK + 1);
	buf_init(&b);
	assert_int_equal(p9_process_save(t.p, &b, &e), 0);
	assert_true(b.len > P9_MSIZE);
	buf_u32(&b, 12345);
	p9_process_end(t.p);
	assert_int_equal(begin(&unbound, &e), 0);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(p9_process_restore(t.p, &in, &e), 0);
	assert_int_equal(cursor_u32(&in), 12345);
	assert_int_equal(walk(t.p, FIDS - 1, FIDS, ".."), TWALK + 1);
	/* Damaged bytes are reported with a reason, and the process still runs. */
	cursor_init(&in, b.data, 100);
	assert_int_equal(p9_process_restore(t.p, &in, &e), -EINVAL);
	assert_string_equal(e.text, "the snapshot's data of a share are damaged");
	assert_int_equal(p9_process_reset(t.p), 0);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(it_answers),
		T(it_has_nothing_of_ours),
		T(any_number_will_do_for_its_socket),
		T(its_end_is_told),
		T(one_that_does_not_listen_is_ended),
		T(no_question_waits_for_good),
		T(one_that_is_stopped_ends_without_signals),
		T(who_waits_for_an_answer_is_woken),
		T(a_share_that_is_not_there),
		T(what_cannot_be_bound_does_not_begin),
		T(its_state_goes_from_one_to_the_next),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
