/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile as named stacks: kinds, modes, weights, filters, samples, partial files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/stacks/stackset.h"
#include "base/table.h"
#include "tests/unit/profile_fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct fx fx;
static struct stackset *set;

static int setup(void **state)
{
	(void)state;
	return fx_setup(&fx);
}

static int teardown(void **state)
{
	(void)state;
	stackset_destroy(set);
	set = NULL;
	return fx_teardown(&fx);
}

#define MS 1000000ull

/* In the file they lie out of order, as vCPUs' rings are drained. */
static const struct fx_sample samples[] = {
	/* Two of one stack, then the same code on a halted vCPU and of another process. */
	{ 0, 10, 7, 7, 0, false, 3, { fx_k(2, 8), fx_k(1, 0x20), fx_k(0, 0x100) } },
	{ 3 * MS, 5, 7, 7, 1, false, 3, { fx_k(2, 8), fx_k(1, 0x20), fx_k(0, 0x100) } },
	{ 1 * MS, 100, 0, 0, 0, true, 2, { fx_k(3, 8), fx_k(0, 0x20) } },
	{ 2 * MS, 7, 8, 8, 1, false, 3, { fx_k(2, 8), fx_k(1, 0x20), fx_k(0, 0x100) } },
	/* A system call with its program's part; the program alone; a module; no file; nowhere. */
	{ 4 * MS, 1000, 7, 7, 0, false, 3, { fx_m(0x50), fx_u(1, 0x11), fx_u(0, 0x21) } },
	{ 5 * MS, 2000, 7, 9, 0, false, 2, { fx_u(1, 8), fx_u(0, 0x21) } },
	{ 6 * MS, 4000, 7, 7, 0, false, 2, { FX_JIT + 0x10, fx_u(0, 0x21) } },
	{ 7 * MS, 8000, 7, 7, 1, false, 1, { 0x1234 } },
};
#define NSAMPLES (sizeof(samples) / sizeof(samples[0]))
#define TOTAL 15122

static void make_profile(bool single)
{
	fx_begin(&fx, "p", single);
	for (size_t i = 0; i < NSAMPLES; i++)
		fx_add(&fx, &samples[i]);
	assert_int_equal(fx.sink->ops->lost(fx.sink, 1, 3, FX_T0 + 2 * MS, NULL), 0);
	fx_end(&fx);
}

static void load(struct stackset_options o)
{
	char path[128], cache[128];
	struct err e = { 0 };

	snprintf(path, sizeof(path), "%s", fx_path(&fx, "p"));
	snprintf(cache, sizeof(cache), "%s", fx_path(&fx, "cache"));
	o.input = path;
	o.buildid_dir = cache;
	stackset_destroy(set);
	set = NULL;
	if (stackset_load(&set, &o, &e))
		fail_msg("%s", e.text);
}

static const struct stackset_func *func_at(const struct stackset_stack *s, uint32_t i)
{
	return &set->func[set->frame[s->frame[i]].func];
}

/* "inner;middle;outer", innermost first. */
static void text_of(const struct stackset_stack *s, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (uint32_t i = 0; i < s->n; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ";" : "", func_at(s, i)->name);
}

static const struct stackset_stack *find(const char *text, uint32_t tid)
{
	for (size_t i = 0; i < set->nstacks; i++) {
		char got[256];

		text_of(&set->stack[i], got, sizeof(got));
		if (!strcmp(got, text) && set->task[set->stack[i].task].tid == tid)
			return &set->stack[i];
	}
	return NULL;
}

static void weighs(const char *text, uint32_t tid, enum stackset_mode mode, uint64_t weight,
		   uint64_t n)
{
	const struct stackset_stack *s = find(text, tid);

	for (size_t i = 0; !s && i < set->nstacks; i++) {
		char got[256];

		text_of(&set->stack[i], got, sizeof(got));
		print_message("%u: %s\n", set->task[set->stack[i].task].tid, got);
	}
	if (!s)
		fail_msg("no stack %s of %u", text, tid);
	assert_int_equal(s->mode, mode);
	assert_int_equal(s->weight, weight);
	assert_int_equal(s->samples, n);
}

