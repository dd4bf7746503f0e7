/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pictures: escapes, colours, boxes of trees and of time, the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/xml.h"
#include "profile/analyse/flame/flamechart.h"
#include "profile/analyse/flame/svg.h"
#include "tests/unit/stackset_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct fixture f;

/* -- text ---------------------------------------------------------------------------- */

static void expect_text(void (*put)(struct buf *, const char *, size_t), const char *in, size_t n,
			const char *want)
{
	struct buf b;

	buf_init(&b);
	put(&b, in, n);
	buf_u8(&b, 0);
	assert_false(b.failed);
	assert_string_equal((const char *)b.data, want);
	buf_deinit(&b);
}

static void test_escapes(void **state)
{
	(void)state;
	expect_text(xml_quote, "<a href=\"'x'\">&amp;", 99,
		    "&lt;a href=&quot;&#39;x&#39;&quot;&gt;&amp;amp;");
	expect_text(xml_script_string, "</script>]]>\\\"'`&", 99,
		    "\"\\u003c/script\\u003e]]\\u003e\\u005c\\u0022\\u0027\\u0060\\u0026\"");
	/* Control characters, of C0 and C1, DEL. */
	expect_text(xml_quote, "\x01\n\x1b\x7f\xc2\x85", 99, "␁␊␛␡\xef\xbf\xbd");
	/* UTF-8 that is right, and that is not: overlong, surrogate, cut, stray, beyond. */
	expect_text(xml_quote, "名_ä_\xf0\x9f\x98\x80", 99, "名_ä_\xf0\x9f\x98\x80");
	expect_text(xml_quote, "\xc0\xafx", 99, "\xef\xbf\xbd\xef\xbf\xbdx");
	expect_text(xml_quote, "\xed\xa0\x80", 99, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect_text(xml_quote, "\xe5\x90", 99, "\xef\xbf\xbd\xef\xbf\xbd");
	expect_text(xml_quote, "a\x80z\xff", 99, "a\xef\xbf\xbdz\xef\xbf\xbd");
	expect_text(xml_quote, "\xf4\x90\x80\x80", 99,
		    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	/* Not of XML; turns the direction; ends a line of JavaScript. */
	expect_text(xml_quote, "\xef\xbf\xbe", 99, "\xef\xbf\xbd");
	expect_text(xml_script_string, "\xe2\x80\xae\xe2\x80\xa8", 99,
		    "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	/* Cut, never inside of a character. */
	expect_text(xml_quote, "abcdef", 4, "abcd...");
	expect_text(xml_quote, "abcd", 4, "abcd");
	expect_text(xml_quote, "ab名x", 4, "ab...");
	expect_text(xml_script_string, "", 4, "\"\"");
}

static void test_fit(void **state)
{
	(void)state;
	expect_text(xml_fit, "abcdef", 6, "abcdef");
	expect_text(xml_fit, "abcdefg", 6, "abcd..");
	expect_text(xml_fit, "abcdefg", 4, "");
	expect_text(xml_fit, "ab", 2, "ab");
	expect_text(xml_fit, "ab", 0, "");
	expect_text(xml_fit, "名前名前", 8, "名前名前");
	expect_text(xml_fit, "名前名前", 7, "名前..");
	expect_text(xml_fit, "<<<<<<", 5, "&lt;&lt;&lt;..");
}

static void test_time(void **state)
{
	char t[32];

	(void)state;
	flame_time(t, sizeof(t), 999);
	assert_string_equal(t, "999 ns");
	flame_time(t, sizeof(t), 1500);
	assert_string_equal(t, "1.500 us");
	flame_time(t, sizeof(t), 2000000);
	assert_string_equal(t, "2.000 ms");
	flame_time(t, sizeof(t), 61250000000u);
	assert_string_equal(t, "61.250 s");
}

/* -- colours ------------------------------------------------------------------------- */

static void test_diff_colours(void **state)
{
	const uint8_t same = FLAME_CLASS_DIFF + FLAME_DIFF_STEPS;

	(void)state;
	assert_int_equal(flame_diff_class(0, 0.5), same);
	assert_int_equal(flame_diff_class(0.0001, 0.5), same);
	assert_int_equal(flame_diff_class(0.5, 0), same);
	assert_int_equal(flame_diff_class(0.5, 0.5), same + FLAME_DIFF_STEPS);
	assert_int_equal(flame_diff_class(-0.5, 0.5), same - FLAME_DIFF_STEPS);
	assert_int_equal(flame_diff_class(0.001, 0.5), same + 1);
	assert_int_equal(flame_diff_class(-0.001, 0.5), same - 1);
	for (double d = 0; d < 0.5; d += 0.01)
		assert_true(flame_diff_class(d, 0.5) <= flame_diff_class(d + 0.01, 0.51));
}

/* -- graphs -------------------------------------------------------------------------- */

static void make(void)
{
	fixture_init(&f);
	fixture_func(&f, "main", "/bin/sh", STACKSET_KIND_USER);
	fixture_func(&f, "write", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "copy", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "tiny", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "small", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_task(&f, "sh", 7);
	fixture_stack(&f, 0, STACKSET_KERNEL, 600, "main write copy");
	fixture_stack(&f, 0, STACKSET_KERNEL, 391, "main write");
	fixture_stack(&f, 0, STACKSET_KERNEL, 4, "main tiny copy");
	fixture_stack(&f, 0, STACKSET_KERNEL, 5, "main small");
}

static struct flame_picture picture(void)
{
	return (struct flame_picture){ .title = "T",
				       .subtitle = "S",
				       .event = "wall",
				       .width = 1000,
				       .min_width = 0.1,
				       .weight_is_ns = true };
}

static void build(struct flame_picture *p)
{
	struct frametree *t = NULL;

	assert_int_equal(frametree_create(&t, &(struct frametree_options){ 0 }, NULL), 0);
	assert_int_equal(frametree_add(t, &f.set, FRAMETREE_SHOWN, NULL), 0);
	assert_int_equal(frametree_finish(t, NULL), 0);
	assert_int_equal(flamegraph_build(p, t, FLAME_PROFILE, NULL), 0);
	frametree_destroy(t);
}

static const struct flame_box *named(const struct flame_picture *p, const char *name)
{
	for (size_t i = 0; i < p->nboxes; i++)
		if (!strcmp(p->name[p->box[i].name].text, name))
			return &p->box[i];
	return NULL;
}

static void test_boxes(void **state)
{
	struct flame_picture p = picture();
	uint64_t x = 0;

	(void)state;
	make();
	build(&p);
	assert_int_equal(p.total, 1000);
	assert_int_equal(p.nboxes, 7);
	assert_int_equal(named(&p, "write")->w, 991);
	assert_int_equal(named(&p, "write")->self, 391);
	assert_int_equal(named(&p, "write")->row, 2);
	assert_int_equal(p.lane[0].rows, 4);
	assert_string_equal(p.note, "");
	for (size_t i = 0; i < p.nboxes; x = p.box[i++].x)
		assert_true(p.box[i].x >= x);
	flame_picture_deinit(&p);
	assert_null(p.box);
}

/* Narrow ones are one box at the end, and counted with what is above them. */
static void test_narrow(void **state)
{
	struct flame_picture p = picture();
	const struct flame_box *rest;

	(void)state;
	make();
	p.min_width = 8;
	build(&p);
	assert_null(named(&p, "tiny"));
	assert_null(named(&p, "small"));
	rest = named(&p, "(frames too narrow to draw)");
	assert_non_null(rest);
	assert_int_equal(rest->w, 9);
	assert_int_equal(rest->x, 991);
	assert_int_equal(rest->samples, 9);
	assert_int_equal(rest->class, FLAME_CLASS_NARROW);
	assert_string_equal(p.note, "3 frames narrower than 8 px are merged: 0.90 % of all. ");
	flame_picture_deinit(&p);
	p = picture();
	p.min_width = 20;
	build(&p);
	assert_null(named(&p, "(frames too narrow to draw)"));
	flame_picture_deinit(&p);
}

static void test_empty(void **state)
{
	struct flame_picture p = picture();
	struct frametree *t = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(frametree_create(&t, &(struct frametree_options){ 0 }, NULL), 0);
	assert_int_equal(frametree_finish(t, NULL), 0);
	assert_true(flamegraph_build(&p, t, FLAME_PROFILE, &e) < 0);
	assert_true(e.code);
	flame_picture_deinit(&p);
	frametree_destroy(t);
	fixture_init(&f);
	p = picture();
	assert_true(flamechart_build(&p, &f.set, FLAMECHART_BY_CPU, NULL, NULL) < 0);
	flame_picture_deinit(&p);
}

#define MANY 250000u

/* More boxes than there may be: frames a little wider are merged, too. */
static void test_cap(void **state)
{
	static struct stackset_func func[512];
	static struct stackset_frame frame[512];
	static uint32_t list[MANY][2];
	static struct stackset_stack stack[MANY];
	static char name[512][8];
	struct stackset set = { .func = func,
				.frame = frame,
				.stack = stack,
				.nfuncs = 512,
				.nframes = 512,
				.nstacks = MANY };
	struct flame_picture p = picture();
	struct frametree *t = NULL;

	(void)state;
	for (uint32_t i = 0; i < 512; i++) {
		snprintf(name[i], sizeof(name[i]), "f%u", i);
		func[i] = (struct stackset_func){ .name = name[i], .dso = "" };
		frame[i].func = i;
	}
	for (uint32_t i = 0; i < MANY; i++) {
		list[i][0] = i % 512;
		list[i][1] = i / 512;
		stack[i] =
			(struct stackset_stack){ .frame = list[i], .n = 2, .weight = 1 + i % 512 };
	}
	p.min_width = 0.0001;
	assert_int_equal(frametree_create(&t, &(struct frametree_options){ 0 }, NULL), 0);
	assert_int_equal(frametree_add(t, &set, FRAMETREE_SHOWN, NULL), 0);
	assert_int_equal(frametree_finish(t, NULL), 0);
	assert_true(t->nnodes > FLAME_MAX_BOXES);
	assert_int_equal(flamegraph_build(&p, t, FLAME_PROFILE, NULL), 0);
	assert_in_range(p.nboxes, FLAME_MAX_BOXES / 4, FLAME_MAX_BOXES);
	assert_true(p.note[0]);
	frametree_destroy(t);
	flame_picture_deinit(&p);
}

/* Deep stacks of which no two neighbours are alike, in many columns. */
static void test_chart_cap(void **state)
{
	static struct stackset_func func[256];
	static struct stackset_frame frame[256];
	static struct stackset_task task[1];
	static uint32_t list[2][255];
	static struct stackset_sample sample[4000];
	struct stackset_stack stack[2] = { { .frame = list[0], .n = 255 },
					   { .frame = list[1], .n = 255 } };
	struct stackset set = { .func = func,
				.frame = frame,
				.stack = stack,
				.sample = sample,
				.task = task,
				.nfuncs = 256,
				.nframes = 256,
				.nstacks = 2,
				.ntasks = 1,
				.nsamples = 4000,
				.weight_is_ns = true };
	struct flame_picture p = picture();

	(void)state;
	for (uint32_t i = 0; i < 256; i++) {
		func[i] = (struct stackset_func){ .name = i ? "f" : "g", .dso = "" };
		frame[i].func = i;
	}
	for (uint32_t i = 0; i < 255; i++) {
		list[0][i] = i;
		list[1][i] = i + 1;
	}
	for (uint32_t i = 0; i < 4000; i++)
		sample[i] = (struct stackset_sample){ 1000 + i, 1, i & 1, 0, 0 };
	set.weight = 4000;
	p.width = 20000;
	assert_int_equal(flamechart_build(&p, &set, FLAMECHART_BY_CPU, NULL, NULL), 0);
	assert_in_range(p.nboxes, 255, FLAME_MAX_BOXES);
	assert_non_null(strstr(p.note, "columns, because"));
	flame_picture_deinit(&p);
}

static size_t count(const struct buf *b, const char *what)
{
	size_t n = 0, len = strlen(what);
	const uint8_t *at = b->data;

	while ((at = memmem(at, b->len - (size_t)(at - b->data), what, len)) != NULL) {
		at += len;
		n++;
	}
	return n;
}

static void test_file(void **state)
{
	static char longest[8000];
	struct flame_picture p = picture();
	struct buf a, b;

	(void)state;
	make();
	memset(longest, 'n', sizeof(longest) - 1);
	f.func[2].name = "</script>]]><script>alert(1)</script>";
	f.func[2].dso = "\"'<&\x02";
	f.func[0].name = longest;
	p.title = "<title>";
	buf_init(&a);
	buf_init(&b);
	build(&p);
	flame_write(&a, &p, FLAME_SVG);
	flame_write(&b, &p, FLAME_HTML);
	assert_false(a.failed || b.failed);
	for (struct buf *x = &a; x; x = x == &a ? &b : NULL) {
		assert_int_equal(count(x, "<script>"), 1);
		assert_int_equal(count(x, "</script>"), 1);
		assert_int_equal(count(x, "]]>"), 1); /* nor does our own script end the section */
		assert_int_equal(count(x, "\x02"), 0);
		assert_int_equal(count(x, longest), 0); /* cut */
		assert_true(x->len < 64 * 1024);
	}
	assert_int_equal(count(&b, "<!DOCTYPE html>"), 1);
	assert_int_equal(memcmp(a.data, "<?xml", 5), 0);
	buf_deinit(&b);
	buf_init(&b);
	flame_write(&b, &p, FLAME_SVG);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	buf_deinit(&a);
	buf_deinit(&b);
	flame_picture_deinit(&p);
}

/* -- charts -------------------------------------------------------------------------- */

static void test_chart(void **state)
{
	struct flame_picture p = picture();
	const struct flame_box *b;

	(void)state;
	make();
	fixture_samples(&f, 0, 0, 100); /* main write copy */
	fixture_samples(&f, 1, 0, 100); /* main write */
	fixture_samples(&f, 0, 0, 100);
	f.set.weight = 300000000;
	assert_int_equal(flamechart_build(&p, &f.set, FLAMECHART_BY_CPU, NULL, NULL), 0);
	assert_int_equal(p.total, 300000000);
	assert_int_equal(p.nlanes, 1);
	assert_string_equal(p.lane[0].label, "vCPU 0");
	assert_int_equal(p.nboxes, 4); /* main and write go through, copy comes twice */
	assert_int_equal(named(&p, "main")->w, 300000000);
	assert_int_equal(named(&p, "write")->w, 300000000);
	b = named(&p, "copy");
	assert_int_equal(b->x, 0);
	assert_in_range(b->w, 99700000, 100300000);
	assert_in_range(p.box[3].x, 199700000, 200300000);
	flame_picture_deinit(&p);
}

/* Two vCPUs, a gap in one of them, and a column whose samples differ. */
static void test_chart_lanes(void **state)
{
	struct flame_picture p = picture();

	(void)state;
	make();
	for (unsigned int i = 0; i < 1000; i++) {
		uint64_t at = 1000000000 + (i + 1) * 1000000;
		/* 6 of 10 samples are of copy. */
		uint32_t stack = i % 10 < 6 ? 0 : 3;

		f.sample[f.set.nsamples++] = (struct stackset_sample){ at, 1000000, stack, 0, 0 };
		if (i < 250 || i >= 750)
			f.sample[f.set.nsamples++] =
				(struct stackset_sample){ at, 1000000, 1, 1, 0 };
	}
	f.set.weight = f.set.nsamples * 1000000ull;
	p.width = 300; /* ten samples and more to two columns */
	assert_int_equal(flamechart_build(&p, &f.set, FLAMECHART_BY_CPU, NULL, NULL), 0);
	assert_int_equal(p.nlanes, 2);
	assert_int_equal(p.box[0].w, 1000000000);
	/* The second lane: main and write, twice. */
	assert_int_equal(p.lane[1].n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_in_range(p.box[p.lane[1].first + i].w, 248000000, 252000000);
	flame_picture_deinit(&p);
}

/* A million years in a sample, times that stand still: no endless work, nothing outside. */
static void test_chart_hostile(void **state)
{
	struct flame_picture p = picture();

	(void)state;
	make();
	fixture_samples(&f, 0, 0, 50);
	for (unsigned int i = 0; i < 50; i++) {
		f.sample[i].weight = i % 2 ? UINT64_MAX : 0;
		f.sample[i].time_ns = 5 + i / 10;
		f.sample[i].cpu = i * 1000003u;
	}
	f.sample[49].time_ns = UINT64_MAX;
	f.set.weight = 1;
	assert_int_equal(flamechart_build(&p, &f.set, FLAMECHART_BY_CPU, NULL, NULL), 0);
	assert_true(p.nlanes <= FLAME_MAX_LANES);
	for (size_t i = 0; i < p.nboxes; i++)
		assert_true(p.box[i].x <= p.total && p.box[i].w <= p.total - p.box[i].x);
	flame_picture_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),	      cmocka_unit_test(test_fit),
		cmocka_unit_test(test_time),	      cmocka_unit_test(test_diff_colours),
		cmocka_unit_test(test_boxes),	      cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_empty),	      cmocka_unit_test(test_cap),
		cmocka_unit_test(test_chart_cap),     cmocka_unit_test(test_file),
		cmocka_unit_test(test_chart),	      cmocka_unit_test(test_chart_lanes),
		cmocka_unit_test(test_chart_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
