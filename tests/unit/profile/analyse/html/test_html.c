/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages: the data of a page is read back as its script does, and is what the profile has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/html/html.h"
#include "profile/format/sink/markers.h"
#include "tests/unit/stackset_fixture.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define DATA_MAX (1u << 20)

static struct fixture f, g;
static struct buf page;
static uint8_t data[DATA_MAX];
static const uint8_t *columns;
static json_t *json;

/* -- reading a page ------------------------------------------------------------------ */

static size_t read_base64(const char *text, const char *end, uint8_t *out)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t v = 0;
	size_t n = 0;

	assert_int_equal((end - text) % 4, 0);
	for (size_t i = 0; text + i < end; i++) {
		const char *d = text[i] == '=' ? digit : strchr(digit, text[i]);

		assert_non_null(d);
		v = v << 6 | (uint32_t)(d - digit);
		if (i % 4 == 3)
			for (int k = 16; k >= 0; k -= 8)
				out[n++] = (uint8_t)(v >> k);
	}
	return n - (end > text && end[-1] == '=') - (end > text && end[-2] == '=');
}

static void forget_page(void)
{
	buf_deinit(&page);
	json_decref(json);
	json = NULL;
}

/* Writes a page, and reads its data. */
static void make_page(const struct html_profile *p, const struct html_profile *base,
		      const char *title)
{
	static uint8_t packed[DATA_MAX];
	const char *from, *end;
	uLongf len = sizeof(data);
	struct err e = { 0 };
	uint32_t text;

	forget_page();
	assert_int_equal(html_write(&page, p, base, title, &e), 0);
	buf_u8(&page, '\0');
	assert_false(page.failed);
	from = strstr((const char *)page.data, "application/octet-stream\">");
	assert_non_null(from);
	from = strchr(from, '>') + 1;
	end = strstr(from, "</script>");
	assert_true((size_t)(end - from) < sizeof(packed));
	assert_int_equal(uncompress(data, &len, packed, read_base64(from, end, packed)), Z_OK);
	memcpy(&text, data, sizeof(text));
	assert_true(text + sizeof(text) <= len);
	json = json_loadb((const char *)data + sizeof(text), text, 0, NULL);
	assert_non_null(json);
	columns = data + sizeof(text) + text;
}

static const json_t *event_of(size_t profile, size_t event)
{
	const json_t *p = json_array_get(json_object_get(json, "profiles"), profile);

	return json_array_get(json_object_get(p, "events"), event);
}

/* The ith number of a column. */
static uint64_t number(const json_t *event, const char *name, size_t i)
{
	const json_t *place = json_object_get(json_object_get(event, "columns"), name);
	const uint8_t *p = columns + json_integer_value(json_array_get(place, 0));
	uint64_t v;

	assert_true((json_int_t)i < json_integer_value(json_array_get(place, 2)));
	for (;;) {
		v = 0;
		for (unsigned int shift = 0;; shift += 7) {
			v |= (uint64_t)(*p & 0x7f) << shift;
			if (!(*p++ & 0x80))
				break;
		}
		if (!i--)
			return v;
	}
}

/* The sum of signed differences up to the ith. */
static uint64_t sum(const json_t *event, const char *name, size_t i)
{
	uint64_t v = 0;

	for (size_t k = 0; k <= i; k++) {
		uint64_t d = number(event, name, k);

		v += d & 1 ? ~(d >> 1) : d >> 1;
	}
	return v;
}

static const char *string(const json_t *event, uint64_t i)
{
	return json_string_value(json_array_get(json_object_get(event, "strings"), i));
}

/* Writes "task;outer;inner" of a stack. */
static void names_of(const json_t *event, uint64_t stack, char *out, size_t size)
{
	uint64_t node = number(event, "snode", stack);

	out[0] = '\0';
	while (node) {
		uint64_t item = number(event, "nitem", node - 1);
		uint64_t up = node - number(event, "nup", node - 1);
		uint64_t name = up ? number(event, "fname", number(event, "ffunc", item)) : item;

		const char *text = string(event, name);
		const size_t len = strlen(text) + (*out != '\0'), had = strlen(out) + 1;

		assert_true(len + had <= size);
		memmove(out + len, out, had);
		if (had > 1)
			out[len - 1] = ';';
		memcpy(out, text, strlen(text));
		node = up;
	}
}

