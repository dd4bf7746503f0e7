/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn_fixture: a vCPU with a page of code and two of data, at the same addresses in every test,
 * and the answers of KVM that complete.c needs.
 */
#ifndef KVMPROF_TESTS_UNIT_INSN_FIXTURE_H
#define KVMPROF_TESTS_UNIT_INSN_FIXTURE_H

#include "vmm/pvm/complete.h"

#include <cpuid.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/vcpu_fixture.h"

#define CODE UINT64_C(0x200000000000) /* outside of the ranges of sanitizers and the loader */
#define DATA (CODE + 0x10000)
#define DATA_SIZE 8192u
#define GS_BASE (DATA + 0x700)

static uint64_t seed = 0x5eed;

static inline uint64_t rnd(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

static inline bool cpu_has(uint32_t leaf, unsigned int reg, unsigned int bit)
{
	uint32_t r[4] = { 0 };

	return __get_cpuid_count(leaf, leaf == 0xd ? 1 : 0, &r[0], &r[1], &r[2], &r[3]) &&
	       r[reg] >> bit & 1;
}

static struct fake f;
static struct kvm_vcpu_events events;
static struct kvm_xcrs xcrs;
static struct kvm_xsave xsave_area; /* read by KVM_GET_XSAVE and written by KVM_SET_XSAVE */
static unsigned int xsave_set;
static bool kvm_answers;

int ioctl(int fd, unsigned long request, ...)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} * m;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	m = arg;
	if (fd == -1 && kvm_answers) {
		switch (request) {
		case KVM_GET_VCPU_EVENTS:
			memcpy(arg, &events, sizeof(events));
			return 0;
		case KVM_SET_VCPU_EVENTS:
			memcpy(&events, arg, sizeof(events));
			return 0;
		case KVM_GET_XCRS:
			memcpy(arg, &xcrs, sizeof(xcrs));
			return 0;
		case KVM_SET_XCRS:
			memcpy(&xcrs, arg, sizeof(xcrs));
			return 0;
		case KVM_GET_XSAVE:
			memcpy(arg, &xsave_area, sizeof(xsave_area));
			return 0;
		case KVM_SET_XSAVE:
			memcpy(&xsave_area, arg, sizeof(xsave_area));
			xsave_set++;
			return 0;
		case KVM_GET_MSRS:
			if (m->entry.index == 0x10)
				m->entry.data = UINT64_C(0x1122334455667788);
			else if (m->entry.index == 0xc0000103)
				m->entry.data = UINT64_C(0xabcd00000005);
			else
				return 0;
			return 1;
		}
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static inline int setup(void **state)
{
	(void)state;
	kvm_answers = false;
	xsave_set = 0;
	memset(&events, 0, sizeof(events));
	memset(&xcrs, 0, sizeof(xcrs));
	memset(&xsave_area, 0, sizeof(xsave_area));
	fake_init(&f, 4096);
	fake_map(&f, CODE, FAKE_P | FAKE_W | FAKE_U);
	fake_map(&f, DATA, FAKE_P | FAKE_W | FAKE_U);
	fake_page(&f); /* so that the second data page does not follow the first */
	fake_map(&f, DATA + 4096, FAKE_P | FAKE_W | FAKE_U);
	f.v->run->s.regs.sregs.gs.base = GS_BASE;
	f.v->run->s.regs.regs.rip = CODE;
	f.v->run->s.regs.regs.rflags = 2;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	fake_deinit(&f);
	return 0;
}

static inline void put_code(const void *bytes, size_t n)
{
	memset(fake_host(&f, CODE), 0x90, 64);
	memcpy(fake_host(&f, CODE), bytes, n);
	f.v->run->s.regs.regs.rip = CODE;
	f.v->run->kvm_dirty_regs = 0;
}
#define CODE_BYTES(...)                               \
	do {                                          \
		const uint8_t b_[] = { __VA_ARGS__ }; \
		put_code(b_, sizeof(b_));             \
	} while (0)

static inline void completes(unsigned int len)
{
	struct err e = { 0 };

	if (complete_instruction(f.v, &e))
		fail_msg("%s", e.text);
	assert_int_equal(f.v->run->s.regs.regs.rip, CODE + len);
	assert_int_equal(f.v->run->kvm_dirty_regs, KVM_SYNC_X86_REGS);
}

#endif