static void check_sums(void)
{
	uint64_t weight = 0, n = 0, mode[STACKSET_MODES] = { 0 };

	for (size_t i = 0; i < set->nstacks; i++) {
		const struct stackset_stack *s = &set->stack[i];

		assert_true(s->n > 0);
		assert_in_range(s->task, 0, set->ntasks - 1);
		for (uint32_t k = 0; k < s->n; k++) {
			assert_true(s->frame[k] < set->nframes);
			assert_true(set->frame[s->frame[k]].func < set->nfuncs);
		}
		weight += s->weight;
		n += s->samples;
		mode[s->mode] += s->weight;
	}
	assert_int_equal(weight, set->weight);
	assert_int_equal(n, set->samples);
	assert_memory_equal(mode, set->mode_weight, sizeof(mode));
}

static void test_stacks(void **state)
{
	(void)state;
	for (unsigned int single = 0; single < 2; single++) {
		assert_int_equal(file_remove_tree(fx_path(&fx, "p"), NULL), 0);
		make_profile(single);
		load((struct stackset_options){ 0 });
		check_sums();
		assert_int_equal(set->nstacks, 7);
		assert_int_equal(set->samples, NSAMPLES);
		assert_int_equal(set->weight, TOTAL);
		assert_int_equal(set->mode_weight[STACKSET_IDLE], 100);
		assert_int_equal(set->mode_weight[STACKSET_USER], 14000);
		assert_int_equal(set->lost, 3);
		weighs("inner;middle;outer", 7, STACKSET_KERNEL, 15, 2);
		weighs("inner;middle;outer", 8, STACKSET_KERNEL, 7, 1);
		weighs("idle_loop;outer", 0, STACKSET_IDLE, 100, 1);
		weighs("mod_write;work;main", 7, STACKSET_KERNEL, 1000, 1);
		weighs("work;main", 9, STACKSET_USER, 2000, 1);
		weighs("0x00007f0000000010;main", 7, STACKSET_USER, 4000, 1);
		weighs("0x0000000000001234", 7, STACKSET_USER, 8000, 1);
		assert_null(set->sample);
		assert_string_equal(set->event, "wall");
		assert_true(set->weight_is_ns && set->ours && !set->partial);
		assert_string_equal(set->osrelease, "6.1.0-fx");
		assert_string_equal(set->message, "");
		assert_non_null(strstr(set->json, "made_up"));
		assert_int_equal(set->ncpus, 2);
		assert_int_equal(set->first_ns, FX_T0);
		assert_int_equal(set->last_ns, FX_T0 + 7 * MS);
	}
}

static void is_func(const struct stackset_stack *s, uint32_t i, const char *dso,
		    enum stackset_kind kind, uint64_t addr, uint64_t size)
{
	const struct stackset_func *f = func_at(s, i);

	assert_string_equal(f->dso, dso);
	assert_int_equal(f->kind, kind);
	assert_int_equal(f->addr, addr);
	assert_int_equal(f->size, size);
	assert_int_equal(f->named, size != 0);
}

