/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU of vcpu_fixture.h while samples of it are captured. The timer of its first source never
 * expires by itself; a test ends a period with fake_take(). The tests of capture (registers, tasks,
 * frames of Python) share it. Include it in one file of a program only: it defines ioctl(), with
 * KVM's answers for the vCPU's descriptor, which is -1.
 */
#ifndef KVMPROF_TESTS_CAPTURE_FIXTURE_H
#define KVMPROF_TESTS_CAPTURE_FIXTURE_H

#include "tests/sample_check.h"
#include "tests/unit/vcpu_fixture.h"
#include "vmm/capture/source.h"
#include "vmm/capture/trigger.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAKE_PERIOD UINT64_C(1000000000000) /* ns: longer than any test */
#define FAKE_START UINT64_C(5000000000000000)

/*
 * KVM's answers, and how often it was asked. fake_capture_init() clears them; then each request
 * fails as on -1.
 */
static struct {
	int mp_state;	    /* KVM_GET_MP_STATE; -1: fails */
	bool msrs;	    /* KVM_GET_MSRS succeeds; MSRs that are not below are 0 */
	uint64_t lstar;	    /* IA32_LSTAR */
	uint64_t kernel_gs; /* IA32_KERNEL_GS_BASE */
	unsigned int mp_asked, msrs_asked;
} fake_kvm = { .mp_state = -1 };

/* Replaces ioctl() of the C library. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd == -1 && request == KVM_GET_MP_STATE) {
		fake_kvm.mp_asked++;
		if (fake_kvm.mp_state >= 0) {
			((struct kvm_mp_state *)arg)->mp_state = (uint32_t)fake_kvm.mp_state;
			return 0;
		}
	}
	if (fd == -1 && request == KVM_GET_MSRS && fake_kvm.msrs) {
		struct kvm_msrs *m = arg;

		fake_kvm.msrs_asked++;
		for (unsigned int i = 0; i < m->nmsrs; i++) {
			uint32_t index = m->entries[i].index;

			m->entries[i].data = index == 0xc0000082   ? fake_kvm.lstar
					     : index == 0xc0000102 ? fake_kvm.kernel_gs
								   : 0;
		}
		return (int)m->nmsrs;
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* Creates the vCPU, whose first period ends at FAKE_START + FAKE_PERIOD. */
static inline void fake_capture_init(struct fake *f)
{
	const struct trigger_rule rule = { FAKE_PERIOD, false, 1 };
	struct err e = { 0 };

	memset(&fake_kvm, 0, sizeof(fake_kvm));
	fake_kvm.mp_state = -1;
	fake_init(f, 1 << 20);
	signal(SIGUSR1, SIG_IGN);
	assert_int_equal(
		trigger_init(&f->v->source[0].trigger, CLOCK_MONOTONIC, SIGUSR1, 0, &rule, &e), 0);
	f->v->source[0].period = FAKE_PERIOD;
	f->v->source[0].trigger.start_ns = FAKE_START;
	f->v->source[0].trigger.deadline_ns = FAKE_START + FAKE_PERIOD;
	atomic_init(&f->v->vm->control.collect, true);
	atomic_init(&f->v->collect, true);
}

static inline void fake_capture_deinit(struct fake *f)
{
	trigger_deinit(&f->v->source[0].trigger);
	fake_deinit(f);
}

static inline void fake_set_cpl(struct fake *f, unsigned int cpl)
{
	f->v->run->s.regs.sregs.cs.selector = cpl ? 0x33 : 0x10;
	f->v->run->s.regs.sregs.cs.dpl = (uint8_t)cpl;
}

/*
 * Returns the next sample, checked, which stays in the ring until ring_release(); NULL: there is
 * none.
 */
static inline const struct sample *fake_sample(struct fake *f)
{
	size_t len;
	const struct sample *s = ring_peek(&f->v->ring, &len);

	if (s) {
		assert_int_equal(sample_check(s, len), 0);
		assert_int_equal(len, sample_size(s));
	}
	return s;
}

/* Ends the timer's period, with stack_max bytes of the stack to copy. Returns as fake_sample(). */
static inline const struct sample *fake_take(struct fake *f, uint32_t stack_max)
{
	f->v->stack_max = stack_max;
	source_take_timer(f->v, 0, f->v->source[0].trigger.deadline_ns);
	return fake_sample(f);
}

#endif
