/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How absent pages of a process are read: from their file, or within a budget of what comes into memory. */
#include "vmm/attach/attach_reader.h"

#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u
#define SIZE (4u << 20)

static struct gmem_remote remote;
static uint8_t bytes[PAGE];

static struct attach_reader *begin(void)
{
	struct err e = { 0 };
	struct attach_reader *r = attach_reader_create(&remote, getpid(), &e);

	assert_non_null(r);
	return r;
}

static int fetch(const uint8_t *from, size_t len)
{
	return remote.fetch(&remote, (uint64_t)(uintptr_t)from, bytes, len);
}

/* A restored guest's memory: the file says what is on pages that nothing has touched. */
static void absent_pages_of_a_file_stay_absent(void **state)
{
	char path[] = "reader-XXXXXX";
	cleanup_close int fd = mkstemp(path);
	struct attach_reader *r;
	uint8_t *p;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(pwrite(fd, "file", 4, 100 * PAGE + 8), 4);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	memcpy(p + 200 * PAGE, "here", 4);
	r = begin();
	assert_int_equal(fetch(p + 100 * PAGE + 8, 4), 0);
	assert_memory_equal(bytes, "file", 4);
	assert_int_equal(resident_bytes(&r->resident, (uint64_t)(uintptr_t)p + 100 * PAGE, 1), 0);
	assert_int_equal(atomic_load(&r->brought), 0);
	assert_int_equal(atomic_load(&r->from_file), PAGE);
	assert_int_equal(fetch(p + 100 * PAGE, 4), 0);
	/* What the process has written is in no file. */
	assert_int_equal(fetch(p + 200 * PAGE, 4), 0);
	assert_memory_equal(bytes, "here", 4);
	assert_int_equal(atomic_load(&r->from_file), PAGE);
	attach_reader_destroy(r);
	munmap(p, SIZE);
}

static void other_absent_pages_have_a_budget(void **state)
{
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const unsigned int last = ATTACH_READER_BUDGET / PAGE;
	struct attach_reader *r;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(madvise(p, SIZE, MADV_NOHUGEPAGE), 0);
	r = begin();
	for (unsigned int i = 0; i < last; i++)
		assert_int_equal(fetch(p + (size_t)i * PAGE, 8), 0);
	assert_int_equal(atomic_load(&r->brought), ATTACH_READER_BUDGET);
	assert_int_equal(fetch(p + (size_t)last * PAGE, 8), -ENODATA);
	assert_int_equal(atomic_load(&r->absent), 1);
	/* Present pages are read all the same, and so are the kernel's tables. */
	assert_int_equal(fetch(p, 8), 0);
	remote.tables = true;
	assert_int_equal(fetch(p + (size_t)last * PAGE, 8), 0);
	assert_int_equal(atomic_load(&r->brought), ATTACH_READER_BUDGET + PAGE);
	attach_reader_destroy(r);
	munmap(p, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_pages_of_a_file_stay_absent),
		cmocka_unit_test(other_absent_pages_have_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
