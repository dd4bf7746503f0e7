/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records that perf writes on hosts that the tests do not have: guests, groups of counters, deferred chains, LBR. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "profile/format/names/names.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"

#include <stdio.h>
#include <string.h>

#define USUAL                                                                    \
	(PERFDATA_SAMPLE_IDENTIFIER | PERFDATA_SAMPLE_IP | PERFDATA_SAMPLE_TID | \
	 PERFDATA_SAMPLE_TIME)
#define ID_PADDED 20u

static struct buf b;
static struct perfdata *p;

static int setup(void **state)
{
	(void)state;
	buf_init(&b);
	buf_add(&b, PERFDATA_MAGIC, 8);
	buf_u64(&b, PERFDATA_PIPE_HEADER_SIZE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perfdata_close(p);
	p = NULL;
	buf_deinit(&b);
	return 0;
}

static void record(uint32_t type, uint16_t misc, const struct buf *body)
{
	buf_u32(&b, type);
	buf_u16(&b, misc);
	buf_u16(&b, (uint16_t)(8 + body->len));
	buf_add(&b, body->data, body->len);
}

struct attr {
	uint64_t sample_type, read_format, flags, branch_type, regs_user;
};

static void add_attr(const struct attr *x, uint64_t id)
{
	struct buf a;

	buf_init(&a);
	buf_u32(&a, 0);
	buf_u32(&a, PERFDATA_ATTR_SIZE);
	buf_u64(&a, 0);
	buf_u64(&a, 100); /* period */
	buf_u64(&a, x->sample_type);
	buf_u64(&a, x->read_format);
	buf_u64(&a, PERFDATA_ATTR_SAMPLE_ID_ALL | x->flags);
	buf_add(&a, NULL, 24);
	buf_u64(&a, x->branch_type);
	buf_u64(&a, x->regs_user);
	buf_add(&a, NULL, PERFDATA_ATTR_SIZE - a.len);
	buf_u64(&a, id);
	record(PERFDATA_RECORD_HEADER_ATTR, 0, &a);
	buf_deinit(&a);
}

static void begin_sample(struct buf *s, uint64_t ip, uint32_t tid, uint64_t time)
{
	buf_init(s);
	buf_u64(s, 10);
	buf_u64(s, ip);
	buf_u32(s, 7);
	buf_u32(s, tid);
	buf_u64(s, time);
}

static void end_sample(struct buf *s, uint16_t misc)
{
	record(PERFDATA_RECORD_SAMPLE, misc, s);
	buf_deinit(s);
}

static void put_chain(struct buf *s, const uint64_t *words, uint64_t n)
{
	buf_u64(s, n);
	buf_add(s, words, 8 * n);
}

static void open_it(void)
{
	struct err e = { 0 };
	struct cursor c;

	cursor_init(&c, b.data, b.len);
	if (perfdata_open_split(&p, "bytes", &c, NULL, 0, &e))
		fail_msg("%s", e.text);
}

static struct perfdata_record next_sample(void)
{
	struct perfdata_record r;

	do
		assert_true(perfdata_next(p, &r));
	while (r.kind != PERFDATA_SAMPLE);
	return r;
}

/* Checks a sample's frames: pairs of address and owner, the kernel's with 0x100 added to it. */
static void expect_frames(const struct perfdata_record *r, const uint64_t *want, size_t n)
{
	struct perfdata_walk w;
	struct perfdata_frame f;

	perfdata_walk_begin(&w, r);
	for (size_t i = 0; i < n; i++) {
		assert_true(perfdata_walk_next(&w, &f));
		assert_int_equal(f.ip, want[2 * i]);
		assert_int_equal(f.owner + (f.kernel ? 0x100 : 0), want[2 * i + 1]);
	}
	assert_false(perfdata_walk_next(&w, &f));
}

/* -- modes ---------------------------------------------------------------------------- */

static void test_modes(void **state)
{
	static const struct {
		uint16_t misc;
		uint64_t owner;
	} mode[] = {
		{ PERFDATA_MISC_KERNEL, 0x100 },
		{ PERFDATA_MISC_USER, PERFDATA_RECORDED },
		{ PERFDATA_MISC_HYPERVISOR, PERFDATA_HYPERVISOR },
		{ PERFDATA_MISC_GUEST_KERNEL, PERFDATA_GUEST_KERNEL },
		{ PERFDATA_MISC_GUEST_USER, PERFDATA_GUEST_USER },
		{ 0, PERFDATA_NO_MODE },
		{ 7, PERFDATA_NO_MODE },
	};
	struct buf s;

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL }, 10);
	for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		begin_sample(&s, 0x1000 + i, 7, 10 + i);
		end_sample(&s, mode[i].misc);
	}
	open_it();
	for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		const uint64_t want[] = { 0x1000 + i, mode[i].owner };
		struct perfdata_record r = next_sample();

		expect_frames(&r, want, 1);
	}
}