static void test_frames(void **state)
{
	const struct stackset_stack *s;
	const struct stackset_frame *f;

	(void)state;
	make_profile(false);
	load((struct stackset_options){ 0 });
	s = find("inner;middle;outer", 7);
	is_func(s, 0, "[kernel.kallsyms]", STACKSET_KIND_KERNEL, fx_k(2, 0), 0x100);
	f = &set->frame[s->frame[0]];
	assert_int_equal(f->addr, fx_k(2, 8));
	assert_int_equal(f->off, 8);
	assert_int_equal(f->image, 0x208);
	/* A caller's address is inside of its call, also where that is the last instruction. */
	f = &set->frame[s->frame[2]];
	assert_true(f->addr < fx_k(1, 0) && f->addr >= fx_k(0, 0xf0));
	assert_int_equal(f->off, f->addr - fx_k(0, 0));
	/* The same addresses in another process are the same frames. */
	assert_ptr_equal(func_at(s, 1), func_at(find("inner;middle;outer", 8), 1));
	assert_int_equal(s->frame[2], find("inner;middle;outer", 8)->frame[2]);

	s = find("mod_write;work;main", 7);
	is_func(s, 0, "[fxmod]", STACKSET_KIND_MODULE, fx_m(0x40), 0x100);
	assert_int_equal(set->frame[s->frame[0]].image, 0x50);
	is_func(s, 1, "/bin/prog", STACKSET_KIND_USER, FX_USER_VA + 0x100, 0x100);
	assert_int_equal(set->frame[s->frame[1]].image, 0x1110);
	assert_ptr_equal(func_at(s, 2), func_at(find("work;main", 9), 1));
	s = find("0x00007f0000000010;main", 7);
	is_func(s, 0, "[jit:7]", STACKSET_KIND_JIT, FX_JIT + 0x10, 0);
	s = find("0x0000000000001234", 7);
	is_func(s, 0, "[unknown]", STACKSET_KIND_UNKNOWN, 0x1234, 0);
	assert_string_equal(set->task[s->task].comm, "prog");
	assert_int_equal(set->task[s->task].pid, 7);
	/* Forked by prog, so of its name. */
	assert_ptr_equal(set->task[find("inner;middle;outer", 8)->task].comm,
			 set->task[s->task].comm);
	/* This thread has no name. */
	assert_string_equal(set->task[find("work;main", 9)->task].comm, ":9");
	load((struct stackset_options){ .no_demangle = true });
	weighs("_Z4worki;main", 9, STACKSET_USER, 2000, 1);
}

#define SELECT(...) (&(struct selection){ __VA_ARGS__ })
#define WITH(...) ((struct stackset_options){ .selection = SELECT(__VA_ARGS__) })
#define ONE(number)                                     \
	{                                               \
		.range = { { number, number } }, .n = 1 \
	}
#define TEXT(text_)                       \
	{                                 \
		.text = { text_ }, .n = 1 \
	}
#define AT(seconds)                             \
	{                                       \
		.given = true, .value = seconds \
	}

static void filter(struct stackset_options o, uint64_t weight, uint64_t n)
{
	load(o);
	check_sums();
	assert_int_equal(set->weight, weight);
	assert_int_equal(set->samples, n);
}

static void test_filters(void **state)
{
	(void)state;
	make_profile(false);
	filter(WITH(.pid = ONE(8)), 7, 1);
	filter(WITH(.pid = ONE(0)), 100, 1);
	filter(WITH(.tid = ONE(9)), 2000, 1);
	filter(WITH(.cpu = ONE(1)), 8012, 3);
	filter(WITH(.pid = ONE(99)), 0, 0);
	assert_int_equal(set->nstacks, 0);
	filter(WITH(.comm = TEXT("prog")), 10 + 5 + 7 + 1000 + 4000 + 8000, 6);
	filter(WITH(.comm = TEXT("swapper")), 100, 1);
	assert_string_equal(set->missed, "");
	/* From the first sample on; samples at both ends count, as in perf. */
	filter(WITH(.from = AT(0.003)), 5 + 1000 + 2000 + 4000 + 8000, 5);
	assert_int_equal(set->first_ns, FX_T0 + 3 * MS);
	filter(WITH(.to = AT(0.003)), 10 + 100 + 7 + 5, 4);
	filter(WITH(.from = AT(0.001), .to = AT(0.0015)), 100, 1);
	filter(WITH(.from = AT(1e30)), 0, 0);
	assert_true(set->last_ns >= set->first_ns);
	/* Without the programs' frames; samples that have no others do not count. */
	filter(((struct stackset_options){ .selection = SELECT(.mode = SELECTION_KERNEL),
					   .keep_samples = true }),
	       10 + 5 + 100 + 7 + 1000, 5);
	weighs("mod_write", 7, STACKSET_KERNEL, 1000, 1);
	assert_int_equal(set->nsamples, 5);
}

