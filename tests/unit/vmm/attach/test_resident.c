/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which pages of a process are in memory, and in which of its areas a server may have to bring them. */
#include "vmm/attach/resident.h"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u
#define BIG (UINT64_C(32) << 20)

static void parse(struct resident *r, const char *const *line, size_t n)
{
	struct resident_area area = { 0 };

	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < n; i++)
		resident_parse(r, line[i], &area);
}

static void areas_with_a_server_are_known(void **state)
{
	static const char *const line[] = {
		"7f0000000000-7f0004000000 rw-p 00000000 00:00 0 ",
		"Size:              65536 kB",
		"VmFlags: rd wr mr mw me nr sd um ",
		"7f0010000000-7f0014000000 rw-p 00000000 00:00 0 ",
		"VmFlags: rd wr mr mw me ui ac ",
		"7f0020000000-7f0024000000 rw-p 00000000 00:00 0 ",
		"VmFlags: rd wr mr mw me uw ac ",
		"7f0030000000-7f0034000000 rw-p 00000000 00:00 0 ",
		"VmFlags: rd wr mr mw me ac sd ",
	};
	struct resident r;

	(void)state;
	parse(&r, line, ARRAY_SIZE(line));
	assert_int_equal(r.nserved, 3);
	assert_true(r.served[0].start == 0x7f0000000000 && r.served[0].end == 0x7f0004000000);
	assert_true(r.served[1].start == 0x7f0010000000 && r.served[2].start == 0x7f0020000000);
	assert_int_equal(r.nsteady, 1);
	assert_true(r.steady[0].start == 0x7f0030000000);
	assert_false(r.all_served);
}

static void only_memory_is_steady(void **state)
{
	static const char *const line[] = {
		"7f0000000000-7f0004000000 rw-s 00000000 00:01 7 /memfd:guest (deleted)",
		"VmFlags: rd wr sh",
		"7f0010000000-7f0014000000 rw-s 00000000 00:2f 9 /mnt/fuse/ram",
		"VmFlags: rd wr sh",
		"7f0020000000-7f0024000000 r--p 00000000 00:00 0 ",
		"VmFlags: rd",
		"7f0030000000-7f0030800000 rw-p 00000000 00:00 0 [stack]",
		"VmFlags: rd wr",
	};
	struct resident r;

	(void)state;
	parse(&r, line, ARRAY_SIZE(line));
	assert_int_equal(r.nsteady, 1);
	assert_true(r.steady[0].start == 0x7f0000000000);
}

static void files_of_others_are_served(void **state)
{
	static const char mounts[] =
		"21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		"30 21 0:47 / /mnt/fuse rw,nosuid - fuse.sshfs host:/ rw\n"
		"31 21 0:48 / /mnt/nfs rw shared:2 master:3 - nfs4 host:/x rw\n"
		"32 21 0:49 / /run rw - tmpfs tmpfs rw\n"
		"33 21 8:17 / /media/usb rw - fuseblk /dev/sdb1 rw\n";
	static const char *const line[] = {
		"7f0000000000-7f0004000000 rw-s 00000000 00:2f 9 /mnt/fuse/ram",
		"VmFlags: rd wr sh",
		"7f0010000000-7f0014000000 rw-p 00000000 08:01 9 /var/ram",
		"VmFlags: rd wr",
		"7f0020000000-7f0024000000 rw-p 00000000 00:31 9 /run/ram",
		"VmFlags: rd wr",
		"7f0030000000-7f0034000000 rw-p 00000000 00:30 9 /mnt/nfs/ram",
		"VmFlags: rd wr",
	};
	char text[sizeof(mounts)];
	struct resident r;
	struct resident_area area = { 0 };

	(void)state;
	assert_true(resident_is_remote(mounts, 0, 0x2f) && resident_is_remote(mounts, 0, 0x30));
	assert_true(resident_is_remote(mounts, 8, 17));
	assert_false(resident_is_remote(mounts, 8, 1) || resident_is_remote(mounts, 0, 0x31));
	/* Not in the list. */
	assert_true(resident_is_remote(mounts, 0, 99) && resident_is_remote(NULL, 0, 0x31));
	assert_false(resident_is_remote(mounts, 8, 99));
	memset(&r, 0, sizeof(r));
	memcpy(text, mounts, sizeof(mounts));
	r.mounts = text;
	for (size_t i = 0; i < ARRAY_SIZE(line); i++)
		resident_parse(&r, line[i], &area);
	assert_int_equal(r.nserved, 2);
	assert_true(r.served[0].start == 0x7f0000000000 && r.served[1].start == 0x7f0030000000);
}

/* Too many to be listed: then each area may have a server. */
static void areas_beyond_the_list_count_as_served(void **state)
{
	struct resident_area area = { .start = 0x1000, .end = 0x2000 };
	struct resident r;

	(void)state;
	memset(&r, 0, sizeof(r));
	for (unsigned int i = 0; i < RESIDENT_AREAS; i++)
		resident_parse(&r, "VmFlags: rd um", &area);
	assert_false(r.all_served);
	resident_parse(&r, "VmFlags: rd um", &area);
	assert_true(r.all_served);
	assert_int_equal(r.nserved, RESIDENT_AREAS);
}

static void absent_pages_end_what_is_read(void **state)
{
	uint8_t *p = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t at = (uint64_t)(uintptr_t)p;
	struct resident r;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(madvise(p, BIG, MADV_NOHUGEPAGE), 0);
	memset(p, 1, 200 * PAGE);
	resident_open(&r, getpid());
	assert_int_equal(resident_bytes(&r, at, 200 * PAGE), 200 * PAGE);
	assert_int_equal(resident_bytes(&r, at + 100, 8), 8);
	assert_int_equal(resident_bytes(&r, at + 100, BIG / 2), 200 * PAGE - 100);
	assert_int_equal(resident_bytes(&r, at + 200 * PAGE, 8), 0);
	assert_int_equal(resident_bytes(&r, at + 200 * PAGE - 4, 8), 4);
	assert_false(resident_is_served(&r, at));
	/* A page was absent: what was present before is not relied upon. */
	assert_int_equal(madvise(p + 8 * PAGE, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(resident_bytes(&r, at, 200 * PAGE), 8 * PAGE);
	assert_int_equal(resident_bytes(&r, at + 8 * PAGE, 1), 0);
	resident_close(&r);
	munmap(p, BIG);
}

static void without_its_files_nothing_is_present(void **state)
{
	struct resident r;

	(void)state;
	/* No process has this number (Documentation/admin-guide/sysctl/kernel.rst, pid_max). */
	resident_open(&r, 1 << 23);
	assert_int_equal(resident_bytes(&r, (uint64_t)(uintptr_t)&r, 8), 0);
	assert_true(resident_is_served(&r, (uint64_t)(uintptr_t)&r));
	resident_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(areas_with_a_server_are_known),
		cmocka_unit_test(only_memory_is_steady),
		cmocka_unit_test(files_of_others_are_served),
		cmocka_unit_test(areas_beyond_the_list_count_as_served),
		cmocka_unit_test(absent_pages_end_what_is_read),
		cmocka_unit_test(without_its_files_nothing_is_present),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