/* A guest's sample has no frame of the host, whatever its chain's markers say. */
static void test_guest_chains(void **state)
{
	static const uint64_t empty[] = { PERFDATA_CONTEXT_KERNEL, PERFDATA_CONTEXT_USER };
	static const uint64_t full[] = { PERFDATA_CONTEXT_KERNEL, 0x11, 0x12, PERFDATA_CONTEXT_USER,
					 0x13 };
	static const uint64_t own[] = { PERFDATA_CONTEXT_KERNEL,
					0x21,
					PERFDATA_CONTEXT_GUEST_KERNEL,
					0x22,
					PERFDATA_CONTEXT_GUEST_USER,
					0x23,
					PERFDATA_CONTEXT_HV,
					0x24,
					(uint64_t)-4000,
					0x25 };
	static const uint64_t want_empty[] = { 0x10, PERFDATA_GUEST_KERNEL };
	static const uint64_t want_full[] = { 0x11, PERFDATA_GUEST_KERNEL,
					      0x12, PERFDATA_GUEST_KERNEL,
					      0x13, PERFDATA_GUEST_USER };
	static const uint64_t want_own[] = { 0x21, 0x100,
					     0x22, PERFDATA_GUEST_KERNEL,
					     0x23, PERFDATA_GUEST_USER,
					     0x24, PERFDATA_HYPERVISOR };
	struct perfdata_record r;
	struct buf s;

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL | PERFDATA_SAMPLE_CALLCHAIN }, 10);
	begin_sample(&s, 0x10, 7, 1);
	put_chain(&s, empty, 2);
	end_sample(&s, PERFDATA_MISC_GUEST_KERNEL);
	begin_sample(&s, 0x11, 7, 2);
	put_chain(&s, full, 5);
	end_sample(&s, PERFDATA_MISC_GUEST_KERNEL);
	begin_sample(&s, 0x21, 7, 3);
	put_chain(&s, own, 10);
	end_sample(&s, PERFDATA_MISC_KERNEL);
	open_it();
	r = next_sample();
	expect_frames(&r, want_empty, 1);
	r = next_sample();
	expect_frames(&r, want_full, 3);
	r = next_sample();
	expect_frames(&r, want_own, 4);
}

/* -- groups --------------------------------------------------------------------------- */

#define GROUP (PERFDATA_FORMAT_GROUP | PERFDATA_FORMAT_ID | PERFDATA_FORMAT_LOST)

static void put_group(uint64_t ip, uint32_t tid, uint64_t time, uint64_t first, uint64_t second)
{
	struct buf s;

	begin_sample(&s, ip, tid, time);
	buf_u64(&s, 3);
	buf_u64(&s, first);
	buf_u64(&s, 10);
	buf_u64(&s, 0);
	buf_u64(&s, second);
	buf_u64(&s, 20);
	buf_u64(&s, 0);
	buf_u64(&s, 1000 * time);
	buf_u64(&s, 999); /* an id of no event: perf leaves it out, too */
	buf_u64(&s, 0);
	end_sample(&s, PERFDATA_MISC_USER);
}

