/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fault.h"

#include "base/thread.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static atomic_int ends;

static void ended(struct fault *f)
{
	(void)f;
	atomic_fetch_add(&ends, 1);
}

static void *nothing(void *arg)
{
	return arg;
}

static volatile uintptr_t nowhere = 0x123;

static void *read_nowhere(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t) * (volatile uint8_t *)nowhere;
}

static void *give_up(void *arg)
{
	(void)arg;
	abort();
}

static void *divide(void *arg)
{
	volatile int zero = 0;

	(void)arg;
	__asm__ volatile("cltd; idivl %0" : : "m"(zero) : "eax", "edx");
	return NULL;
}

static __attribute__((noinline)) unsigned int deeper(volatile unsigned int *up)
{
	volatile unsigned int here[256];

	here[0] = up ? *up + 1 : 0;
	return nowhere ? deeper(here) + here[0] : 0;
}

static void *too_deep(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)deeper(NULL);
}

/* Handlers are the process's, and cmocka has its own: each case has a process for itself. */
static int status_of(void (*test)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		static const int number[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };

		for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
			signal(number[i], SIG_DFL);
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* The thread ends, and we are told why; NULL: by itself. */
static void ends_by(void *(*test)(void *), const char *why)
{
	struct fault *f = calloc(1, sizeof(*f));
	int before = atomic_load(&ends);
	char text[128] = "";
	pthread_t t;

	if (!f)
		_exit(1);
	f->ended = ended;
	if (thread_start_guarded(&t, THREAD_CONSUMER, test, NULL, f) || pthread_join(t, NULL))
		_exit(2);
	if (fault_happened(f) != (why != NULL) || atomic_load(&ends) != before + (why != NULL))
		_exit(3);
	if (why)
		fault_describe(f, text, sizeof(text));
	if (why && strncmp(text, why, strlen(why)) != 0) {
		(void)!write(STDERR_FILENO, text, strlen(text));
		_exit(4);
	}
	free(f);
}

static void by_itself(void)
{
	ends_by(nothing, NULL);
}

static void by_reading(void)
{
	ends_by(read_nowhere, "SIGSEGV at address 0x123, in test_fault+0x");
}

static void by_abort(void)
{
	ends_by(give_up, "SIGABRT, in libc");
}

static void by_division(void)
{
	ends_by(divide, "SIGFPE at address 0x");
}

/* A sanitizer thinks that the first thread is still there, on whose stack the next one runs. */
static void one_after_the_other(void)
{
	by_itself();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	by_reading();
	by_abort();
	by_division();
	by_itself();
#endif
}

static void a_crash_ends_its_thread(void **state)
{
	(void)state;
	assert_int_equal(status_of(by_itself), 0);
	assert_int_equal(status_of(by_reading), 0);
	assert_int_equal(status_of(by_abort), 0);
	assert_int_equal(status_of(by_division), 0);
	assert_int_equal(status_of(one_after_the_other), 0);
}

static void overflow(void)
{
	ends_by(too_deep, "SIGSEGV at address 0x");
}

static void so_does_a_stack_that_overflows(void **state)
{
	(void)state;
	assert_int_equal(status_of(overflow), 0);
}

static void fault_here(void)
{
	fault_prepare();
	read_nowhere(NULL);
}

static void abort_here(void)
{
	fault_prepare();
	abort();
}

static void sent_to_us(void)
{
	fault_prepare();
	kill(getpid(), SIGBUS);
}

static void fault_on_another(void)
{
	pthread_t t;

	fault_prepare();
	/* A crash of a thread that blocks all signals. */
	if (!thread_start(&t, THREAD_DISK, read_nowhere, NULL))
		pthread_join(t, NULL);
}

static void others_end_the_process(void **state)
{
	static void (*const way[])(void) = { fault_here, abort_here, sent_to_us, fault_on_another };
	static const int number[] = { SIGSEGV, SIGABRT, SIGBUS, SIGSEGV };

	(void)state;
	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		int status = status_of(way[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), number[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_end_the_process),
		cmocka_unit_test(a_crash_ends_its_thread),
		cmocka_unit_test(so_does_a_stack_that_overflows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
