/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BPF programs that come and go between samples, beside modules. */
#include "profile/record/guest/code.h"

#include "tests/unit/guest_fixture.h"

#include <setjmp.h>

#include <cmocka.h>

#define CODE UINT64_C(0xffffffffc0000000)
#define KERNEL UINT64_C(0xffffffff81000000)
#define LONG (GUEST_CODE_CHECK_NS + 1)

enum { P_START = 0, P_END = 8, P_LIST = 16, P_NAME = 32, P_SIZE = 96 };
static struct lm g;
static struct memory mem;
static struct linux_dyncode_layout layout;
static struct linux_module_layout module_layout;
static struct gf_sink sink;
static struct guest_code *code;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	mem = (struct memory){ lm_read, &g };
	memset(&layout, 0, sizeof(layout));
	layout.family[LINUX_DYNCODE_BPF] = (struct linux_dyncode_family){
		.head = lm_alloc(&g, 16, 16),
		.list = P_LIST,
		.start = P_START,
		.end = P_END,
		.size = LINUX_DYNCODE_NONE,
		.name = P_NAME,
		.name_size = 64,
		.flags = LINUX_DYNCODE_NONE,
	};
	module_layout = gf_module_layout(lm_alloc(&g, 16, 16));
	gf_set_list(&g, layout.family[0].head, P_LIST, NULL, 0);
	gf_set_list(&g, module_layout.modules, GF_M_LIST, NULL, 0);
	gf_sink_init(&sink);
	now = 1000 * LONG;
	if (guest_code_create(&code, &mem, &sink.sink, NULL))
		return -1;
	guest_code_use_modules(code, &module_layout);
	guest_code_use_dynamic(code, &layout);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	/* end() comes before. */
	gf_read_borrowed(&sink);
	guest_code_destroy(code);
	gf_sink_deinit(&sink);
	return 0;
}

static void put_program(uint64_t p, uint64_t start, uint64_t len, const char *name)
{
	lm_put64(&g, p + P_START, start);
	lm_put64(&g, p + P_END, start + len);
	gf_put_name(&g, p + P_NAME, 64, name);
}

static uint64_t new_program(uint64_t start, uint64_t len, const char *name)
{
	uint64_t p = lm_alloc(&g, P_SIZE, 16);

	put_program(p, start, len, name);
	return p;
}

static void see(uint64_t ip, uint64_t after_ns)
{
	enum guest_ip where = ip == KERNEL ? GUEST_IP_IN_IMAGE : GUEST_IP_ELSEWHERE;
	struct err e = { 0 };

	now += after_ns;
	if (guest_code_update(code, ip, where, now, &e) < 0)
		fail_msg("%s", e.text);
}

/* As addresses behind CODE, in units of 4 KiB; 'm' for a module. */
static void expect_regions(const char *want)
{
	char got[256] = "";
	size_t n;
	const struct unwind_region *r = guest_code_regions(code, &n);

	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%c%llx", i ? " " : "",
			 r[i].form == UNWIND_FORM_FRAMES ? 'b' : 'm',
			 (unsigned long long)(r[i].start - CODE) / 4096);
	assert_string_equal(got, want);
}

static void comes_and_goes(void **state)
{
	uint64_t head = layout.family[0].head;
	uint64_t p[] = { new_program(CODE + 0x5000, 0x200, "bpf_prog_01_b"),
			 new_program(CODE + 0x1000, 0x100, "bpf_prog_02_a") };

	(void)state;
	see(KERNEL, LONG);
	gf_expect(&sink, "");
	expect_regions("");
	gf_set_list(&g, head, P_LIST, p, 2);
	see(KERNEL, LONG);
	gf_expect(&sink, "module bpf_prog_02_a ffffffffc0001000+100 1\n"
			 "module bpf_prog_01_b ffffffffc0005000+200 1\n");
	expect_regions("b1 b5");
	/* another program in its place; what is known is not told again */
	put_program(p[0], CODE + 0x5000, 0x200, "bpf_prog_03_c");
	see(KERNEL, LONG);
	gf_expect(&sink, "module bpf_prog_03_c ffffffffc0005000+200 1\n");
	gf_set_list(&g, head, P_LIST, p + 1, 1);
	see(KERNEL, LONG);
	gf_expect(&sink, "");
	expect_regions("b1");
	assert_int_equal(gf_read_borrowed(&sink), 3 * strlen("bpf_prog_01_b"));
	assert_int_equal(guest_code_dynamic_stats(code)->seen, 3);
	/* a list that changes while it is read says nothing of what is gone */
	lm_put64(&g, head, CODE);
	see(KERNEL, LONG);
	expect_regions("b1");
	assert_int_equal(guest_code_dynamic_stats(code)->failed, 1);
}

/* A sample where no code is known is a reason to look soon. */
static void unknown_code(void **state)
{
	uint64_t p = new_program(CODE, 0x200, "bpf_prog_01_b");

	(void)state;
	see(KERNEL, LONG);
	gf_set_list(&g, layout.family[0].head, P_LIST, &p, 1);
	see(CODE + 8, GUEST_CODE_RETRY_NS - 1);
	gf_expect(&sink, "");
	see(KERNEL, 1);
	gf_expect(&sink, "");
	see(CODE + 8, 1);
	gf_expect(&sink, "module bpf_prog_01_b ffffffffc0000000+200 1\n");
}

static void beside_modules(void **state)
{
	uint64_t p[] = { new_program(CODE + 0x2000, 0x200, "bpf_prog_01_a"),
			 new_program(CODE + 0x8000, 0x200, "bpf_prog_02_b"),
			 new_program(CODE + 0x9000, 0x200, "bpf_prog_03_c") };
	uint64_t m = gf_new_module(&g, "d", CODE + 0x4000);

	(void)state;
	gf_set_list(&g, layout.family[0].head, P_LIST, p, 3);
	gf_set_list(&g, module_layout.modules, GF_M_LIST, &m, 1);
	see(KERNEL, LONG);
	expect_regions("b2 m4 b8 b9");
	/* over the module's own code, which counts */
	put_program(p[0], CODE + 0x3f00, 0x200, "bpf_prog_01_a");
	put_program(p[1], CODE + 0x4800, 0x200, "bpf_prog_02_b");
	see(KERNEL, LONG);
	expect_regions("m4 b9");
	assert_int_equal(guest_code_dynamic_stats(code)->skipped, 0);
	/* over another one */
	put_program(p[2], CODE + 0x4900, 0x200, "bpf_prog_03_c");
	see(KERNEL, LONG);
	assert_int_equal(guest_code_dynamic_stats(code)->skipped, 1);
	put_program(p[2], CODE + 0x9000, 0x200, "bpf_prog_03_c");
	see(KERNEL, LONG);
	gf_set_list(&g, module_layout.modules, GF_M_LIST, NULL, 0);
	see(KERNEL, LONG);
	expect_regions("b3 b4 b9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(comes_and_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_code, setup, teardown),
		cmocka_unit_test_setup_teardown(beside_modules, setup, teardown),
	};

	return cmocka_run_group_tests_name("guest_dyncode", tests, NULL, NULL);
}