static void add_group(uint64_t flags)
{
	const struct attr a = { .sample_type = USUAL | PERFDATA_SAMPLE_READ,
				.read_format = GROUP,
				.flags = flags };

	add_attr(&a, 10);
	add_attr(&a, 20);
}

/* Periods are what the counters gained, in order of time, not of the file. */
static void test_group(void **state)
{
	struct perfdata_record r;

	(void)state;
	add_group(0);
	put_group(0x1, 7, 10, 100, 5);
	put_group(0x3, 7, 30, 400, 9);
	put_group(0x2, 8, 20, 250, 5);
	open_it();
	assert_int_equal(p->events[0].samples, 3);
	assert_int_equal(p->events[1].samples, 2);
	assert_int_equal(p->nsamples, 3);
	r = next_sample();
	assert_true(r.sample.ip == 1 && r.sample.period == 100);
	r = next_sample();
	assert_true(r.sample.ip == 2 && r.sample.period == 150);
	r = next_sample();
	assert_true(r.sample.ip == 3 && r.sample.period == 150);
}

/* Counters that threads inherit count for each thread of its own. */
static void test_inherited_group(void **state)
{
	struct perfdata_record r;

	(void)state;
	add_group(PERFDATA_ATTR_INHERIT);
	put_group(0x1, 7, 10, 100, 5);
	put_group(0x2, 8, 20, 30, 0);
	put_group(0x3, 7, 30, 400, 5);
	open_it();
	assert_int_equal(p->events[1].samples, 1);
	r = next_sample();
	assert_int_equal(r.sample.period, 100);
	r = next_sample();
	assert_int_equal(r.sample.period, 30);
	r = next_sample();
	assert_int_equal(r.sample.period, 300);
}

/* -- chains --------------------------------------------------------------------------- */

static void put_deferred(uint32_t tid, uint64_t cookie, const uint64_t *words, uint64_t n)
{
	struct buf d;

	buf_init(&d);
	buf_u64(&d, cookie);
	put_chain(&d, words, n);
	buf_u32(&d, 7); /* the fields of sample_id_all */
	buf_u32(&d, tid);
	buf_u64(&d, 50);
	buf_u64(&d, 10);
	record(PERFDATA_RECORD_CALLCHAIN_DEFERRED, PERFDATA_MISC_USER, &d);
	buf_deinit(&d);
}

static void test_deferred(void **state)
{
	static const uint64_t kernel[] = { PERFDATA_CONTEXT_KERNEL, 0x1, 0x2,
					   PERFDATA_CONTEXT_USER_DEFERRED, 77 };
	static const uint64_t user[] = { PERFDATA_CONTEXT_USER_DEFERRED, 77 };
	static const uint64_t marked[] = { PERFDATA_CONTEXT_USER, 0x11, 0x12 };
	static const uint64_t other[] = { 0x21 };
	static const uint64_t want_kernel[] = { 0x1, 0x100, 0x2, 0x100, 0x11, 0, 0x12, 0 };
	static const uint64_t want_user[] = { 0x11, 0, 0x12, 0 };
	static const uint64_t want_other[] = { 0x21, 0 };
	static const uint64_t want_none[] = { 0x5, 0 };
	struct perfdata_record r;
	struct buf s;

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL | PERFDATA_SAMPLE_CALLCHAIN }, 10);
	begin_sample(&s, 0x1, 7, 1);
	put_chain(&s, kernel, 5);
	end_sample(&s, PERFDATA_MISC_KERNEL);
	for (uint32_t tid = 7; tid < 10; tid++) {
		begin_sample(&s, 0x5, tid, tid);
		put_chain(&s, user, 2);
		end_sample(&s, PERFDATA_MISC_USER);
	}
	put_deferred(7, 77, marked, 3);
	put_deferred(8, 77, other, 1); /* the same cookie of another thread */
	put_deferred(9, 78, other, 1);
	open_it();
	assert_false(p->partial);
	assert_int_equal(p->nsamples, 4);
	r = next_sample();
	expect_frames(&r, want_kernel, 4);
	r = next_sample();
	expect_frames(&r, want_user, 2);
	r = next_sample();
	expect_frames(&r, want_other, 1);
	r = next_sample();
	expect_frames(&r, want_none, 1);
	assert_false(perfdata_next(p, &r));
}

