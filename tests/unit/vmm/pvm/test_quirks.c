/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probe's judgement on hosts of several kinds. KVM and the clock are played: a run of the
 * probe guest takes as much thread CPU time as the host at hand would need for it.
 */
#include "vmm/quirks.h"

#include "vmm/pvm/probe_guest.h"

#include <errno.h>
#include <linux/kvm.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN_SIZE 4096u
#define FOREVER UINT64_MAX

/* A host, in ns; what differs on one like this machine is a time of 0. */
static struct {
	uint64_t trip, insn;	/* a VM exit and the way back; an instruction in ring 0 */
	uint64_t hypercall;	/* FOREVER: it never returns */
	bool hypercall_waits;	/* and sleeps meanwhile */
	unsigned int late_runs; /* the first so many runs take `late` longer */
	uint64_t late;
	bool syscall_faults, syscall_ends_otherwise, int3_refused;
	unsigned int stopped; /* so many runs end with EINTR, by no signal of ours */
} host;

static uint64_t cpu_ns, hang_left, timer_ns;
static unsigned int looks;
static struct kvm_run *run;
static uint64_t rip;
static int vcpu_fd;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(cpu_ns / 1000000000);
	ts->tv_nsec = (long)(cpu_ns % 1000000000);
	return 0;
}

int timer_create(clockid_t id, struct sigevent *ev, timer_t *timer)
{
	(void)id;
	(void)ev;
	*timer = NULL;
	return 0;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *its, struct itimerspec *old)
{
	(void)timer;
	(void)flags;
	(void)old;
	timer_ns = (uint64_t)its->it_value.tv_sec * 1000000000 + (uint64_t)its->it_value.tv_nsec;
	looks++;
	return 0;
}

int timer_delete(timer_t timer)
{
	(void)timer;
	return 0;
}

static bool is_at(const char *label)
{
	return rip == PROBE_CODE + (uint64_t)(label - probe_code);
}

static int out_to(uint16_t port)
{
	cpu_ns += host.trip;
	if (host.late_runs) {
		host.late_runs--;
		cpu_ns += host.late;
	}
	run->exit_reason = KVM_EXIT_IO;
	run->io.port = port;
	return 0;
}

static int run_hypercall(void)
{
	uint64_t now = hang_left < timer_ns ? hang_left : timer_ns;

	if (!host.hypercall_waits)
		cpu_ns += now;
	if (hang_left != FOREVER)
		hang_left -= now;
	if (!hang_left)
		return out_to(PROBE_PORT_DONE);
	raise(SIGRTMIN);
	errno = EINTR;
	return -1;
}

static int kvm_run(void)
{
	if (host.stopped) {
		host.stopped--;
		errno = EINTR;
		return -1;
	}
	if (is_at(probe_trip) || is_at(probe_speed)) {
		rip += 2;
		return out_to(PROBE_PORT_START);
	}
	if (is_at(probe_trip + 2))
		return out_to(PROBE_PORT_DONE);
	if (is_at(probe_speed + 2)) {
		cpu_ns += 2 * PROBE_LOOP * host.insn;
		return out_to(PROBE_PORT_DONE);
	}
	if (is_at(probe_ipi_intel))
		return run_hypercall();
	if (is_at(probe_int3) && host.int3_refused) {
		run->exit_reason = KVM_EXIT_INTERNAL_ERROR;
		run->internal.suberror = KVM_INTERNAL_ERROR_EMULATION;
		return 0;
	}
	if (rip == PROBE_USER_CODE && host.syscall_ends_otherwise) {
		run->exit_reason = KVM_EXIT_SHUTDOWN;
		return 0;
	}
	return out_to(rip == PROBE_USER_CODE && host.syscall_faults ? PROBE_PORT_FAULT
								    : PROBE_PORT_DONE);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	(void)fd;
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	switch (request) {
	case KVM_CREATE_VM:
		return memfd_create("vm", 0);
	case KVM_CREATE_VCPU:
		vcpu_fd = memfd_create("vcpu", 0);
		assert_int_equal(ftruncate(vcpu_fd, RUN_SIZE), 0);
		run = mmap(NULL, RUN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu_fd, 0);
		assert_true(run != MAP_FAILED);
		return vcpu_fd;
	case KVM_SET_REGS:
		rip = ((const struct kvm_regs *)arg)->rip;
		return 0;
	case KVM_GET_SREGS:
		memset(arg, 0, sizeof(struct kvm_sregs));
		return 0;
	case KVM_SET_MSRS:
		return (int)((const struct kvm_msrs *)arg)->nmsrs;
	case KVM_GET_MSRS:
		return (int)((const struct kvm_msrs *)arg)->nmsrs;
	case KVM_GET_TSC_KHZ:
		return 1000000;
	case KVM_RUN:
		return kvm_run();
	default:
		return 0;
	}
}

