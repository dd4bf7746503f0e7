/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data of a live view: named stacks since a reply, and only while a client asks. */
#include "tests/unit/profile_fixture.h"

#include "profile/record/control/view.h"

#include <errno.h>
#include <jansson.h>

static struct fx f;

static struct sink *put_live(struct sink *s)
{
	struct sink *live = NULL;

	assert_int_equal(view_sink_create(&live, s, NULL), 0);
	return live;
}

static int setup(void **state)
{
	(void)state;
	if (fx_setup(&f))
		return -1;
	f.wrap = put_live;
	fx_begin(&f, "run.data", false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return fx_teardown(&f);
}

static json_t *parse(struct buf *b)
{
	json_error_t why;
	json_t *root;

	buf_u8(b, '}');
	assert_false(b->failed);
	root = json_loadb((const char *)b->data, b->len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		fail_msg("%s at %d", why.text, why.position);
	buf_deinit(b);
	return root;
}

/* at: ns after FX_T0 */
static json_t *ask_for(uint64_t since, uint64_t at, uint32_t stacks, uint32_t depth)
{
	const struct live_query q = { since, stacks, depth, FX_T0 + at };
	struct buf b;

	buf_init(&b);
	buf_printf(&b, "{\"ok\":true");
	view_sink_profile(f.sink, &q, &b);
	return parse(&b);
}

static json_t *ask(uint64_t since, uint64_t at)
{
	return ask_for(since, at, 0, 0);
}

static long long number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return (long long)json_integer_value(json_object_get(o, key));
}

static long long first(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_array_get(json_object_get(o, key), 0));
}

/* "comm pid mode cpu weight count outermost;...;innermost" of a stack. */
static const char *told(const json_t *r, size_t i)
{
	static char text[500];
	const json_t *s = json_array_get(json_object_get(r, "stacks"), i);
	const json_t *task = json_array_get(json_object_get(r, "tasks"), (size_t)number(s, "task"));
	const json_t *frames = json_object_get(s, "frames");
	int n = snprintf(text, sizeof(text), "%s %lld %s %lld %lld %lld ",
			 json_string_value(json_object_get(task, "comm")), number(task, "pid"),
			 json_string_value(json_object_get(s, "mode")), number(s, "cpu"),
			 number(s, "weight"), number(s, "count"));

	for (size_t k = json_array_size(frames); k-- > 0;) {
		const json_t *func =
			json_array_get(json_object_get(r, "funcs"),
				       (size_t)json_integer_value(json_array_get(frames, k)));

		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s|%s%s",
			      json_string_value(json_object_get(func, "name")),
			      json_string_value(json_object_get(func, "dso")), k ? ";" : "");
	}
	return text;
}

static void add(uint64_t at, uint64_t weight, uint32_t pid, uint32_t cpu, unsigned int func)
{
	fx_add(&f, &(struct fx_sample){ .after_ns = at,
					.weight = weight,
					.pid = pid,
					.cpu = cpu,
					.n = 2,
					.ip = { fx_k(func, 8), fx_k(0, 0x20) } });
}

static void test_names(void **state)
{
	json_t *r;

	(void)state;
	json_decref(ask(0, 0));
	fx_add(&f, &(struct fx_sample){
			   .after_ns = 10,
			   .weight = 5,
			   .pid = 8,
			   .cpu = 1,
			   .n = 4,
			   .ip = { fx_k(2, 8), fx_m(0x50), fx_u(1, 0x10), fx_u(0, 0x10) } });
	fx_add(&f, &(struct fx_sample){ .after_ns = 20,
					.weight = 4,
					.pid = 7,
					.n = 2,
					.ip = { FX_JIT + 4, 0x1234 } });
	fx_add(&f, &(struct fx_sample){ .after_ns = 30,
					.weight = 3,
					.pid = 0,
					.idle = true,
					.n = 1,
					.ip = { fx_k(3, 8) } });
	r = ask(1, 40);
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 3);
	assert_string_equal(told(r, 0), "prog 8 kernel 1 5 1 main|/bin/prog;work|/bin/prog;"
					"mod_write|[fxmod];inner|[kernel.kallsyms]");
	assert_string_equal(told(r, 1), "prog 7 user 0 4 1 |[unknown];|[jit:7]");
	assert_string_equal(told(r, 2), "swapper 0 idle 0 3 1 idle_loop|[kernel.kallsyms]");
	json_decref(r);
}