/* Fills words with a marker and frames behind it. */
static void fill_chain(uint64_t *words, uint32_t n)
{
	words[0] = PERFDATA_CONTEXT_KERNEL;
	for (uint32_t i = 1; i < n; i++)
		words[i] = i;
}

/* A deferred chain that is as long as its record, of a sample that is, too, and has a copy of the stack besides. */
static void test_longest_deferred(void **state)
{
	static uint64_t words[8150];
	const uint32_t n = ARRAY_SIZE(words);
	struct names *names = NULL;
	struct perfdata_record r;
	struct buf s;

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL | PERFDATA_SAMPLE_CALLCHAIN |
						PERFDATA_SAMPLE_REGS_USER |
						PERFDATA_SAMPLE_STACK_USER,
				 .regs_user = 1u << PERFDATA_REG_SP | 1u << PERFDATA_REG_IP },
		 10);
	fill_chain(words, n);
	words[n - 2] = PERFDATA_CONTEXT_USER_DEFERRED;
	words[n - 1] = 77;
	begin_sample(&s, 0x1, 7, 1);
	put_chain(&s, words, n);
	buf_u64(&s, PERFDATA_REGS_ABI_64);
	buf_u64(&s, 0x7000);
	buf_u64(&s, 0x5000);
	buf_u64(&s, 8); /* bytes of the stack, themselves, and how many were filled */
	buf_u64(&s, 0);
	buf_u64(&s, 8);
	end_sample(&s, PERFDATA_MISC_KERNEL);
	fill_chain(words, n);
	put_deferred(7, 77, words, n);
	open_it();
	assert_false(p->partial);
	assert_true(p->has_stacks);
	assert_int_equal(names_create(&names, p, "/nonexistent", NULL), 0);
	r = next_sample();
	assert_int_equal(r.sample.nr, 2 * n - 2);
	names_unwind_copy(names, p, &r);
	assert_int_equal(r.sample.nr, 2 * n - 2);
	names_destroy(names);
}

/* The processor's stack of calls takes the place of what the kernel found by frame pointers. */
static void test_branch_stack(void **state)
{
	static const uint64_t chain[] = { PERFDATA_CONTEXT_KERNEL, 0x1, PERFDATA_CONTEXT_USER, 0x2,
					  0x3 };
	static const uint64_t want[] = { 0x1, 0x100, 0x105, 0, 0x201, 0, 0x301, 0 };
	struct perfdata_record r;
	struct buf s;

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL | PERFDATA_SAMPLE_CALLCHAIN |
						PERFDATA_SAMPLE_BRANCH_STACK,
				 .branch_type =
					 PERFDATA_BRANCH_CALL_STACK | PERFDATA_BRANCH_HW_INDEX },
		 10);
	begin_sample(&s, 0x1, 7, 1);
	put_chain(&s, chain, 5);
	buf_u64(&s, 2);
	buf_u64(&s, 0); /* hw_idx */
	for (uint64_t i = 0; i < 2; i++) {
		buf_u64(&s, 0x200 + 0x100 * i);
		buf_u64(&s, 0x105 + 0x100 * i);
		buf_u64(&s, 0);
	}
	end_sample(&s, PERFDATA_MISC_KERNEL);
	open_it();
	r = next_sample();
	expect_frames(&r, want, 4);
}

/* -- build ids ------------------------------------------------------------------------ */

