/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of requests and packets: in order, for the events that ask, and counted where there is no room. */
#include "vmm/config.h"
#include "vmm/machine.h"
#include "vmm/dev/net_link.h"
#include "vmm/io_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define MANY 20000u /* more than fit */

static struct vm *vm;

static int setup(void **state)
{
	(void)state;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return -1;
	vm->setup = calloc(1, sizeof(*vm->setup));
	return vm->setup ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	io_log_destroy(vm);
	free(vm->setup);
	free(vm);
	return 0;
}

static void create(unsigned int disks, enum net_kind net, bool requests, bool packets)
{
	struct err e = { 0 };

	vm->setup->ndisks = disks;
	vm->setup->net.kind = net;
	vm->cfg.nevents = 1;
	vm->cfg.event[0].kind = VM_EVENT_WALL;
	if (requests)
		vm->cfg.event[vm->cfg.nevents++] = (struct vm_event){ .kind = VM_EVENT_IO };
	if (packets)
		vm->cfg.event[vm->cfg.nevents++] =
			(struct vm_event){ .kind = VM_EVENT_IO, .packets = true };
	assert_int_equal(io_log_create(vm, &e), 0);
}

static void nobody_asks(void **state)
{
	struct io_record r;
	uint64_t packets = 1;

	(void)state;
	create(1, NET_USER, false, false);
	assert_null(io_log_device(vm, MACHINE_IO_REQUESTS).done);
	assert_null(io_log_device(vm, MACHINE_IO_PACKETS).done);
	assert_int_equal(vm_io_take(vm, &r, 1), 0);
	assert_int_equal(vm_io_lost(vm, &packets), 0);
	assert_int_equal(packets, 0);
}

/* An event without its device makes none; a device tells only what its own event asks for. */
static void each_for_its_own_event(void **state)
{
	(void)state;
	create(0, NET_NONE, true, true);
	assert_null(vm->io_log);
	create(1, NET_USER, false, true);
	assert_null(io_log_device(vm, MACHINE_IO_REQUESTS).done);
	assert_non_null(io_log_device(vm, MACHINE_IO_PACKETS).done);
	io_log_destroy(vm);
	create(1, NET_USER, true, false);
	assert_non_null(io_log_device(vm, MACHINE_IO_REQUESTS).done);
	assert_null(io_log_device(vm, MACHINE_IO_PACKETS).done);
}

static void what_finds_no_room_is_counted(void **state)
{
	static struct io_record r[MANY];
	struct dev_io io;
	uint64_t lost, packets;
	unsigned int n;

	(void)state;
	create(1, NET_USER, true, true);
	io = io_log_device(vm, MACHINE_IO_PACKETS);
	for (unsigned int i = 0; i < MANY; i++)
		io.done(io.ctx,
			&(struct io_record){ .type = i % 2 ? IO_SENT : IO_READ, .bytes = i });
	io.done(io.ctx, &(struct io_record){ .type = IO_RAISED });
	n = vm_io_take(vm, r, MANY);
	lost = vm_io_lost(vm, &packets);
	assert_true(n > 0 && n < MANY && n % 2 == 0);
	assert_int_equal(lost, (MANY - n) / 2);
	assert_int_equal(packets, (MANY - n) / 2);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(r[i].bytes, i);
	/* There is room again. */
	io.done(io.ctx, &(struct io_record){ .type = IO_RECEIVED, .bytes = 7 });
	assert_int_equal(vm_io_take(vm, r, MANY), 1);
	assert_int_equal(r[0].bytes, 7);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nobody_asks),
		TEST(each_for_its_own_event),
		TEST(what_finds_no_room_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
