/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waits with a time limit that a stop breaks off begin anew: a seccomp filter that kills whoever calls restart_syscall
 * must not see that call, whatever becomes of the tracer.
 */
#include "vmm/attach/tracer.h"

#include "base/clock.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define WAIT_MS 50
#define STOPS 20

enum wait_kind { WAIT_NANOSLEEP, WAIT_POLL, WAIT_FUTEX, WAIT_KINDS };

struct told {
	atomic_uint ready, interrupted, waits;
};

static struct told *told;
static pid_t child;

static void on_signal(int signo)
{
	(void)signo;
}

static void forbid_restart(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(1);
}

static int wait_once(enum wait_kind kind)
{
	static uint32_t word;
	const struct timespec ts = { .tv_nsec = WAIT_MS * 1000000 };

	switch (kind) {
	case WAIT_NANOSLEEP:
		return nanosleep(&ts, NULL);
	case WAIT_POLL:
		return poll(NULL, 0, WAIT_MS);
	default:
		return (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &ts, NULL, 0);
	}
}

static void run(enum wait_kind kind)
{
	struct sigaction sa = { .sa_handler = on_signal };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &sa, NULL);
	forbid_restart();
	atomic_store(&told->ready, 1);
	for (;;) {
		if (wait_once(kind) < 0 && errno == EINTR)
			atomic_fetch_add(&told->interrupted, 1);
		atomic_fetch_add(&told->waits, 1);
	}
}

static void nap(void)
{
	const struct timespec ts = { .tv_nsec = 2000000 };

	nanosleep(&ts, NULL);
}

static void start(enum wait_kind kind)
{
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(told, MAP_FAILED);
	child = fork();
	if (child == 0)
		run(kind);
	while (!atomic_load(&told->ready))
		nap();
	nap();
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(told, 4096);
}

/* It has not been killed, and completes more waits. */
static void assert_goes_on(void)
{
	const unsigned int before = atomic_load(&told->waits);
	const uint64_t until = clock_mono_ns() + PATIENCE_NS;

	while (atomic_load(&told->waits) < before + 2 && clock_mono_ns() < until) {
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
		nap();
	}
	assert_true(atomic_load(&told->waits) >= before + 2);
}

static void seize(struct tracee *t)
{
	struct err e = { 0 };
	const int ret = tracer_seize(t, child, &e);

	if (ret == -EPERM)
		SKIP("this process may not trace: %s", e.text);
	assert_int_equal(ret, 0);
}

static void stops_break_off_no_wait(void **state)
{
	(void)state;
	for (enum wait_kind kind = 0; kind < WAIT_KINDS; kind++) {
		struct tracee t;

		start(kind);
		seize(&t);
		for (int i = 0; i < STOPS; i++) {
			assert_int_equal(tracer_hold(&t, PATIENCE_NS), 0);
			tracer_release(&t);
			nap();
		}
		assert_int_equal(tracer_detach(&t), 0);
		assert_goes_on();
		assert_int_equal(atomic_load(&told->interrupted), 0);
		end();
	}
}

/* A stop that came late is left without being looked at. */
static void late_stops_break_off_no_wait(void **state)
{
	(void)state;
	for (enum wait_kind kind = 0; kind < WAIT_KINDS; kind++) {
		struct tracee t;

		start(kind);
		seize(&t);
		for (int i = 0; i < STOPS; i++) {
			assert_int_equal(tracer_request_stop(&t), 0);
			t.asked = false;
			nap();
			assert_false(tracer_has_stopped(&t));
		}
		assert_int_equal(tracer_detach(&t), 0);
		assert_goes_on();
		assert_int_equal(atomic_load(&told->interrupted), 0);
		end();
	}
}

static void a_killed_tracer_leaves_a_wait_that_begins_anew(void **state)
{
	(void)state;
	for (enum wait_kind kind = 0; kind < WAIT_KINDS; kind++) {
		pid_t tracer;
		int status;

		start(kind);
		tracer = fork();
		if (tracer == 0) {
			struct err e = { 0 };
			struct tracee t;

			if (tracer_seize(&t, child, &e) == -EPERM)
				_exit(2);
			if (tracer_hold(&t, PATIENCE_NS) == 0)
				kill(getpid(), SIGKILL);
			_exit(1);
		}
		assert_int_equal(waitpid(tracer, &status, 0), tracer);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
			end();
			SKIP("this process may not trace");
		}
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_goes_on();
		assert_int_equal(atomic_load(&told->interrupted), 0);
		end();
	}
}

/* The VMM's own signal, which it handles, makes the wait return EINTR, as without a tracer. */
static void a_signal_of_its_own_interrupts(void **state)
{
	(void)state;
	for (enum wait_kind kind = 0; kind < WAIT_KINDS; kind++) {
		const uint64_t until = clock_mono_ns() + PATIENCE_NS;
		struct tracee t;

		start(kind);
		seize(&t);
		while (!atomic_load(&told->interrupted) && clock_mono_ns() < until) {
			assert_int_equal(tracer_hold(&t, PATIENCE_NS), 0);
			kill(child, SIGUSR1);
			tracer_release(&t);
			for (int i = 0; i < 5; i++) {
				(void)tracer_has_stopped(&t);
				nap();
			}
		}
		assert_true(atomic_load(&told->interrupted) > 0);
		assert_int_equal(tracer_detach(&t), 0);
		assert_goes_on();
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stops_break_off_no_wait),
		cmocka_unit_test(late_stops_break_off_no_wait),
		cmocka_unit_test(a_killed_tracer_leaves_a_wait_that_begins_anew),
		cmocka_unit_test(a_signal_of_its_own_interrupts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
