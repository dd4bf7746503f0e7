/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that is in KVM_RUN, held and let go: what of it is seen, and that the VMM gets what it is
 * owed. The vCPU is an application processor that nobody has started: KVM_RUN waits, as for a halted
 * one, and no guest code is needed. Tests that need KVM are skipped where there is none.
 */
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/attach/tracer.h"

#include "base/clock.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define NOBODY 65534

/* The report of a child. */
struct told {
	atomic_uint ready, interrupted, handled;
};

static struct told *told;
static pid_t child;

static void on_signal(int signo)
{
	(void)signo;
	atomic_fetch_add(&told->handled, 1);
}

static int open_ap(void)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);

	if (vm < 0 || ioctl(vm, KVM_CREATE_IRQCHIP, 0) < 0)
		return -1;
	return ioctl(vm, KVM_CREATE_VCPU, 1);
}

static void run_ap(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int vcpu = open_ap();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &sa, NULL);
	if (vcpu < 0)
		_exit(1);
	atomic_store(&told->ready, 1);
	for (;;)
		if (ioctl(vcpu, KVM_RUN, 0) < 0 && errno == EINTR)
			atomic_fetch_add(&told->interrupted, 1);
}

static int start(void (*run)(void))
{
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (child == 0)
		run();
	while (!atomic_load(&told->ready))
		if (waitpid(child, NULL, WNOHANG) == child) {
			child = 0;
			return -1;
		}
	return 0;
}

static int start_ap(void **state)
{
	(void)state;
	if (access("/dev/kvm", R_OK | W_OK) < 0) {
		child = 0;
		return 0;
	}
	return start(run_ap);
}

static int end_child(void **state)
{
	(void)state;
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	if (told)
		munmap(told, 4096);
	told = NULL;
	child = 0;
	return 0;
}

static void need_kvm(void)
{
	if (!child)
		SKIP("/dev/kvm cannot be opened");
}

static bool comes_to(atomic_uint *n, unsigned int wanted)
{
	for (int i = 0; i < 20000 && atomic_load(n) < wanted; i++)
		usleep(1000);
	return atomic_load(n) == wanted;
}

/* -- where a held thread is ---------------------------------------------------------------- */

static enum tracer_place hold(struct tracee *t)
{
	int fd = -1;
	enum tracer_place place;

	assert_int_equal(tracer_hold(t, PATIENCE_NS), 0);
	place = tracer_place_of(t, &fd);
	if (place != TRACER_ELSEWHERE)
		assert_true(fd > 2);
	return place;
}

static void hold_at(struct tracee *t, enum tracer_place place)
{
	for (int i = 0; hold(t) != place; i++) {
		assert_true(i < 20000);
		tracer_release(t);
		if (place == TRACER_IN_RUN)
			usleep(1000);
	}
}

static void seize(struct tracee *t)
{
	struct err e = { 0 };

	assert_int_equal(tracer_seize(t, child, &e), 0);
	hold_at(t, TRACER_IN_RUN);
	/* It may have been on its way there. */
	atomic_store(&told->interrupted, 0);
}

/* Our own restart, when the next stop comes before it has begun, is not work of the VMM's. */
static void a_run_that_has_not_begun_again_is_known(void **state)
{
	unsigned int before = 0, in = 0;
	struct tracee t;

	(void)state;
	need_kvm();
	seize(&t);
	for (int i = 0; i < 2000; i++) {
		enum tracer_place place;

		tracer_release(&t);
		if (i % 50 == 0)
			usleep(1000);
		place = hold(&t);
		assert_int_not_equal(place, TRACER_ELSEWHERE);
		*(place == TRACER_IN_RUN ? &in : &before) += 1;
	}
	assert_true(before > 0);
	assert_true(in > 0);
	tracer_detach(&t);
	usleep(20000);
	/* Nothing of it was seen. */
	assert_int_equal(atomic_load(&told->interrupted), 0);
}