static void probe(struct quirks *q)
{
	const struct kvm_host h = { .fd = -1, .run_size = RUN_SIZE, .tsc_khz = true };

	cpu_ns = 1;
	looks = 0;
	hang_left = host.hypercall;
	quirks_probe(&h, q);
	quirks_release(q);
	munmap(run, RUN_SIZE);
	memset(&host, 0, sizeof(host));
}

/* An exit may take longer than an interpreter takes for all of the loop. */
static void exit_is_not_the_loop(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 72000;
	host.insn = 2;
	probe(&q);
	assert_true(q.probed);
	assert_int_equal(q.ring0_ps_per_insn, 2000);
	assert_false(quirks_any(&q));
}

static void first_runs_are_late(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 1200;
	host.insn = 1;
	host.late_runs = 7;
	host.late = 500000;
	probe(&q);
	assert_int_equal(q.ring0_ps_per_insn, 1000);
	assert_false(quirks_any(&q));
}

static void interpreted(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 7500;
	host.insn = 597;
	host.syscall_faults = host.int3_refused = true;
	host.hypercall = FOREVER;
	probe(&q);
	assert_true(q.probed);
	assert_int_equal(q.ring0_ps_per_insn, 597000);
	assert_true(q.interpreted && q.syscall_keeps_cpl && q.refuses_insns && q.hypercalls_hang);
	assert_int_equal(looks, 1);
}

/* A hypercall that costs a few exits returns, however slow the host is. */
static void slow_hypercall_returns(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 70000;
	host.insn = 1300;
	host.hypercall = 1500000;
	probe(&q);
	assert_true(q.interpreted);
	assert_false(q.hypercalls_hang);
}

/* Where the CPU was another's the timer says nothing; but a sleep without end has an end. */
static void hypercall_waits(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 7500;
	host.insn = 300;
	host.hypercall = 3000000;
	host.hypercall_waits = true;
	probe(&q);
	assert_false(q.hypercalls_hang);
	assert_true(looks > 1);
	host.trip = 7500;
	host.insn = 300;
	host.hypercall = FOREVER;
	host.hypercall_waits = true;
	probe(&q);
	assert_true(q.hypercalls_hang);
	assert_in_range(looks, 2, 100);
}

/* Ctrl-Z and fg. */
static void stopped_meanwhile(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 1200;
	host.stopped = 3;
	probe(&q);
	assert_true(q.probed);
	assert_false(quirks_any(&q));
}

/* No page fault at LSTAR: not the quirk that is worked around. */
static void syscall_ends_otherwise(void **state)
{
	struct quirks q;

	(void)state;
	host.trip = 1200;
	host.syscall_ends_otherwise = true;
	probe(&q);
	assert_true(q.probed);
	assert_false(quirks_any(&q));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_is_not_the_loop),
		cmocka_unit_test(first_runs_are_late),
		cmocka_unit_test(interpreted),
		cmocka_unit_test(slow_hypercall_returns),
		cmocka_unit_test(hypercall_waits),
		cmocka_unit_test(stopped_meanwhile),
		cmocka_unit_test(syscall_ends_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
