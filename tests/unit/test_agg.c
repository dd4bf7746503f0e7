/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aggregation: self and children by weight, recursion, unknown names, many stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/agg.h"
#include "profile/perfdata_format.h"

#include <stdio.h>
#include <string.h>

static char root[64];
static struct perfdata profile; /* only what names_create() looks at */
static struct names *names;
static struct tasks *tasks;
static struct agg *agg;

static int make_agg(const char *keys, bool exact)
{
	struct agg_config c = { .exact = exact };
	char list[64], *save = NULL;

	agg_destroy(agg);
	agg = NULL;
	snprintf(list, sizeof(list), "%s", keys);
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save))
		c.key[c.nkeys++] = agg_key_find(s);
	return agg_create(&agg, &c, names, tasks, NULL);
}

static void record(const struct perfdata_record *r)
{
	assert_int_equal(names_record(names, r, NULL), 0);
	assert_int_equal(tasks_record(tasks, r, NULL), 0);
}

/* A module over [from, to). */
static void map_module(const char *name, uint64_t from, uint64_t to)
{
	struct perfdata_record r = { .kind = PERFDATA_MAP,
				     .kernel = true,
				     .map = { .addr = from, .len = to - from, .path = name } };

	record(&r);
}

static int setup(void **state)
{
	char path[128];
	struct err e = { 0 };
	FILE *f;

	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/kcore_dir", root);
	if (file_mkdirs(path, &e))
		return -1;
	snprintf(path, sizeof(path), "%s/kcore_dir/kallsyms", root);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fputs("ffffffff81000000 T outer\n"
	      "nonsense\n"
	      "ffffffff81000100 t middle\t[some_module]\n"
	      "ffffffff81000200 T inner\n"
	      "ffffffff81000300 t same_name\n"
	      "ffffffff81000400 t same_name\n"
	      "ffffffff81000500 T after",
	      f);
	fclose(f);
	profile.dir = root;
	tasks = tasks_create();
	if (!tasks || names_create(&names, &profile, root, &e) || make_agg("mode,sym,dso", false))
		return -1;
	map_module("[some_module]", 0xffffffff81000100, 0xffffffff81000200);
	return names_have_kernel(names) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	agg_destroy(agg);
	names_destroy(names);
	tasks_destroy(tasks);
	agg = NULL;
	tasks = NULL;
	names = NULL;
	return file_remove_tree(root, NULL);
}

static uint64_t at(unsigned int offset)
{
	return 0xffffffff81000000u + offset;
}

/* chain lives in the caller, as in a mapped file. */
static void add(uint32_t pid, uint64_t period, const uint64_t *chain, uint32_t nr, bool kernel)
{
	struct perfdata_record r = {
		.kind = PERFDATA_SAMPLE,
		.kernel = kernel,
		.pid = pid,
		.sample = { .ip = chain[1],
			    .period = period,
			    .chain = (const uint8_t *)chain,
			    .nr = nr },
	};
	struct err e = { 0 };

	assert_int_equal(agg_add(agg, &r, &e), 0);
}

static const struct agg_row *row(const char *name, enum agg_mode mode)
{
	for (size_t i = 0; i < agg->nrows; i++)
		if (agg->row[i].frame.symbol && !strcmp(agg->row[i].frame.symbol->name, name) &&
		    agg->row[i].frame.mode == mode)
			return &agg->row[i];
	return NULL;
}

static void check(const char *name, enum agg_mode mode, uint64_t self, uint64_t children)
{
	const struct agg_row *r = row(name, mode);

	assert_non_null(r);
	assert_int_equal(r->self, self);
	assert_int_equal(r->children, children);
}