/* -- profiles ------------------------------------------------------------------------ */

static const char *dso_of(const char *name)
{
	return *name == 'u' ? "/bin/u" : "[kernel.kallsyms]";
}

static void fill(struct fixture *x)
{
	uint32_t a, b, s;

	fixture_init(x);
	fixture_names(x, "main work leaf user", dso_of);
	a = fixture_task(x, "one", 1);
	b = fixture_task(x, "</script>", 2);
	s = fixture_stack(x, a, STACKSET_KERNEL, 5, "main work leaf");
	fixture_samples(x, s, 0, 3);
	s = fixture_stack(x, b, STACKSET_USER, 7, "user");
	fixture_samples(x, s, 300, 2);
	s = fixture_stack(x, a, STACKSET_IDLE, 2, "main work");
	fixture_samples(x, s, UINT32_MAX, 1);
}

static struct html_profile profile_of(struct fixture *x, const char *name)
{
	return (struct html_profile){ .name = name, .event = { &x->set }, .n = 1 };
}

static void test_samples(void **state)
{
	static const char *const want[] = { "one;main;work;leaf", "</script>;user",
					    "one;main;work" };
	struct html_profile p = profile_of(&f, "x.data");
	const json_t *e;
	char text[512];

	(void)state;
	fill(&f);
	/* Times and weights may go back, and have 64 bits. */
	f.sample[4].time_ns = f.sample[0].time_ns - 10;
	f.sample[5].weight = UINT64_MAX;
	make_page(&p, NULL, NULL);
	e = event_of(0, 0);
	for (size_t i = 0; i < f.set.nsamples; i++) {
		const struct stackset_sample *s = &f.sample[i];
		uint64_t stack = number(e, "mstack", i);

		assert_int_equal(sum(e, "mtime", i), s->time_ns - f.set.first_ns);
		assert_true(sum(e, "mweight", i) == s->weight);
		assert_int_equal(number(e, "mcpu", i), s->cpu == UINT32_MAX ? 0 : s->cpu + 1);
		names_of(e, stack, text, sizeof(text));
		assert_string_equal(text, want[s->stack]);
		assert_int_equal(number(e, "skind", stack) >> 4, f.stack[s->stack].mode);
		assert_int_equal(number(e, "tpid", number(e, "stask", stack)),
				 f.task[f.stack[s->stack].task].pid);
	}
	assert_int_equal(json_integer_value(json_object_get(e, "weight")), 14);
	fixture_forget(&f);
}

/* Stacks share their outer frames: "one", "main" and "work" are one node each. */
static void test_tree(void **state)
{
	struct html_profile p = profile_of(&f, "x.data");
	const json_t *up;

	(void)state;
	fill(&f);
	make_page(&p, NULL, NULL);
	up = json_object_get(json_object_get(event_of(0, 0), "columns"), "nup");
	assert_int_equal(json_integer_value(json_array_get(up, 2)), 6);
	for (size_t i = 0; i < 6; i++)
		assert_true(number(event_of(0, 0), "nup", i) <= i + 1);
	fixture_forget(&f);
}

static void test_where(void **state)
{
	struct html_profile p = profile_of(&f, "x.data");

	(void)state;
	fill(&f);
	f.frame[2].addr = UINT64_C(0xffffffffffff2000) + 0x10; /* the state "kvm" */
	make_page(&p, NULL, NULL);
	assert_int_equal(number(event_of(0, 0), "skind", 0), 2);
	assert_int_equal(number(event_of(0, 0), "skind", 1), STACKSET_USER << 4);
	fixture_forget(&f);
}