static void a_kick_before_the_run_is_not_lost(void **state)
{
	struct tracee t;

	(void)state;
	need_kvm();
	seize(&t);
	for (unsigned int i = 1; i <= 100; i++) {
		tracer_release(&t);
		hold_at(&t, TRACER_BEFORE_RUN);
		kill(child, SIGUSR1);
		tracer_release(&t);
		for (int k = 0; k < 20000 && t.passed_on < i; k++) {
			if (tracer_has_stopped(&t))
				tracer_release(&t);
			usleep(100);
		}
		assert_true(comes_to(&told->handled, i));
		assert_true(comes_to(&told->interrupted, i));
		hold_at(&t, TRACER_IN_RUN);
	}
	tracer_detach(&t);
}

static void a_kick_is_not_lost_by_letting_go(void **state)
{
	struct tracee t;
	struct err e = { 0 };

	(void)state;
	need_kvm();
	seize(&t);
	for (unsigned int i = 1; i <= 100; i++) {
		tracer_release(&t);
		hold_at(&t, i % 2 ? TRACER_BEFORE_RUN : TRACER_IN_RUN);
		kill(child, SIGUSR1);
		assert_int_equal(tracer_detach(&t), 0);
		assert_true(comes_to(&told->handled, i));
		assert_true(comes_to(&told->interrupted, i));
		assert_int_equal(tracer_seize(&t, child, &e), 0);
		hold_at(&t, TRACER_IN_RUN);
	}
	tracer_detach(&t);
}

/* -- who may not be held ------------------------------------------------------------------- */

static void spin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		atomic_store(&told->ready, 1);
}

static void wait_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	atomic_store(&told->ready, 1);
	for (;;)
		pause();
}

static int start_spinning(void **state)
{
	(void)state;
	return start(spin);
}

static int start_waiting(void **state)
{
	(void)state;
	return start(wait_for_ever);
}

/* Another tracer comes and goes: it is named, or it has gone and we are next. */
static void a_tracer_that_comes_and_goes_is_no_lack_of_rights(void **state)
{
	const uint64_t limit = clock_mono_ns() + 20 * NSEC_PER_SEC;
	unsigned int seized = 0;
	pid_t other = fork();

	(void)state;
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct tracee t;
			struct err e = { 0 };

			if (!tracer_seize(&t, child, &e))
				tracer_detach(&t);
		}
	}
	/* On a busy machine the other one may be ahead of us for longer. */
	for (int i = 0; i < 2000 || (!seized && clock_mono_ns() < limit); i++) {
		struct tracee t;
		struct err e = { 0 };
		int ret = tracer_seize(&t, child, &e);

		if (ret && ret != -EBUSY)
			fail_msg("%s", e.text);
		if (!ret) {
			seized++;
			tracer_detach(&t);
		}
	}
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_true(seized > 0);
}