/* A return address behind a last call belongs to the caller. */
static void test_call_address(void **state)
{
	json_t *r;

	(void)state;
	json_decref(ask(0, 0));
	fx_add(&f, &(struct fx_sample){ .after_ns = 1,
					.weight = 1,
					.pid = 7,
					.n = 2,
					.ip = { fx_k(2, 0), fx_k(1, 0) } });
	r = ask(1, 2);
	assert_string_equal(told(r, 0),
			    "prog 7 kernel 0 1 1 outer|[kernel.kallsyms];inner|[kernel.kallsyms]");
	json_decref(r);
}

static void test_since(void **state)
{
	json_t *r;

	(void)state;
	/* No client has asked yet. */
	add(1, 100, 7, 0, 1);
	r = ask(0, 2);
	assert_true(number(r, "seq") == 1 && !number(r, "since"));
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 0);
	json_decref(r);
	add(3, 10, 7, 0, 1);
	add(4, 10, 7, 0, 1);
	add(5, 7, 7, 1, 2);
	r = ask(1, 6);
	assert_true(number(r, "seq") == 2 && number(r, "since") == 1);
	assert_true(number(r, "from_ns") == (long long)FX_T0 + 2);
	assert_true(number(r, "to_ns") == (long long)FX_T0 + 6);
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 2);
	assert_non_null(strstr(told(r, 0), "prog 7 kernel 0 20 2 "));
	assert_non_null(strstr(told(r, 1), "prog 7 kernel 1 7 1 "));
	assert_true(first(r, "weight") == 27 && first(r, "count") == 3 && !first(r, "rest_weight"));
	json_decref(r);
	add(7, 1, 7, 0, 1);
	/* Two who ask do not take from each other. */
	r = ask(2, 8);
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 1);
	assert_non_null(strstr(told(r, 0), " 0 1 1 "));
	json_decref(r);
	r = ask(1, 9);
	assert_int_equal(first(r, "weight"), 28);
	json_decref(r);
	/* A number nobody knows: from the beginning. */
	r = ask(99, 10);
	assert_true(!number(r, "since") && first(r, "weight") == 28);
	json_decref(r);
	for (unsigned int i = 0; i < LIVE_MARKS; i++)
		json_decref(ask(0, 11));
	r = ask(2, 12);
	assert_true(!number(r, "since") && first(r, "weight") == 28);
	json_decref(r);
}

static void test_cpus(void **state)
{
	const json_t *cpu;
	json_t *r;

	(void)state;
	f.sink->ops->lost(f.sink, 1, 50, FX_T0, NULL);
	json_decref(ask(0, 0));
	add(1, 10, 7, 1, 1);
	fx_add(&f, &(struct fx_sample){ .after_ns = 2,
					.weight = 6,
					.pid = 7,
					.cpu = 1,
					.n = 1,
					.ip = { fx_u(0, 1) } });
	f.sink->ops->lost(f.sink, 1, 4, FX_T0 + 3, NULL);
	r = ask(1, 4);
	cpu = json_array_get(json_object_get(r, "cpus"), 1);
	assert_true(number(cpu, "kernel") == 10 && number(cpu, "user") == 6 &&
		    number(cpu, "idle") == 0 && number(cpu, "lost") == 4);
	assert_int_equal(number(r, "lost"), 4);
	json_decref(r);
	r = ask(2, 5);
	cpu = json_array_get(json_object_get(r, "cpus"), 1);
	assert_true(number(cpu, "kernel") == 0 && number(cpu, "lost") == 0);
	json_decref(r);
}

