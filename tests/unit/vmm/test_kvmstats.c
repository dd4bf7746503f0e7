/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM's statistics file. What damage does is the fuzz target's. */
#include "vmm/kvmstats.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Statistics of a vCPU that never ran; written by tests/fuzz/make-corpus-kvmstats.py. */
#define REAL "tests/fuzz/corpus/fuzz_kvmstats/vcpu"

static struct file_map file;

static int setup(void **state)
{
	struct err e = { 0 };

	(void)state;
	return file_map_open(&file, REAL, 1 << 20, &e);
}

static int teardown(void **state)
{
	(void)state;
	file_map_close(&file);
	return 0;
}

static void a_real_one(void **state)
{
	struct kvmstats s = { .fd = -1 };
	const struct kvmstats_desc *d;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(kvmstats_parse(&s, file.data, file.len, &e), 0);
	assert_true(s.n > 10);
	assert_int_equal(s.data_offset + s.data_len, file.len);
	d = kvmstats_find(&s, "halt_wait_ns");
	assert_non_null(d);
	assert_int_equal(d->type, KVMSTATS_CUMULATIVE);
	assert_int_equal(d->unit, KVMSTATS_SECONDS);
	assert_int_equal(d->exponent, -9);
	assert_int_equal(d->base, 0);
	assert_int_equal(d->size, 1);
	d = kvmstats_find(&s, "halt_wait_hist");
	assert_non_null(d);
	assert_int_equal(d->type, KVMSTATS_LOG_HIST);
	assert_int_equal(d->size, 32);
	d = kvmstats_find(&s, "guest_mode");
	assert_non_null(d);
	assert_int_equal(d->type, KVMSTATS_INSTANT);
	assert_int_equal(d->unit, KVMSTATS_BOOLEAN);
	assert_null(kvmstats_find(&s, "no_such"));
	kvmstats_close(&s);
	assert_int_equal(s.n, 0);
}

/* Values change, the layout stays: a file in memory stands for KVM's. */
static void values_are_read_again(void **state)
{
	int fd = memfd_create("kvmstats", MFD_CLOEXEC);
	const struct kvmstats_desc *d;
	struct kvmstats s;
	struct err e = { 0 };
	uint64_t v = 4711;
	uint8_t *data;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, file.data, file.len), 0);
	assert_int_equal(kvmstats_open(&s, fd, &e), 0);
	d = kvmstats_find(&s, "exits");
	assert_non_null(d);
	data = malloc(s.data_len);
	assert_non_null(data);
	assert_int_equal(kvmstats_read(&s, data), 0);
	assert_int_equal(kvmstats_value(d, data), 0);
	assert_int_equal(pwrite(fd, &v, sizeof(v), s.data_offset + d->offset), sizeof(v));
	assert_int_equal(kvmstats_read(&s, data), 0);
	assert_int_equal(kvmstats_value(d, data), v);
	assert_int_equal(ftruncate(fd, s.data_offset + 4), 0);
	assert_int_equal(kvmstats_read(&s, data), -EIO);
	free(data);
	kvmstats_close(&s);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was taken over */
}

static void bad_ones_are_named(void **state)
{
	struct kvmstats s = { .fd = -1 };
	struct err e = { 0 };
	uint8_t copy[4096];
	int fd;

	(void)state;
	assert_true(file.len < sizeof(copy));
	assert_int_equal(kvmstats_parse(&s, file.data, 10, &e), -EINVAL);
	assert_non_null(strstr(e.text, "KVM's statistics: a header"));
	memcpy(copy, file.data, file.len);
	copy[8] = copy[9] = 0xff; /* the number of descriptors */
	err_clear(&e);
	assert_int_equal(kvmstats_parse(&s, copy, file.len, &e), -EINVAL);
	assert_non_null(strstr(e.text, "a number of 65535"));
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	err_clear(&e);
	assert_int_equal(kvmstats_open(&s, fd, &e), -EIO);
	assert_int_equal(s.fd, -1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_real_one, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_ones_are_named, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