/* One that is held by another all the time is never seen running: who holds it can be asked. */
static void who_traces_is_told_without_a_stop(void **state)
{
	char who[32];
	int end[2];
	char byte;
	pid_t other;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(tracer_check(child, &e), 0);
	assert_int_equal(pipe(end), 0);
	other = fork();
	if (other == 0) {
		struct tracee t;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = tracer_seize(&t, child, &e) ? 'n' : 'y';
		(void)!write(end[1], &byte, 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(end[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	assert_int_equal(tracer_check(child, &e), -EBUSY);
	snprintf(who, sizeof(who), "process %d traces it", (int)other);
	assert_non_null(strstr(e.text, who));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_int_equal(tracer_check(child, &e), 0);
	close(end[0]);
	close(end[1]);
}

/* A thread of our own process may not be traced by anybody's rights. */
static void rights_are_named_only_when_they_are_missing(void **state)
{
	struct tracee t;
	struct err e = { 0 };
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		SKIP("this is not root");
	assert_int_equal(tracer_seize(&t, getpid(), &e), -EPERM);
	assert_null(strstr(e.text, "missing"));
	assert_non_null(strstr(e.text, "CAP_SYS_PTRACE is there"));
	pid = fork();
	if (pid == 0) {
		err_clear(&e);
		_exit(setresuid(NOBODY, NOBODY, NOBODY) || tracer_seize(&t, child, &e) != -EPERM ||
		      !strstr(e.text, "CAP_SYS_PTRACE is missing"));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void threads_that_have_ended_are_no_lack_of_rights(void **state)
{
	struct tracee t;
	struct err e = { 0 };
	siginfo_t info;

	(void)state;
	kill(child, SIGKILL);
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	assert_int_equal(tracer_seize(&t, child, &e), -ESRCH);
}

/* -- what is seen without holding ---------------------------------------------------------- */

static enum process_activity activity(void)
{
	static struct process p;

	p.pid = child;
	return process_activity(&p, child);
}

static void waiting_threads_are_known_without_a_stop(void **state)
{
	static struct process p;
	int i;

	(void)state;
	for (i = 0; i < 5000 && activity() != PROCESS_WAITS; i++)
		usleep(1000);
	assert_int_equal(activity(), PROCESS_WAITS);
	p.pid = child;
	assert_true(process_thread_start(&p, child) > 0);
	assert_true(process_thread_start(&p, child) != process_thread_start(&p, 1));
	assert_int_equal(process_thread_start(&p, 0x7ffffff0), 0);
}

static void running_threads_are_unsure(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(activity(), PROCESS_RUNS);
}

static void threads_in_kvm_run_are_known_without_a_stop(void **state)
{
	(void)state;
	need_kvm();
	for (int i = 0; i < 5000 && activity() != PROCESS_GUEST; i++)
		usleep(1000);
	assert_int_equal(activity(), PROCESS_GUEST);
	assert_int_equal(atomic_load(&told->interrupted), 0);
}

/* -- the page of registers ----------------------------------------------------------------- */

static void a_page_that_is_used_is_not_touched(void **state)
{
	static const struct {
		uint64_t valid, dirty;
		enum regs_page_owner owner;
	} pages[] = {
		{ KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS, 0, REGS_PAGE_THEIRS },
		{ KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS | KVM_SYNC_X86_EVENTS, 0,
		  REGS_PAGE_THEIRS },
		{ KVM_SYNC_X86_REGS, 0, REGS_PAGE_PARTIAL },
		{ KVM_SYNC_X86_SREGS, 0, REGS_PAGE_PARTIAL },
		{ KVM_SYNC_X86_EVENTS, 0, REGS_PAGE_PARTIAL },
		{ 0, KVM_SYNC_X86_REGS, REGS_PAGE_PARTIAL },
	};
	static struct kvm_run run, before;

	(void)state;
	for (unsigned int i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		memset(&run, 0x5a, sizeof(run));
		run.kvm_valid_regs = pages[i].valid;
		run.kvm_dirty_regs = pages[i].dirty;
		before = run;
		assert_int_equal(regs_page_begin(&run), pages[i].owner);
		assert_memory_equal(&run, &before, sizeof(run));
	}
}

static void what_a_killed_one_left_is_taken_back(void **state)
{
	static struct kvm_run run;

	(void)state;
	memset(&run, 0, sizeof(run));
	assert_int_equal(regs_page_begin(&run), REGS_PAGE_OURS);
	assert_int_equal(run.kvm_valid_regs, KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS);
	/* It was killed here. */
	assert_int_equal(regs_page_begin(&run), REGS_PAGE_OURS);
	assert_false(regs_page_is_fresh(&run));
	regs_page_end(&run);
	assert_int_equal(run.kvm_valid_regs, 0);
	/* Nothing is left by which the VMM's own use would be taken for ours. */
	run.kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
	assert_int_equal(regs_page_begin(&run), REGS_PAGE_THEIRS);
}

/* -- a signal of our own ------------------------------------------------------------------- */

static void choose(const int *handled, unsigned int n, bool block, int signo, bool kick)
{
	struct tracer_own own = { 0 };
	struct err e = { 0 };
	sigset_t mask, old;
	int ret;

	/* For this thread only its masks are read. */
	sigfillset(&mask);
	for (unsigned int i = 0; i < n; i++) {
		struct sigaction sa = { .sa_handler = on_signal };

		sigdelset(&mask, handled[i]);
		sigaction(handled[i], &sa, NULL);
	}
	sigprocmask(SIG_BLOCK, NULL, &old);
	if (block)
		sigprocmask(SIG_SETMASK, &mask, NULL);
	ret = tracer_choose_own(getpid(), &own, &e);
	sigprocmask(SIG_SETMASK, &old, NULL);
	for (unsigned int i = 0; i < n; i++)
		signal(handled[i], SIG_DFL);
	assert_int_equal(ret, signo ? 0 : -ENOTSUP);
	assert_int_equal(own.signo, signo);
	assert_int_equal(own.kick, kick);
	if (!signo)
		assert_non_null(strstr(e.text, "no signal"));
}

static void the_signal_is_one_that_does_no_harm(void **state)
{
	static const int urg[] = { SIGURG }, kick[] = { SIGUSR1, SIGBUS, SIGIO },
			 two[] = { SIGUSR1, SIGUSR2 }, both[] = { SIGURG, SIGWINCH };

	(void)state;
	choose(NULL, 0, false, SIGURG, false);
	choose(urg, 1, false, SIGWINCH, false);
	choose(kick, 3, true, SIGUSR1, true);
	/* Which of two is not known, nor is one of a thread that has all others open. */
	choose(two, 2, true, 0, false);
	choose(both, 2, false, 0, false);
	choose(NULL, 0, true, 0, false);
}

static void stop_at(struct tracee *t, int signo)
{
	kill(child, signo);
	for (int i = 0; !tracer_has_stopped(t); i++) {
		assert_true(i < 20000);
		usleep(1000);
	}
	assert_true(t->held && t->by_own);
}

/* The VMM sees a kick, and nothing of a signal that does nothing. */
static void it_stops_the_thread(void **state)
{
	struct tracee t;

	(void)state;
	need_kvm();
	seize(&t);
	tracer_release(&t);
	t.own = (struct tracer_own){ .signo = SIGURG };
	stop_at(&t, SIGURG);
	tracer_release(&t);
	hold_at(&t, TRACER_IN_RUN);
	tracer_release(&t);
	assert_int_equal(atomic_load(&told->interrupted), 0);
	t.own = (struct tracer_own){ .signo = SIGUSR1, .kick = true };
	stop_at(&t, SIGUSR1);
	tracer_release(&t);
	assert_true(comes_to(&told->handled, 1));
	assert_true(comes_to(&told->interrupted, 1));
	/* A stop that was asked for comes all the same. */
	assert_int_equal(tracer_request_stop(&t), 0);
	kill(child, SIGUSR1);
	for (int stops = 0, i = 0; t.asked || stops < 1; i++) {
		assert_true(i < 20000);
		if (tracer_has_stopped(&t)) {
			stops += !t.by_own;
			tracer_release(&t);
		}
		usleep(1000);
	}
	while (atomic_load(&told->handled) < 2) {
		if (tracer_has_stopped(&t))
			tracer_release(&t);
		usleep(1000);
	}
	assert_int_equal(tracer_detach(&t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_that_has_not_begun_again_is_known, start_ap,
						end_child),
		cmocka_unit_test_setup_teardown(a_kick_before_the_run_is_not_lost, start_ap,
						end_child),
		cmocka_unit_test_setup_teardown(a_kick_is_not_lost_by_letting_go, start_ap,
						end_child),
		cmocka_unit_test_setup_teardown(a_tracer_that_comes_and_goes_is_no_lack_of_rights,
						start_spinning, end_child),
		cmocka_unit_test_setup_teardown(who_traces_is_told_without_a_stop, start_spinning,
						end_child),
		cmocka_unit_test_setup_teardown(rights_are_named_only_when_they_are_missing,
						start_waiting, end_child),
		cmocka_unit_test_setup_teardown(threads_that_have_ended_are_no_lack_of_rights,
						start_waiting, end_child),
		cmocka_unit_test_setup_teardown(waiting_threads_are_known_without_a_stop,
						start_waiting, end_child),
		cmocka_unit_test_setup_teardown(running_threads_are_unsure, start_spinning,
						end_child),
		cmocka_unit_test_setup_teardown(threads_in_kvm_run_are_known_without_a_stop,
						start_ap, end_child),
		cmocka_unit_test(the_signal_is_one_that_does_no_harm),
		cmocka_unit_test_setup_teardown(it_stops_the_thread, start_ap, end_child),
		cmocka_unit_test(a_page_that_is_used_is_not_touched),
		cmocka_unit_test(what_a_killed_one_left_is_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