/* By functions: the innermost one for the choice, any of the stack for --parent. */
static void test_functions(void **state)
{
	struct selection f = { .dso = TEXT("fxmod") };
	struct err e = { 0 };

	(void)state;
	make_profile(false);
	load((struct stackset_options){ .selection = &f, .keep_samples = true });
	check_sums();
	assert_int_equal(set->weight, 1000);
	assert_int_equal(set->nsamples, 1);
	/* A table keeps all samples, and has the rows of the chosen functions. */
	load((struct stackset_options){ .selection = &f, .keep_unchosen = true });
	check_sums();
	assert_int_equal(set->weight, TOTAL);
	for (size_t i = 0; i < set->nfuncs; i++)
		assert_int_equal(set->func[i].hidden, strcmp(set->func[i].dso, "[fxmod]") != 0);
	f = (struct selection){ 0 };
	assert_int_equal(selection_parse_parent(&f, "^(middle|mai[mn])$", &e), 0);
	filter((struct stackset_options){ .selection = &f }, 10 + 5 + 7 + 1000 + 2000 + 4000, 6);
	selection_deinit(&f);
	assert_int_equal(selection_parse_symbols(&f, "work,inner", &e), 0);
	filter((struct stackset_options){ .selection = &f }, 10 + 5 + 7 + 2000, 4);
	/* The message suggests the nearest name. */
	assert_int_equal(selection_parse_symbols(&f, "iner", &e), 0);
	filter((struct stackset_options){ .selection = &f }, 0, 0);
	assert_non_null(strstr(set->missed, "'iner' (did you mean inner?)"));
	selection_deinit(&f);
	assert_int_equal(selection_parse_parent(&f, "a(", &e), -EINVAL);
	assert_non_null(strstr(e.text, "bad expression 'a('"));
	selection_deinit(&f);
}

static void test_kept_samples(void **state)
{
	uint64_t weight = 0;

	(void)state;
	make_profile(false);
	load((struct stackset_options){ .keep_samples = true });
	assert_int_equal(set->nsamples, NSAMPLES);
	for (size_t i = 0; i < NSAMPLES; i++) {
		const struct stackset_sample *s = &set->sample[i];
		const struct fx_sample *x = NULL;

		for (size_t k = 0; k < NSAMPLES; k++)
			if (samples[k].after_ns == i * MS)
				x = &samples[k];
		assert_non_null(x);
		assert_int_equal(s->time_ns, FX_T0 + i * MS);
		assert_int_equal(s->weight, x->weight);
		assert_int_equal(s->cpu, x->cpu);
		assert_true(s->stack < set->nstacks);
		assert_int_equal(set->stack[s->stack].n, x->n);
		assert_int_equal(set->task[set->stack[s->stack].task].tid, x->tid);
		weight += s->weight;
	}
	assert_int_equal(weight, TOTAL);
}

static void test_partial(void **state)
{
	char data[128];

	(void)state;
	make_profile(false);
	snprintf(data, sizeof(data), "%s/data", fx_path(&fx, "p"));
	for (long len = 4096; len > 0; len -= 64) {
		struct err e = { 0 };
		struct stackset_options o = { 0 };
		char path[128];

		if (truncate(data, len) < 0)
			fail();
		snprintf(path, sizeof(path), "%s", fx_path(&fx, "p"));
		o.input = path;
		stackset_destroy(set);
		set = NULL;
		if (stackset_load(&set, &o, &e)) {
			assert_true(e.text[0]);
			set = NULL;
			continue;
		}
		check_sums();
		if (set->samples < NSAMPLES) {
			assert_true(set->partial);
			assert_true(set->message[0]);
		}
	}
	assert_null(set);
}

static bool equal_number(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

static void test_table(void **state)
{
	struct table t = TABLE_OF(uint64_t, equal_number);

	(void)state;
	for (uint64_t pass = 0; pass < 2; pass++)
		for (uint64_t i = 0; i < 10000; i++) {
			uint64_t v = i * 7;
			uint32_t at;
			bool fresh;

			/* Bad hashes cost time, not truth. */
			assert_int_equal(table_add(&t, i % 1000, &v, &at, &fresh), 0);
			assert_int_equal(at, i);
			assert_int_equal(fresh, !pass);
		}
	assert_int_equal(t.n, 10000);
	table_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partial, setup, teardown),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
