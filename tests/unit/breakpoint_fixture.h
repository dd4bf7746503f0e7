/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * breakpoint_fixture: a vCPU with two breakpoints, FUNC and OTHER, and the answers of KVM that they
 * need.
 */
#ifndef KVMPROF_TESTS_UNIT_BREAKPOINT_FIXTURE_H
#define KVMPROF_TESTS_UNIT_BREAKPOINT_FIXTURE_H

#include "vmm/breakpoint.h"
#include "vmm/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vcpu_fixture.h"
#include "vmm/quirks.h"

#define PF UINT64_C(0xffffffff81a00c40)
#define FUNC UINT64_C(0xffffffff81000100)
#define OTHER UINT64_C(0xffffffff81000200)
#define STACK UINT64_C(0xffffc90000003f00)
#define TF 0x100u
#define RF 0x10000u

static struct fake f;
static struct quirks quirks;
static struct kvm_guest_debug debug;
static struct kvm_debugregs own;
static unsigned int reached_calls; /* calls of vm_config.reached */
static uint64_t set_flags;	   /* stored by KVM_SET_REGS */
static int refuse;		   /* errno of KVM_SET_GUEST_DEBUG */

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd != -1)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	switch (request) {
	case KVM_SET_GUEST_DEBUG:
		if (refuse) {
			errno = refuse;
			return -1;
		}
		debug = *(struct kvm_guest_debug *)arg;
		return 0;
	case KVM_SET_REGS:
		set_flags = ((struct kvm_regs *)arg)->rflags;
		return 0;
	case KVM_GET_DEBUGREGS:
		*(struct kvm_debugregs *)arg = own;
		return 0;
	case KVM_SET_DEBUGREGS:
		own = *(struct kvm_debugregs *)arg;
		return 0;
	}
	errno = EBADF;
	return -1;
}

static void on_reached(void *ctx, unsigned int breakpoint)
{
	(void)ctx;
	(void)breakpoint;
	reached_calls++;
}

static inline int setup(void **state)
{
	(void)state;
	fake_init(&f, 1u << 20);
	fake_map(&f, FUNC, FAKE_P);
	fake_map(&f, STACK & ~0xfffull, FAKE_P | FAKE_W);
	quirks = (struct quirks){ 0 };
	debug = (struct kvm_guest_debug){ 0 };
	own = (struct kvm_debugregs){ .dr6 = 0xffff0ff0, .dr7 = 0x401 };
	reached_calls = 0;
	refuse = 0;
	f.vm->cfg.quirks = &quirks;
	f.vm->cfg.plan.stack_max = 256;
	f.v->stack_max = 256;
	f.vm->cfg.reached = on_reached;
	f.vm->cfg.breakpoint[0] = (struct vm_breakpoint){ .addr = FUNC };
	f.vm->cfg.breakpoint[1] = (struct vm_breakpoint){ .addr = OTHER };
	f.vm->cfg.nbreakpoints = 2;
	f.v->run->s.regs.regs.rsp = STACK;
	f.v->run->s.regs.regs.rflags = 2;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	fake_deinit(&f);
	return 0;
}

/* Simulates a debug exit at rip with these bits of DR6. */
static inline int exit_at(uint64_t rip, uint64_t dr6)
{
	struct err e = { 0 };
	int ret;

	f.v->run->s.regs.regs.rip = rip;
	f.v->run->debug.arch.exception = 1;
	f.v->run->debug.arch.dr6 = dr6 | 0xffff0ff0;
	f.v->run->kvm_dirty_regs = 0;
	ret = breakpoint_debug(f.v, &e);
	assert_int_equal(ret, -e.code);
	return ret;
}

/* Checks that the next sample in the ring is of this breakpoint. */
static inline void took(unsigned int breakpoint)
{
	size_t len;
	const struct sample *s = ring_peek(&f.v->ring, &len);

	assert_non_null(s);
	assert_int_equal(s->reason, SAMPLE_MARKER);
	assert_int_equal(s->event, breakpoint);
	assert_int_equal(s->weight, 0);
	assert_true(s->stack_len);
	ring_release(&f.v->ring);
}

static inline void took_none(void)
{
	size_t len;

	assert_null(ring_peek(&f.v->ring, &len));
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

#endif