static void test_limits(void **state)
{
	json_t *r;

	(void)state;
	json_decref(ask(0, 0));
	for (unsigned int i = 0; i < 9; i++)
		add(i, 1 + i, i, 0, 1);
	r = ask_for(1, 20, 3, 1);
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 3);
	assert_string_equal(told(r, 0), "prog 8 kernel 0 9 1 middle|[kernel.kallsyms]");
	assert_int_equal(json_array_size(json_object_get(
				 json_array_get(json_object_get(r, "stacks"), 0), "frames")),
			 1);
	assert_true(first(r, "rest_weight") == 1 + 2 + 3 + 4 + 5 + 6 &&
		    first(r, "rest_count") == 6);
	assert_int_equal(first(r, "weight"), 45);
	json_decref(r);
}

/* More distinct stacks than are kept: nothing is lost from the sums, and later all begins anew. */
static void test_full(void **state)
{
	json_t *r;

	(void)state;
	json_decref(ask(0, 0));
	for (unsigned int i = 0; i < LIVE_MAX_STACKS + 500; i++)
		add(1000 + i, 2, 100 + i, 0, 1);
	r = ask_for(1, 100000, 10000, 0);
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 10000);
	assert_int_equal(first(r, "count"), LIVE_MAX_STACKS + 500);
	assert_int_equal(first(r, "rest_count"), LIVE_MAX_STACKS + 500 - 10000);
	json_decref(r);
	for (uint64_t s = 1; s <= 31; s++) {
		r = ask(2, s * 1000000000);
		json_decref(r);
	}
	add(32000000000, 5, 7, 0, 1);
	r = ask(33, 32000000001);
	assert_int_equal(json_array_size(json_object_get(r, "stacks")), 1);
	json_decref(r);
}

static void test_forgotten(void **state)
{
	json_t *r;

	(void)state;
	json_decref(ask(0, 0));
	add(1, 10, 7, 0, 1);
	add(LIVE_ASKED_NS + 5, 10, 7, 0, 1); /* nobody has asked for so long */
	add(LIVE_ASKED_NS + 6, 10, 7, 0, 1);
	r = ask(1, LIVE_ASKED_NS + 7);
	assert_true(!number(r, "since") && number(r, "seq") == 2 && !first(r, "weight"));
	json_decref(r);
	add(LIVE_ASKED_NS + 8, 4, 7, 0, 1);
	r = ask(2, LIVE_ASKED_NS + 9);
	assert_int_equal(first(r, "weight"), 4);
	json_decref(r);
}

/* Names that come while it goes on, and another program at the same place. */
static void test_changes(void **state)
{
	static const uint8_t id[20] = { 0x77 };
	struct profile_map m = { .pid = 7,
				 .tid = 7,
				 .addr = FX_USER,
				 .len = 0x1000,
				 .time_ns = FX_T0 + 5,
				 .path = "/bin/other",
				 .build_id = id };
	const struct fx_sample user = {
		.after_ns = 10, .weight = 1, .pid = 7, .n = 1, .ip = { fx_u(1, 0x10) }
	};
	json_t *r;

	(void)state;
	json_decref(ask(0, 0));
	fx_add(&f, &user);
	r = ask(1, 1);
	assert_string_equal(told(r, 0), "prog 7 user 0 1 1 work|/bin/prog");
	json_decref(r);
	f.sink->ops->comm(f.sink, &(struct profile_comm){ 7, 7, "o\xffther", true, FX_T0 + 4 },
			  NULL);
	fx_add(&f, &user);
	r = ask(2, 2);
	assert_string_equal(told(r, 0), "o\357\277\275ther 7 user 0 1 1 |[unknown]");
	json_decref(r);
	assert_int_equal(f.sink->ops->map(f.sink, &m, NULL), 0);
	fx_add(&f, &user);
	r = ask(3, 3);
	assert_string_equal(told(r, 0), "o\357\277\275ther 7 user 0 1 1 |/bin/other");
	json_decref(r);
}