static void test_self_and_children(void **state)
{
	/* The second outer chain ends behind a last call: at the next function's first byte. */
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x150), at(0x50) };
	const uint64_t b[] = { PERFDATA_CONTEXT_KERNEL, at(0x110), at(0x100) };
	const uint64_t recursive[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x220), at(0x230),
				       at(0x50) };
	struct err e = { 0 };

	(void)state;
	add(1, 10, a, 4, true);
	add(1, 10, a, 4, true);
	add(1, 5, b, 3, true);
	add(1, 100, recursive, 5, true);
	add(0, 1000, a, 4, true); /* the same code while idle is another row */
	assert_int_equal(agg_finish(agg, false, &e), 0);
	assert_int_equal(agg->samples, 5);
	assert_int_equal(agg->weight, 1125);
	assert_int_equal(agg->nstacks, 4);
	assert_int_equal(agg->mode_weight[AGG_IDLE], 1000);
	assert_int_equal(agg->mode_weight[AGG_KERNEL], 125);
	check("inner", AGG_KERNEL, 120, 120);
	check("middle", AGG_KERNEL, 5, 25);
	check("outer", AGG_KERNEL, 0, 125);
	check("inner", AGG_IDLE, 1000, 1000);
	check("outer", AGG_IDLE, 0, 1000);
	assert_int_equal(row("inner", AGG_KERNEL)->self_samples, 3);
	assert_int_equal(row("outer", AGG_KERNEL)->children_samples, 4);
	/* Sorted by children, then self. */
	assert_string_equal(agg->row[0].frame.symbol->name, "inner");
	for (size_t i = 1; i < agg->nrows; i++)
		assert_true(agg->row[i - 1].children >= agg->row[i].children);
}

static void test_exact_addresses(void **state)
{
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x100) };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(make_agg("mode,sym,dso", true), 0);
	add(1, 1, a, 3, true);
	assert_int_equal(agg_finish(agg, true, &e), 0);
	check("middle", AGG_KERNEL, 0, 1);
	assert_null(row("outer", AGG_KERNEL));
}

static void test_names_apart(void **state)
{
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x310) };
	const uint64_t b[] = { PERFDATA_CONTEXT_KERNEL, at(0x410) };
	const uint64_t unknown[] = { PERFDATA_CONTEXT_KERNEL, 0xffffffff70000000u };
	const uint64_t unknown2[] = { PERFDATA_CONTEXT_KERNEL, 0xffffffff70000001u };
	const uint64_t user[] = { PERFDATA_CONTEXT_USER, at(0x310) };
	struct err e = { 0 };
	size_t n = 0;

	(void)state;
	add(1, 1, a, 2, true);
	add(1, 1, b, 2, true);
	add(1, 1, unknown, 2, true);
	add(1, 1, unknown2, 2, true);
	add(1, 1, user, 2, false);
	assert_int_equal(agg_finish(agg, false, &e), 0);
	/* Two static functions of one name are two; so are two unknown addresses. */
	assert_int_equal(agg->nrows, 5);
	for (size_t i = 0; i < agg->nrows; i++)
		n += agg->row[i].frame.symbol &&
		     !strcmp(agg->row[i].frame.symbol->name, "same_name");
	assert_int_equal(n, 2);
	/* A user address is never given a kernel's name. */
	for (size_t i = 0; i < agg->nrows; i++)
		if (agg->row[i].frame.mode == AGG_USER) {
			assert_null(agg->row[i].frame.symbol);
			assert_string_equal(agg->row[i].frame.dso, "[unknown]");
		}
}

static void test_many_stacks(void **state)
{
	enum { N = 50000 };
	uint64_t(*chain)[4] = calloc(N, sizeof(*chain));
	uint64_t self = 0;
	struct err e = { 0 };

	(void)state;
	assert_non_null(chain);
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < N; i++) {
			chain[i][0] = PERFDATA_CONTEXT_KERNEL;
			chain[i][1] = at(i % 0x500);
			chain[i][2] = at(1 + i / 0x500);
			chain[i][3] = at(1 + i % 7);
			add(1, 1, chain[i], 4, true);
		}
	assert_int_equal(agg->samples, 2 * N);
	assert_true(agg->nstacks > N / 2 && agg->nstacks <= N);
	assert_int_equal(agg_finish(agg, true, &e), 0);
	for (size_t i = 0; i < agg->nrows; i++)
		self += agg->row[i].self;
	assert_int_equal(self, 2 * N);
	free(chain);
}

static void test_markers_only(void **state)
{
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210) };
	const uint64_t hypervisor[] = { (uint64_t)-32, at(0x210) };
	struct err e = { 0 };

	(void)state;
	/* A chain without addresses, and one of a context that is neither: the ip counts. */
	add(1, 1, a, 1, true);
	add(1, 1, hypervisor, 2, true);
	assert_int_equal(agg_finish(agg, true, &e), 0);
	assert_int_equal(agg->mode_weight[AGG_KERNEL] + agg->mode_weight[AGG_USER], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_self_and_children, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exact_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_markers_only, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
