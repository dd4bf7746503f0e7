/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Source lines of run-time addresses: the demo's, with and without a slide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/format/perfdata/format.h"
#include "profile/format/names/srcline.h"
#include "symbolizer/core/kimage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLIDE 0x1e00000ull

extern const uint8_t demo_elf[], demo_elf_end[];

static struct kimage demo;
static char path[] = "/tmp/kvmprof-test-XXXXXX";
static uint64_t leaf; /* address of left_leaf */

static int write_demo(void **state)
{
	size_t len = (size_t)(demo_elf_end - demo_elf);
	struct symtab *t;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || write(fd, demo_elf, len) != (ssize_t)len || close(fd) < 0 ||
	    kimage_parse(&demo, "demo", demo_elf, len, NULL) < 0 ||
	    kimage_symbols(&demo, &t, NULL) < 0)
		return -1;
	leaf = symtab_find(t, "left_leaf")->addr;
	symtab_destroy(t);
	return 0;
}

static int remove_demo(void **state)
{
	(void)state;
	return unlink(path);
}

static struct srcline *create(const char *given)
{
	struct debuginfo_places places = { .given = given, .cache_dir = "/nowhere" };
	struct srcline *s;

	assert_int_equal(srcline_create(&s, &places, NULL), 0);
	srcline_set_id(s, demo.build_id, demo.build_id_len);
	return s;
}

static void is_leaf(struct srcline *s, uint64_t addr)
{
	struct srcline_result r = srcline_of(s, addr);

	assert_true(r.n >= 1);
	assert_string_equal(r.frame[r.n - 1].function, "left_leaf");
	assert_true(r.frame[r.n - 1].line > 0);
	assert_null(strchr(srcline_basename(&r.frame[r.n - 1]), '/'));
}

static void answers_again(void **state)
{
	struct srcline *s = create(path);
	struct srcline_result r;
	unsigned int line;

	(void)state;
	assert_null(srcline_file(s)); /* nothing is loaded yet */
	is_leaf(s, leaf);
	assert_string_equal(srcline_file(s), path);
	assert_string_equal(srcline_reason(s), "");
	line = srcline_of(s, leaf).frame->line;
	/* More addresses than the table begins with. */
	for (uint64_t a = demo.text; a < demo.text + 4096; a++)
		(void)srcline_of(s, a);
	is_leaf(s, leaf);
	assert_int_equal(srcline_of(s, leaf).frame->line, line);
	r = srcline_of(s, 0x1234);
	assert_int_equal(r.n, 0);
	srcline_destroy(s);
}

static void follows_the_kernel(void **state)
{
	struct perfdata_record map = {
		.kind = PERFDATA_MAP,
		.kernel = true,
		.map = { .addr = demo.text + SLIDE,
			 .pgoff = demo.text + SLIDE,
			 .path = PERFDATA_KERNEL_DSO "_text" },
	};
	struct srcline *s = create(path);

	(void)state;
	is_leaf(s, leaf);
	srcline_set_map(s, &map);
	is_leaf(s, leaf + SLIDE);
	/* An address before the kernel, and one as far behind it as modules are. */
	assert_int_equal(srcline_of(s, leaf).n, 0);
	assert_int_equal(srcline_of(s, leaf + SLIDE + (1ull << 30)).n, 0);
	/* The name says what pgoff is the address of: nothing, here. */
	map.map.path = PERFDATA_KERNEL_DSO;
	map.map.pgoff = 0x77;
	map.map.addr = demo.text;
	srcline_set_map(s, &map);
	is_leaf(s, leaf);
	map.map.path = "[ext4]";
	map.map.addr = 0xffffffffc0000000;
	srcline_set_map(s, &map);
	is_leaf(s, leaf);
	srcline_destroy(s);
}

static void tells_why_not(void **state)
{
	struct srcline *s = create("/nowhere/at/all");
	struct err e = { 0 };

	(void)state;
	assert_int_equal(srcline_load(s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/nowhere/at/all"));
	assert_string_equal(srcline_reason(s), e.text);
	assert_int_equal(srcline_of(s, leaf).n, 0);
	srcline_destroy(s);

	s = create(path);
	srcline_set_id(s, (const uint8_t *)"\1\2\3", 3);
	err_clear(&e);
	assert_int_equal(srcline_load(s, &e), -ESTALE);
	assert_non_null(strstr(e.text, "010203"));
	srcline_destroy(s);

	s = create(path);
	srcline_set_id(s, NULL, 0);
	err_clear(&e);
	assert_int_equal(srcline_load(s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "without a build id"));
	srcline_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_again),
		cmocka_unit_test(follows_the_kernel),
		cmocka_unit_test(tells_why_not),
	};

	unsetenv("DEBUGINFOD_URLS");
	return cmocka_run_group_tests(tests, write_demo, remove_demo);
}