static void put_build_id(uint16_t misc, const char *name, unsigned int len, bool tells_len)
{
	struct buf d;

	buf_init(&d);
	buf_u32(&d, UINT32_MAX);
	for (unsigned int i = 0; i < ID_PADDED; i++)
		buf_u8(&d, i < len ? (uint8_t)(i + 1) : 0);
	buf_u8(&d, tells_len ? (uint8_t)len : 0);
	buf_add(&d, NULL, 3);
	buf_add(&d, name, strlen(name));
	buf_add(&d, NULL, 64 - strlen(name));
	record(PERFDATA_RECORD_HEADER_BUILD_ID,
	       (uint16_t)(misc | (tells_len ? PERFDATA_MISC_BUILD_ID_SIZE : 0)), &d);
	buf_deinit(&d);
}

static void test_build_ids(void **state)
{
	static const unsigned int want[] = { 20, 16, 8, 20, 16, 8, 4 };

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL }, 10);
	put_build_id(PERFDATA_MISC_USER, "/a", 20, true);
	put_build_id(PERFDATA_MISC_USER, "/b", 16, true);
	put_build_id(PERFDATA_MISC_USER, "/c", 8, true);
	put_build_id(PERFDATA_MISC_USER, "/d", 20, false);
	put_build_id(PERFDATA_MISC_USER, "/e", 16, false);
	put_build_id(PERFDATA_MISC_USER, "/f", 8, false);
	put_build_id(PERFDATA_MISC_GUEST_KERNEL, "[guest.kernel.kallsyms]", 4, true);
	open_it();
	assert_int_equal(p->nbuild_ids, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(p->build_ids[i].len, want[i]);
	assert_int_equal(p->build_ids[6].owner, PERFDATA_GUEST_KERNEL);
	assert_int_equal(p->kernel_id_len, 0);
}

/* The kernel's id: of its mapping, else of the table under any name but a module's or a guest's. */
static void test_kernel_id(void **state)
{
	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL }, 10);
	put_build_id(PERFDATA_MISC_GUEST_KERNEL, "[guest.kernel.kallsyms]", 19, true);
	put_build_id(PERFDATA_MISC_KERNEL, "/lib/modules/6/kernel/fs/ext4.ko.xz", 18, true);
	put_build_id(PERFDATA_MISC_KERNEL, "[kvm]", 17, true);
	put_build_id(PERFDATA_MISC_KERNEL, "/usr/lib/debug/boot/vmlinux-6", 16, true);
	open_it();
	assert_int_equal(p->kernel_id_len, 16);
	assert_int_equal(p->kernel_id[15], 16);
}

static void test_kernel_id_of_map(void **state)
{
	static const char name[] = "[kernel.kallsyms]_text";
	struct buf d;

	(void)state;
	add_attr(&(struct attr){ .sample_type = USUAL }, 10);
	put_build_id(PERFDATA_MISC_KERNEL, "[kernel.kallsyms]", 16, true);
	buf_init(&d);
	buf_u32(&d, UINT32_MAX);
	buf_u32(&d, 0);
	buf_u64(&d, 0xffffffff81000000);
	buf_u64(&d, 0x1000000);
	buf_u64(&d, 0xffffffff81000000);
	buf_u8(&d, 12);
	buf_add(&d, NULL, 3);
	for (unsigned int i = 0; i < ID_PADDED; i++)
		buf_u8(&d, i < 12 ? 0xab : 0);
	buf_u64(&d, 0);
	buf_add(&d, name, sizeof(name));
	buf_add(&d, NULL, -d.len & 7);
	buf_add(&d, NULL, 24); /* sample_id */
	record(PERFDATA_RECORD_MMAP2, PERFDATA_MISC_KERNEL | PERFDATA_MISC_MMAP_BUILD_ID, &d);
	buf_deinit(&d);
	open_it();
	assert_int_equal(p->kernel_id_len, 12);
	assert_int_equal(p->kernel_id[11], 0xab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guest_chains, setup, teardown),
		cmocka_unit_test_setup_teardown(test_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inherited_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deferred, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest_deferred, setup, teardown),
		cmocka_unit_test_setup_teardown(test_branch_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_build_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_id, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_id_of_map, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