static void test_markup(void **state)
{
	struct html_profile p = profile_of(&f, "x.data");
	const char *text, *at;
	unsigned int scripts = 0;

	(void)state;
	fill(&f);
	make_page(&p, NULL, "<img src=x onerror=\"alert(1)\">");
	text = (const char *)page.data;
	assert_null(strstr(text, "<img"));
	assert_non_null(
		strstr(text, "<title>&lt;img src=x onerror=&quot;alert(1)&quot;&gt;</title>"));
	assert_non_null(strstr(text, "default-src 'none'"));
	assert_null(strstr(text, "http://"));
	assert_null(strstr(text, "https://"));
	for (at = text; (at = strstr(at, "</script>")); at++)
		scripts++;
	assert_int_equal(scripts, 2);
	fixture_forget(&f);
}

static void test_base(void **state)
{
	struct html_profile p = profile_of(&f, "new.data"), base = profile_of(&g, "old.data");
	struct buf first;

	(void)state;
	fill(&f);
	fill(&g);
	make_page(&p, &base, NULL);
	assert_int_equal(json_array_size(json_object_get(json, "profiles")), 2);
	assert_string_equal(json_string_value(json_object_get(json, "title")),
			    "new.data compared with old.data");
	assert_int_equal(number(event_of(1, 0), "mstack", 5), 2);
	/* Equal profiles give equal bytes. */
	first = page;
	buf_init(&page);
	make_page(&p, &base, NULL);
	assert_int_equal(page.len, first.len);
	assert_memory_equal(page.data, first.data, page.len);
	buf_deinit(&first);
	fixture_forget(&f);
	fixture_forget(&g);
}

static void test_facts(void **state)
{
	static const struct stackset_marker marker = { 1001000000, "go", MARKER_CONSOLE };
	struct html_profile p = profile_of(&f, "x.data");
	const json_t *profile, *list;

	(void)state;
	fill(&f);
	f.set.marker = &marker;
	f.set.nmarkers = 1;
	f.set.json = "{\"where\":{\"guest\":5,\"kvm\":\"x\"},\"requests\":[1,{\"disk\":\"vda\"},{"
		     "\"disk\":7},"
		     "{\"disk\":\"vda\",\"type\":\"R\",\"notified_ns\":1001500000,\"done_ns\":"
		     "1001700000,"
		     "\"handled_ns\":-5,\"ok\":false}],\"packets\":{}}";
	make_page(&p, NULL, NULL);
	profile = json_array_get(json_object_get(json, "profiles"), 0);
	list = json_object_get(profile, "requests");
	assert_int_equal(json_array_size(list), 1);
	list = json_array_get(list, 0);
	assert_int_equal(json_integer_value(json_array_get(list, 8)), 500000);
	assert_true(json_is_null(json_array_get(list, 9)));
	assert_int_equal(json_integer_value(json_array_get(list, 11)), 700000);
	assert_true(json_is_null(json_array_get(list, 12)));
	assert_true(json_is_false(json_array_get(list, 7)));
	assert_int_equal(json_object_size(json_object_get(profile, "where")), 1);
	list = json_array_get(json_object_get(profile, "markers"), 0);
	assert_int_equal(json_integer_value(json_array_get(list, 0)), 0);
	assert_string_equal(json_string_value(json_array_get(list, 2)), "console");
	/* Totals that are no JSON are no error. */
	f.set.json = "{";
	make_page(&p, NULL, NULL);
	assert_null(
		json_object_get(json_array_get(json_object_get(json, "profiles"), 0), "requests"));
	fixture_forget(&f);
}

static void test_limits(void **state)
{
	struct html_profile p = { .name = "none.data" };
	struct err e = { 0 };

	(void)state;
	make_page(&p, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(
				 json_array_get(json_object_get(json, "profiles"), 0), "events")),
			 0);
	fill(&f);
	f.set.nsamples = HTML_MAX_SAMPLES + 1;
	f.set.sample = NULL;
	p = profile_of(&f, "x.data");
	forget_page();
	assert_int_equal(html_write(&page, &p, NULL, NULL, &e), -E2BIG);
	assert_non_null(strstr(e.text, "--time"));
	fixture_forget(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples), cmocka_unit_test(test_tree),
		cmocka_unit_test(test_where),	cmocka_unit_test(test_markup),
		cmocka_unit_test(test_base),	cmocka_unit_test(test_facts),
		cmocka_unit_test(test_limits),
	};
	int ret;

	buf_init(&page);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	forget_page();
	return ret;
}
