/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The conversion of KVM's memory slots: regions of guest memory, and the slots that are left out.
 */
#include "vmm/attach/host_bpf.h"
#include "vmm/attach/slots_kvm.h"
#include "vmm/attach/slots_record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define HOST UINT64_C(0x7f0000000000)
#define MIB_PAGES 256u

struct fixture {
	struct slots_block b;
	struct process p;
	struct gmem m;
	bool partial;
	struct err e;
};

static int set_up(void **state)
{
	return (*state = calloc(1, sizeof(struct fixture))) ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void add(struct fixture *f, uint64_t gfn, uint64_t npages, uint64_t host)
{
	f->b.slot[f->b.n++] = (struct slots_entry){ .gfn = gfn, .npages = npages, .host = host };
}

static int convert(struct fixture *f)
{
	return slots_of_record(&f->m, &f->partial, &f->b, &f->p, &f->e);
}

/* QEMU's own: RAM below and above 4 GiB with the holes of firmware, in no order. */
static void regions_are_sorted_and_joined(void **state)
{
	struct fixture *f = *state;

	add(f, 0x100000, 512 * MIB_PAGES, HOST + (UINT64_C(3) << 30));
	add(f, 0xc0, 0x100 - 0xc0, HOST + 0xc0000);
	add(f, 0x100, 0xc0000 - 0x100, HOST + 0x100000);
	add(f, 0, 0xa0, HOST);
	add(f, 0xfffc0, 0x40, HOST - 0x40000);
	assert_int_equal(convert(f), 0);
	assert_false(f->partial);
	assert_int_equal(f->m.n, 4);
	assert_int_equal(f->m.region[0].size, 0xa0000);
	assert_int_equal(f->m.region[1].gpa, 0xc0000);
	assert_int_equal(f->m.region[1].size, 0xc0000000 - 0xc0000);
	assert_ptr_equal(f->m.region[1].host, (void *)(HOST + 0xc0000));
	assert_int_equal(f->m.region[3].gpa, UINT64_C(1) << 32);
	assert_ptr_equal(f->m.region[3].host, (void *)(HOST + (UINT64_C(3) << 30)));
}

/* The same in one address space only is not one region. */
static void nodes_stay_apart(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 64 * MIB_PAGES, HOST);
	add(f, 64 * MIB_PAGES, 64 * MIB_PAGES, HOST + (UINT64_C(1) << 32));
	assert_int_equal(convert(f), 0);
	assert_int_equal(f->m.n, 2);
	assert_int_equal(gmem_size(&f->m), UINT64_C(128) << 20);
}

/* A passed-through device's registers: to read there could change them. */
static void devices_are_left_out(void **state)
{
	struct fixture *f = *state;

	f->p.device[f->p.ndevices++] = (struct process_mapping){ HOST + 0x10000000, 0x4000, true };
	add(f, 0, MIB_PAGES, HOST);
	add(f, 0xe0000, 4, HOST + 0x10000000);
	add(f, 0xe0010, 4, HOST + 0x10000000 - 0x3000);
	add(f, 0xe0020, 4, HOST + 0x10004000);
	assert_int_equal(convert(f), 0);
	assert_false(f->partial);
	assert_int_equal(f->m.n, 2);
	assert_int_equal(f->m.region[1].gpa, 0xe0020000);
}

static void private_memory_is_not_known(void **state)
{
	struct fixture *f = *state;

	add(f, 0, MIB_PAGES, HOST);
	add(f, MIB_PAGES, MIB_PAGES, HOST + (1 << 20));
	f->b.slot[1].flags = 1u << 2;
	assert_int_equal(convert(f), 0);
	assert_true(f->partial);
	assert_int_equal(gmem_size(&f->m), 1 << 20);
}

/* If there are more regions than fit, the largest ones are kept. */
static void many_regions_lose_the_smallest(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 40; i++)
		add(f, i * 0x1000, 1 + (i * 7) % 40, HOST + i * UINT64_C(0x10000000));
	assert_int_equal(convert(f), 0);
	assert_true(f->partial);
	assert_int_equal(f->m.n, GMEM_MAX_REGIONS);
	for (unsigned int i = 0; i < f->m.n; i++) {
		assert_true(f->m.region[i].size >> 12 > 40 - GMEM_MAX_REGIONS);
		assert_true(!i || f->m.region[i].gpa > f->m.region[i - 1].gpa);
	}
}

/* A layout that was read wrongly, or a machine without memory. */
static void nonsense_is_refused(void **state)
{
	static const struct slots_entry bad[] = {
		{ .gfn = 0x80, .npages = 0x100, .host = HOST },		    /* over the first */
		{ .gfn = 0x1000, .npages = 0, .host = HOST },		    /* empty */
		{ .gfn = 0x1000, .npages = 4, .host = HOST + 8 },	    /* no page */
		{ .gfn = 0x1000, .npages = UINT64_MAX, .host = HOST },	    /* too long */
		{ .gfn = UINT64_C(1) << 52, .npages = 4, .host = HOST },    /* too high */
		{ .gfn = 0x1000, .npages = 4, .host = UINT64_MAX - 0xfff }, /* over the end */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(f, 0, sizeof(*f));
		add(f, 0, 0x100, HOST);
		f->b.slot[f->b.n++] = bad[i];
		assert_int_equal(convert(f), -EBADMSG);
		assert_int_equal(f->m.n, 0);
	}
	memset(f, 0, sizeof(*f));
	assert_int_equal(convert(f), -ENOENT);
	f->b.n = SLOTS_MAX + 1;
	assert_int_equal(convert(f), -E2BIG);
}

/* A real process: this one is no VMM, so the test is only whether the kernel is asked safely. */
static void what_is_no_vcpu_is_refused(void **state)
{
	struct fixture *f = *state;
	struct host_bpf bpf;
	int ret;

	f->p.pid = getpid();
	f->p.nvcpus = 1;
	f->p.vcpu[0].fd = STDERR_FILENO;
	ret = slots_open(&bpf, &f->e);
	if (!ret)
		ret = slots_read(&f->m, &f->partial, &bpf, &f->p, &f->e);
	host_bpf_close(&bpf);
	assert_true(ret < 0);
	assert_true(f->e.text[0]);
	assert_int_equal(f->m.n, 0);
}

/* A vCPU whose descriptor has been closed meanwhile is of no machine, and not of that which was found before. */
static void a_closed_descriptor_is_of_no_machine(void **state)
{
	struct fixture *f = *state;
	const struct host_bpf bpf = { .block = &f->b };

	f->p.pid = getpid();
	f->p.nvcpus = 1;
	f->p.vcpu[0].fd = 1 << 20;
	f->b.machine = 1;
	f->b.status = SLOTS_READ;
	assert_true(slots_number_machines(&f->p, &bpf, &f->e) < 0);
	assert_true(f->e.text[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(regions_are_sorted_and_joined),  TEST(nodes_stay_apart),
		TEST(devices_are_left_out),	      TEST(private_memory_is_not_known),
		TEST(many_regions_lose_the_smallest), TEST(nonsense_is_refused),
		TEST(what_is_no_vcpu_is_refused),     TEST(a_closed_descriptor_is_of_no_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
