/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device that the vCPU's thread works for, its time, and the sample whose period ends
 * meanwhile.
 */
#include "base/clock.h"
#include "vmm/machine.h"
#include "vmm/capture/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/sample_check.h"
#include "tests/unit/vcpu_fixture.h"
#include "vmm/device.h"

#define STACK UINT64_C(0xffffc90000010000)

static struct fake f;

static void nothing(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	(void)dev;
	(void)off;
	(void)write;
	(void)len;
	(void)val;
}

static int setup(void **state)
{
	(void)state;
	fake_init(&f, 1 << 20);
	fake_map_range(&f, STACK, 16384);
	f.vm->cfg.nevents = 1;
	f.v->stack_max = 16384;
	f.v->run->s.regs.regs.rsp = STACK + 0x3000;
	f.v->run->s.regs.regs.rip = UINT64_C(0xffffffff81000000);
	atomic_init(&f.vm->control.collect, true);
	atomic_init(&f.v->collect, true);
	if (bus_add(&f.vm->bus, 0x60, 1, "i8042", nothing, NULL) ||
	    bus_add(&f.vm->bus, 0x3f8, 8, "serial", nothing, NULL) ||
	    bus_add(&f.vm->bus, 0x64, 1, "i8042", nothing, NULL))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_deinit(&f);
	return 0;
}

/* The name of what an exit is work for, and that it was counted once. */
static const char *work(uint32_t reason, uint16_t port)
{
	uint64_t since;
	unsigned int d;

	f.v->run->exit_reason = reason;
	f.v->run->io.port = port;
	since = device_enter(f.v);
	d = (unsigned int)f.v->device - 1;
	assert_true(d < VM_MAX_DEVICES);
	f.v->stats.device[d].exits = 0;
	device_leave(f.v, since);
	assert_int_equal(f.v->device, 0);
	assert_int_equal(f.v->stats.device[d].exits, 1);
	return vm_device_name(f.vm, d);
}

static void exits_have_names(void **state)
{
	(void)state;
	assert_string_equal(work(KVM_EXIT_IO, 0x3f8), "serial");
	assert_string_equal(work(KVM_EXIT_IO, 0x3ff), "serial");
	assert_string_equal(work(KVM_EXIT_IO, 0x400), "no device");
	assert_string_equal(work(KVM_EXIT_IO, 0x60), "i8042");
	assert_string_equal(work(KVM_EXIT_MMIO, 0), "mmio");
	assert_string_equal(work(KVM_EXIT_X86_RDMSR, 0), "msr");
	assert_string_equal(work(KVM_EXIT_X86_WRMSR, 0), "msr");
	assert_string_equal(work(KVM_EXIT_DEBUG, 0), "debug");
	assert_string_equal(work(KVM_EXIT_INTERNAL_ERROR, 0), "instruction");
	assert_string_equal(work(KVM_EXIT_SHUTDOWN, 0), "other");
	assert_null(vm_device_name(f.vm, 3));
	assert_null(vm_device_name(f.vm, VM_MAX_DEVICES));
}

static void one_index_for_one_name(void **state)
{
	(void)state;
	f.v->stats.device[0].exits = 0;
	work(KVM_EXIT_IO, 0x64);
	assert_int_equal(f.v->stats.device[0].exits, 1);
	assert_int_equal(f.v->stats.device[2].exits, 0);
}

static void time_is_counted(void **state)
{
	uint64_t since, t0 = clock_mono_ns();
	const struct timespec nap = { .tv_nsec = 2000000 };

	(void)state;
	f.v->run->exit_reason = KVM_EXIT_IO;
	f.v->run->io.port = 0x3f8;
	since = device_enter(f.v);
	nanosleep(&nap, NULL);
	device_leave(f.v, since);
	assert_true(f.v->stats.device[1].ns >= 2000000);
	assert_true(f.v->stats.device[1].ns <= clock_mono_ns() - t0);
}

/* The signal comes while the device works; the sample is taken at the next entry. */
static void sample_knows_the_device(void **state)
{
	siginfo_t timer = { .si_code = SI_TIMER };
	const struct sample *s;
	uint64_t since;
	size_t len;

	(void)state;
	f.v->run->exit_reason = KVM_EXIT_IO;
	f.v->run->io.port = 0x3f8;
	for (int in_device = 1; in_device >= 0; in_device--) {
		if (in_device) {
			since = device_enter(f.v);
			source_signalled(f.v, &timer);
			device_leave(f.v, since);
		} else {
			source_signalled(f.v, &timer);
		}
		f.v->source[0].period = 1000;
		f.v->source[0].trigger.period_ns = 1000;
		f.v->source[0].trigger.start_ns = clock_mono_ns() - 1500;
		f.v->source[0].trigger.deadline_ns = f.v->source[0].trigger.start_ns + 1000;
		source_take_all(f.v);
		s = ring_peek(&f.v->ring, &len);
		assert_non_null(s);
		assert_int_equal(sample_check(s, len), 0);
		assert_int_equal(s->device, in_device ? 1 + 1 : 0);
		ring_release(&f.v->ring);
	}
	assert_int_equal(f.v->stats.device[1].samples, 1);
	assert_int_equal(f.v->stats.samples, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exits_have_names, setup, teardown),
		cmocka_unit_test_setup_teardown(one_index_for_one_name, setup, teardown),
		cmocka_unit_test_setup_teardown(time_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(sample_knows_the_device, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
