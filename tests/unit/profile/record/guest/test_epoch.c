/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The proof of a kernel in memory that is read from outside: what cannot be read is no other kernel. test_guest_epochs.c has the
 * cases in which all of the memory can be read.
 */
#include "profile/record/guest/epoch.h"

#include "base/gmem_remote.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MEMORY (4u << 20)
#define TABLES UINT64_C(0x1000) /* three levels, one page each */
#define KERNEL_PA (2u << 20)
#define KERNEL_VA UINT64_C(0xffffffff81000000)
#define CODE (KERNEL_VA + 0x3000)
#define MS UINT64_C(1000000)

static _Alignas(4096) uint8_t memory[MEMORY];
static struct gmem mem;
static struct gmem_remote remote;
static struct epoch_mark mark;
static struct sample now;
/* Reads of [from, to) of the memory fail with this error; 0: none fails. */
static struct {
	int error;
	uint32_t from, to;
} fails;

static int fetch_or_fail(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	const uint64_t at = host - (uintptr_t)memory;

	(void)r;
	if (fails.error && at >= fails.from && at < fails.to)
		return fails.error;
	memcpy(dst, memory + at, len);
	return 0;
}

static void put_entry(uint64_t table, uint64_t index, uint64_t entry)
{
	memcpy(memory + table + index * 8, &entry, 8);
}

static int setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	put_entry(TABLES, 511, (TABLES + 0x1000) | 3);
	put_entry(TABLES + 0x1000, 510, (TABLES + 0x2000) | 3);
	put_entry(TABLES + 0x2000, 8, KERNEL_PA | 0x83); /* 2 MiB */
	memcpy(memory + KERNEL_PA, "Linux version of a test", 24);
	mem = (struct gmem){ .region[0] = { .size = MEMORY, .host = memory }, .n = 1 };
	gmem_remote_init_by(&remote, fetch_or_fail, NULL);
	mem.remote = &remote;
	fails.error = 0;
	now = (struct sample){ .time_ns = 100 * MS };
	now.regs.cr0 = UINT64_C(1) << 31 | 1;
	now.regs.cr3 = TABLES;
	now.regs.cr4 = 1u << 5;
	now.regs.efer = 1u << 10 | 1u << 8;
	now.regs.rip = CODE;
	now.regs.cs = 0x10;
	epoch_set(&mark, &mem, &now, KERNEL_VA);
	assert_int_not_equal(mark.len, 0);
	return 0;
}

static enum epoch_state later(void)
{
	now.time_ns += 100 * MS;
	return epoch_check(&mark, &mem, &now);
}

static void fail_reads(int error, uint32_t from, uint32_t to)
{
	fails.error = error;
	fails.from = from;
	fails.to = to;
}

/* Pages that are not in memory, a process that has gone, and one that may not be read. */
static void unreadable(void **state)
{
	static const int errors[] = { -ENODATA, -ESRCH, -EPERM, -EPIPE };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fail_reads(errors[i], 0, MEMORY);
		assert_int_equal(later(), EPOCH_DOUBT);
		fail_reads(errors[i], KERNEL_PA, KERNEL_PA + 4096); /* the mark alone */
		assert_int_equal(later(), EPOCH_DOUBT);
		fail_reads(errors[i], TABLES + 0x1000, TABLES + 0x3000); /* the lower tables */
		assert_int_equal(later(), EPOCH_DOUBT);
		fail_reads(0, 0, 0);
		assert_int_equal(later(), EPOCH_SAME);
	}
}

/* The tables of the sample map neither the mark nor the code that ran: they are gone. */
static void nothing_is_mapped(void **state)
{
	(void)state;
	fail_reads(-EFAULT, 0, MEMORY);
	assert_int_equal(later(), EPOCH_DOUBT);
}

static void another_kernel(void **state)
{
	(void)state;
	memory[KERNEL_PA]++;
	assert_int_equal(later(), EPOCH_OTHER);
	/* The code that ran cannot be read: nothing is proven. */
	fail_reads(-ENODATA, KERNEL_PA + 0x3000, KERNEL_PA + 0x4000);
	assert_int_equal(later(), EPOCH_DOUBT);
}

/* Through a gdbstub the other side walks the tables, and all that is told is that there is nothing at the address. */
static void other_side_walks(void **state)
{
	(void)state;
	mem.is_virtual = true;
	mem.virtual_cr3 = TABLES;
	mem.region[0] = (struct gmem_region){ .gpa = KERNEL_VA,
					      .size = 2u << 20,
					      .host = memory + KERNEL_PA };
	epoch_set(&mark, &mem, &now, KERNEL_VA);
	assert_int_equal(later(), EPOCH_SAME);
	/* After a reset, or when the machine has ended. */
	fail_reads(-EFAULT, 0, MEMORY);
	assert_int_equal(later(), EPOCH_DOUBT);
	fail_reads(-EPIPE, 0, MEMORY);
	assert_int_equal(later(), EPOCH_DOUBT);
	/* Another kernel, which has nothing where the mark was. */
	fail_reads(-EFAULT, KERNEL_PA, KERNEL_PA + 4096);
	assert_int_equal(later(), EPOCH_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(unreadable, setup),
		cmocka_unit_test_setup(nothing_is_mapped, setup),
		cmocka_unit_test_setup(another_kernel, setup),
		cmocka_unit_test_setup(other_side_walks, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