static int text(uint64_t addr, uint32_t len, json_t **out, struct err *e)
{
	struct buf b;
	int ret;

	buf_init(&b);
	buf_printf(&b, "{\"ok\":true");
	ret = view_sink_text(f.sink, addr, len, &b, e);
	if (ret)
		buf_deinit(&b);
	else
		*out = parse(&b);
	return ret;
}

static void test_no_text(void **state)
{
	struct err e = { 0 };
	json_t *r;

	(void)state;
	/* The fixture's kernel has no bytes to read. */
	assert_int_equal(text(fx_k(1, 0), 0, &r, &e), -EAGAIN);
}

static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	size_t n = va < FX_TEXT + 0x400 ? FX_TEXT + 0x400 - va : 0;

	(void)ctx;
	n = va >= FX_TEXT && n < len ? n : len;
	memset(dst, 0x90, n);
	return va >= FX_TEXT && va < FX_TEXT + 0x400 ? n : 0;
}

static void test_text(void **state)
{
	static struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
					    .nevents = 1,
					    .vcpus = 1 };
	const struct profile_kernel k = { .symbols = f.kernel,
					  .text = FX_TEXT,
					  .end = FX_TEXT + 0x1000,
					  .read_text = read_text };
	char path[128], cache[128];
	struct sink_perfdata_options opt = { .path = path, .buildid_dir = cache };
	struct err e = { 0 };
	const json_t *hit;
	json_t *r = NULL;

	(void)state;
	snprintf(path, sizeof(path), "%s", fx_path(&f, "text.data"));
	snprintf(cache, sizeof(cache), "%s", fx_path(&f, "cache"));
	f.sink->ops->destroy(f.sink);
	assert_int_equal(perfdata_sink_create(&f.sink, &opt, NULL), 0);
	f.sink = put_live(f.sink);
	f.sink->ops->begin(f.sink, &info, NULL);
	f.sink->ops->kernel(f.sink, &k, NULL);
	json_decref(ask(0, 0));
	add(1, 10, 7, 0, 1);
	add(2, 10, 7, 0, 1);
	assert_int_equal(text(fx_k(1, 0x33), 0, &r, &e), 0);
	assert_string_equal(json_string_value(json_object_get(r, "symbol")), "middle");
	assert_string_equal(json_string_value(json_object_get(r, "addr")), "0xffffffff81000100");
	assert_string_equal(json_string_value(json_object_get(r, "dso")), "[kernel.kallsyms]");
	assert_int_equal(json_string_length(json_object_get(r, "code")), 0x200);
	assert_int_equal(json_array_size(json_object_get(r, "hits")), 1);
	hit = json_array_get(json_object_get(r, "hits"), 0);
	assert_int_equal(number(hit, "weight"), 20);
	assert_string_equal(json_string_value(json_object_get(hit, "addr")), "0xffffffff81000108");
	json_decref(r);
	/* As far as there is something. */
	assert_int_equal(text(FX_TEXT + 0x3f0, 64, &r, &e), 0);
	assert_int_equal(json_string_length(json_object_get(r, "code")), 32);
	json_decref(r);
	assert_int_equal(text(FX_TEXT + 0x500, 64, &r, &e), -EFAULT);
	err_clear(&e);
	assert_int_equal(text(FX_TEXT + 0x50000000, 0, &r, &e), -ENOENT);
	err_clear(&e);
	assert_int_equal(text(fx_u(0, 0), 64, &r, &e), -EINVAL);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_names),     TEST(test_call_address), TEST(test_since),
		TEST(test_cpus),      TEST(test_limits),       TEST(test_full),
		TEST(test_forgotten), TEST(test_changes),      TEST(test_no_text),
		TEST(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
