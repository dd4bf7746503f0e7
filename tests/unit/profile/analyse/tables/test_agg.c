/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aggregation: self and children by weight, recursion, unknown names, many stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/analyse/tables/agg.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

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
	      "ffffffff81000200 W within\n"
	      "ffffffff81000200 T inner\n"
	      "ffffffff81000300 t same_name\n"
	      "ffffffff81000400 t same_name\n"
	      "ffffffff81000500 T after\n"
	      "ffffffff810005f0 t __pfx_target\n"
	      "ffffffff81000600 T target",
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

#define at(offset) (0xffffffff81000000u + (uint64_t)(offset))

#define HALTED 9999u /* process 1 on a halted vCPU */

/* chain lives in the caller, as in a mapped file. */
static void add(uint32_t pid, uint64_t period, const uint64_t *chain, uint32_t nr, bool kernel)
{
	struct perfdata_record r = {
		.kind = PERFDATA_SAMPLE,
		.kernel = kernel,
		.idle = pid == HALTED,
		.pid = pid == HALTED ? 1 : pid,
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
	add(HALTED, 1000, a, 4, true); /* the same code while idle is another row */
	add(0, 7, a, 4, true);	       /* the idle task, but it ran */
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, &e), 0);
	assert_int_equal(agg->samples, 6);
	assert_int_equal(agg->weight, 1132);
	assert_int_equal(agg->nstacks, 4);
	assert_int_equal(agg->mode_weight[AGG_IDLE], 1000);
	assert_int_equal(agg->mode_weight[AGG_KERNEL], 132);
	check("inner", AGG_KERNEL, 127, 127);
	check("middle", AGG_KERNEL, 5, 32);
	check("outer", AGG_KERNEL, 0, 132);
	check("inner", AGG_IDLE, 1000, 1000);
	check("outer", AGG_IDLE, 0, 1000);
	assert_int_equal(row("inner", AGG_KERNEL)->self_samples, 4);
	assert_int_equal(row("outer", AGG_KERNEL)->children_samples, 5);
	/* Sorted by children, then self. */
	assert_string_equal(agg->row[0].frame.symbol->name, "inner");
	for (size_t i = 1; i < agg->nrows; i++)
		assert_true(agg->row[i - 1].children >= agg->row[i].children);
}

/* An expression matches any name of a function; what is shown is the one name. */
static void test_other_names(void **state)
{
	static const char *const expression[] = { "^within$", "^inner$", "with|outer", "^none$" };
	static const size_t want[] = { 1, 1, 2, 0 };
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x50) };
	struct selection f = { 0 };
	struct agg_config c = { .key = { agg_key_find("sym") }, .nkeys = 1, .selection = &f };
	struct err e = { 0 };
	regex_t regex;

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		for (unsigned int parent = 0; parent < 2; parent++) {
			assert_int_equal(regcomp(&regex, expression[i], REG_EXTENDED | REG_NOSUB),
					 0);
			f.symbol = parent ? NULL : &regex;
			f.parent = parent ? &regex : NULL;
			agg_destroy(agg);
			assert_int_equal(agg_create(&agg, &c, names, tasks, NULL), 0);
			add(1, 10, a, 3, true);
			assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, &e),
					 want[i] ? 0 : -ENODATA);
			assert_int_equal(agg->nrows, parent && want[i] ? 2 : want[i]);
			if (want[i])
				check("inner", AGG_KERNEL, 10, 10);
			regfree(&regex);
		}
}

static void test_exact_addresses(void **state)
{
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x100) };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(make_agg("mode,sym,dso", true), 0);
	add(1, 1, a, 3, true);
	assert_int_equal(agg_finish(agg, AGG_BY_SELF, &e), 0);
	check("middle", AGG_KERNEL, 0, 1);
	assert_null(row("outer", AGG_KERNEL));
}

/* Stock perf's file: a retpoline's stack has the address of the function that it enters. */
static void test_address_of_a_retpoline(void **state)
{
	const uint64_t chain[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x600), at(0x10) };
	const uint64_t noreturn[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x5f0), at(0x10) };

	(void)state;
	add(1, 10, chain, 4, true);
	add(1, 10, noreturn, 4, true);
	assert_int_equal(agg_finish(agg, AGG_BY_SELF, NULL), 0);
	check("target", AGG_KERNEL, 0, 10);
	check("after", AGG_KERNEL, 0, 10);
	assert_null(row("__pfx_target", AGG_KERNEL));
}

/* Code in front of a function that is called after it (FineIBT's) is its own. */
static void test_code_in_front(void **state)
{
	const uint64_t in_front[] = { PERFDATA_CONTEXT_KERNEL, at(0x5f4), at(0x210) };
	const uint64_t inside[] = { PERFDATA_CONTEXT_KERNEL, at(0x604), at(0x210) };
	struct name name;

	(void)state;
	add(1, 10, in_front, 3, true);
	add(1, 5, inside, 3, true);
	assert_int_equal(agg_finish(agg, AGG_BY_SELF, NULL), 0);
	check("target", AGG_KERNEL, 15, 15);
	assert_null(row("__pfx_target", AGG_KERNEL));
	names_lookup(names, 0, NAMES_KERNEL, at(0x5f4), &name);
	assert_int_equal(at(0x5f4) - name.off, at(0x600));
	assert_int_equal(names_shown_off(&name), 0);
	names_lookup(names, 0, NAMES_KERNEL, at(0x604), &name);
	assert_int_equal(names_shown_off(&name), 4);
}

/* In an ELF file's symbols only the first 5 of these 16 bytes have a name. */
static void test_code_in_front_of_sized(void **state)
{
	static const char *const want[] = {
		[0] = "target",	       [0x0f] = "target", [0x10] = "target",
		[0x30] = "__cfi_none", [0x3f] = NULL,	  [0x40] = "f"
	};
	static const unsigned int offset[] = { 0, 0x0f, 0x10, 0x30, 0x3f, 0x40 };
	struct profile_kernel k = { 0 };
	struct symtab *t = symtab_create();
	struct names *live = names_create_live();
	struct name name;

	(void)state;
	assert_int_equal(symtab_add(t, at(0), 5, 't', "__cfi_target"), 0);
	assert_int_equal(symtab_add(t, at(0x10), 0x10, 't', "target"), 0);
	assert_int_equal(symtab_add(t, at(0x30), 5, 't', "__cfi_none"), 0);
	assert_int_equal(symtab_add(t, at(0x40), 5, 't', "f"), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	k.symbols = t;
	names_kernel(live, &k);
	for (size_t i = 0; i < sizeof(offset) / sizeof(offset[0]); i++) {
		const char *w = want[offset[i]];

		names_lookup(live, 0, NAMES_KERNEL, at(offset[i]), &name);
		assert_int_equal(name.symbol != NULL, w != NULL);
		if (w)
			assert_string_equal(name.symbol->name, w);
	}
	names_destroy(live);
	symtab_destroy(t);
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
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, &e), 0);
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
	assert_int_equal(agg_finish(agg, AGG_BY_SELF, &e), 0);
	for (size_t i = 0; i < agg->nrows; i++)
		self += agg->row[i].self;
	assert_int_equal(self, 2 * N);
	free(chain);
}

static void test_markers_only(void **state)
{
	const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210) };
	const uint64_t unknown[] = { (uint64_t)-4000, at(0x210) };
	struct err e = { 0 };

	(void)state;
	/* A chain without addresses, and one of an unknown context: the ip counts. */
	add(1, 1, a, 1, true);
	add(1, 1, unknown, 2, true);
	assert_int_equal(agg_finish(agg, AGG_BY_SELF, &e), 0);
	assert_int_equal(agg->mode_weight[AGG_KERNEL] + agg->mode_weight[AGG_USER], 2);
}

/* More different stacks than are held: the older ones are added up meanwhile. */
static void test_stacks_beyond_what_is_held(void **state)
{
	enum { N = (1 << 20) + 1000 };
	uint64_t(*chain)[3] = calloc(N, sizeof(*chain));
	uint64_t self = 0;
	struct err e = { 0 };

	(void)state;
	assert_non_null(chain);
	for (unsigned int i = 0; i < N; i++) {
		chain[i][0] = PERFDATA_CONTEXT_KERNEL;
		chain[i][1] = at(i % 0x500);
		chain[i][2] = 0xffffffff70000000u + i / 0x500;
		add(1, 2, chain[i], 3, true);
	}
	assert_int_equal(agg->nstacks, N);
	/* The oldest are not looked at again, the youngest are. */
	memset(chain, 0xff, N / 4 * sizeof(*chain));
	assert_int_equal(agg_finish(agg, true, &e), 0);
	for (size_t i = 0; i < agg->nrows; i++)
		self += agg->row[i].self;
	assert_int_equal(self, 2 * N);
	assert_int_equal(agg->samples, N);
	check("inner", AGG_KERNEL, row("inner", AGG_KERNEL)->self, row("inner", AGG_KERNEL)->self);
	assert_true(row("inner", AGG_KERNEL)->self >= N / 0x500 * 0x100 * 2);
	free(chain);
}

/* Code without a name is known by its place in its file, wherever that was mapped. */
static void test_unnamed_in_a_file(void **state)
{
	const uint64_t a[] = { PERFDATA_CONTEXT_USER, 0x550000001234 };
	const uint64_t b[] = { PERFDATA_CONTEXT_USER, 0x770000001234 };
	struct err e = { 0 };

	(void)state;
	for (uint32_t pid = 1; pid <= 2; pid++) {
		struct perfdata_record r = { .kind = PERFDATA_MAP,
					     .pid = pid,
					     .map = { .addr = pid == 1 ? a[1] - 0x234
								       : b[1] - 0x234,
						      .len = 0x1000,
						      .pgoff = 0x3000,
						      .path = "/lib/x.so" } };

		record(&r);
		add(pid, 1, pid == 1 ? a : b, 2, false);
	}
	assert_int_equal(agg_finish(agg, false, &e), 0);
	assert_int_equal(agg->nrows, 1);
	assert_int_equal(agg->row[0].self, 2);
	assert_int_equal(agg->row[0].frame.addr, 0x3234);
}

/* The last programs' files are read when all samples are there: what the host fails to read is an error. */
static void test_file_that_is_not_read(void **state)
{
	static const uint8_t id[PERFDATA_BUILD_ID_SIZE];
	const uint64_t a[] = { PERFDATA_CONTEXT_USER, 0x550000001234 };
	struct perfdata_record r = { .kind = PERFDATA_MAP,
				     .pid = 1,
				     .map = { .addr = a[1] & ~UINT64_C(0xfff),
					      .len = 0x1000,
					      .path = "/bin/x",
					      .build_id = id,
					      .build_id_len = sizeof(id) } };
	struct rlimit old, few;
	struct err e = { 0 };
	char path[160];
	FILE *f;
	int ret;

	(void)state;
	snprintf(path, sizeof(path), "%s/dso", root);
	assert_int_equal(file_mkdirs(path, &e), 0);
	snprintf(path, sizeof(path), "%s/dso/%040d", root, 0);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	record(&r);
	add(1, 1, a, 2, false);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	ret = agg_finish(agg, AGG_BY_CHILDREN, &e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(ret, -EMFILE);
	assert_non_null(strstr(e.text, path));
}

/* -- keys, filters, and names that change over time ---------------------------------------- */

static void task(enum perfdata_kind kind, uint32_t pid, uint32_t parent, const char *comm,
		 bool exec)
{
	struct perfdata_record r = { .kind = kind, .pid = pid, .tid = pid, .exec = exec };

	if (kind == PERFDATA_COMM)
		r.comm = comm;
	else
		r.fork.ppid = r.fork.ptid = parent;
	record(&r);
}

static void add_on(uint32_t pid, uint32_t tid, uint32_t cpu, uint64_t period, const uint64_t *chain,
		   uint32_t nr)
{
	struct perfdata_record r = {
		.kind = PERFDATA_SAMPLE,
		.kernel = chain[0] == PERFDATA_CONTEXT_KERNEL,
		.pid = pid,
		.tid = tid,
		.cpu = cpu,
		.sample = { .ip = chain[1],
			    .period = period,
			    .chain = (const uint8_t *)chain,
			    .nr = nr },
	};

	assert_int_equal(agg_add(agg, &r, NULL), 0);
}

/* The row whose cells are these, by the keys in their order; NULL when there is none. */
static const struct agg_row *row_of(const char *keys, const char *cells)
{
	for (size_t i = 0; i < agg->nrows; i++) {
		char list[64], line[256] = "", buf[64], *save = NULL;

		snprintf(list, sizeof(list), "%s", keys);
		for (char *k = strtok_r(list, ",", &save); k; k = strtok_r(NULL, ",", &save)) {
			const struct agg_key *key = agg_key_find(k);

			strcat(line, *line ? "," : "");
			strcat(line, key->format(tasks, &agg->row[i].frame, buf, sizeof(buf)));
		}
		if (!strcmp(line, cells))
			return &agg->row[i];
	}
	return NULL;
}

static void weighs(const char *keys, const char *cells, uint64_t self, uint64_t children)
{
	const struct agg_row *r = row_of(keys, cells);

	assert_non_null(r);
	assert_int_equal(r->self, self);
	assert_int_equal(r->children, children);
}

static void two_tasks(void)
{
	static const uint64_t a[] = { PERFDATA_CONTEXT_KERNEL, at(0x210), at(0x150), at(0x50) };
	static const uint64_t b[] = { PERFDATA_CONTEXT_KERNEL, at(0x310), at(0x50) };

	task(PERFDATA_COMM, 1, 0, "init", false);
	add_on(1, 1, 0, 1, a, 4);
	task(PERFDATA_FORK, 2, 1, NULL, false);
	add_on(2, 2, 1, 10, a, 4);
	task(PERFDATA_COMM, 2, 0, "shell", true);
	add_on(2, 2, 0, 100, a, 4);
	add_on(2, 3, 1, 1000, b, 3);
}

static void test_keys(void **state)
{
	(void)state;
	assert_int_equal(make_agg("comm", false), 0);
	two_tasks();
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	assert_int_equal(agg->nrows, 3);
	weighs("comm", "init", 11, 11);
	weighs("comm", "shell", 100, 100);
	weighs("comm", ":3", 1000, 1000);

	assert_int_equal(make_agg("pid,tid,cpu", false), 0);
	two_tasks();
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	assert_int_equal(agg->nrows, 4);
	weighs("pid,tid,cpu", "2,2,1", 10, 10);
	weighs("pid,tid,cpu", "2,3,1", 1000, 1000);

	/* Children by symbol inside the group. */
	assert_int_equal(make_agg("comm,sym", false), 0);
	two_tasks();
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	weighs("comm,sym", "init,outer", 0, 11);
	weighs("comm,sym", "shell,inner", 100, 100);
	weighs("comm,sym", ":3,outer", 0, 1000);

	/* A module's functions are its own. */
	assert_int_equal(make_agg("dso", false), 0);
	two_tasks();
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	assert_int_equal(agg->nrows, 2);
	weighs("dso", "[kernel.kallsyms]", 1111, 1111);
	weighs("dso", "[some_module]", 0, 111);
	assert_null(agg_key_find("nonsense"));
	assert_ptr_equal(agg_key_find("symbol"), agg_key_find("sym"));
}

static void test_filters(void **state)
{
	struct selection f = { .cpu = { .range = { { 1, 3 } }, .n = 1 } };
	struct agg_config c = { .key = { agg_key_find("sym") }, .nkeys = 1, .selection = &f };

	(void)state;
	agg_destroy(agg);
	assert_int_equal(agg_create(&agg, &c, names, tasks, NULL), 0);
	two_tasks();
	assert_int_equal(agg->weight, 1010);

	agg_destroy(agg);
	f.tid = (struct selection_numbers){ .range = { { 9, 9 }, { 2, 2 } }, .n = 2 };
	assert_int_equal(agg_create(&agg, &c, names, tasks, NULL), 0);
	two_tasks();
	assert_int_equal(agg->weight, 10);

	agg_destroy(agg);
	f.cpu.n = f.tid.n = 0;
	f.comm = (struct selection_texts){ .text = { "shell", "init" }, .n = 2 };
	f.dso = (struct selection_texts){ .text = { "some_module" }, .n = 1 };
	assert_int_equal(agg_create(&agg, &c, names, tasks, NULL), 0);
	two_tasks();
	assert_int_equal(agg->weight, 111);
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	assert_int_equal(agg->nrows, 1);
	weighs("sym", "middle", 0, 111);
}

/* A sample keeps the mappings of its time, whatever comes after it. */
static void test_time(void **state)
{
	static const uint64_t user[] = { PERFDATA_CONTEXT_USER, 0x400010 };
	static const uint64_t module[] = { PERFDATA_CONTEXT_KERNEL, at(0x110) };
	struct perfdata_record map = {
		.kind = PERFDATA_MAP,
		.pid = 7,
		.map = { .addr = 0x400000, .len = 0x1000, .path = "/bin/first" }
	};

	(void)state;
	assert_int_equal(make_agg("dso", false), 0);
	add_on(7, 7, 0, 1, user, 2);
	record(&map);
	add_on(7, 7, 0, 10, user, 2);
	task(PERFDATA_FORK, 8, 7, NULL, false);
	task(PERFDATA_COMM, 7, 0, "second", true);
	add_on(7, 7, 0, 2, user, 2);
	map.map.path = "/bin/second";
	record(&map);
	add_on(7, 7, 0, 100, user, 2);
	add_on(8, 8, 0, 20, user, 2);
	task(PERFDATA_EXIT, 7, 0, NULL, false);
	task(PERFDATA_FORK, 7, 8, NULL, false);
	add_on(7, 7, 0, 40, user, 2);
	/* Another module at the same place: its functions are not the former one's. */
	add_on(1, 1, 0, 1000, module, 2);
	map_module("[other]", at(0x180), at(0x280));
	add_on(1, 1, 0, 2000, module, 2);
	map_module("[other]", at(0x100), at(0x200));
	add_on(1, 1, 0, 4000, module, 2);
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	/*
	 * A mapping that came later, in a space that only grew, is known for earlier samples, too.
	 */
	weighs("dso", "/bin/first", 70, 70);
	weighs("dso", "/bin/second", 100, 100);
	weighs("dso", "[unknown]", 3, 3);
	weighs("dso", "[some_module]", 3000, 3000);
	weighs("dso", "[other]", 4000, 4000);
}

/* kallsyms of another boot: the kernel's map says how far they are off. */
static void test_slide(void **state)
{
	static const uint64_t moved[] = { PERFDATA_CONTEXT_KERNEL, at(0x210) + 0x1c000000 };
	static const uint64_t outside[] = { PERFDATA_CONTEXT_KERNEL, at(0x210) };
	struct perfdata_record map = { .kind = PERFDATA_MAP,
				       .kernel = true,
				       .map = { .addr = at(0) + 0x1c000000,
						.len = 0x10000,
						.pgoff = at(0) + 0x1c000000,
						.path = "[kernel.kallsyms]outer" } };

	(void)state;
	record(&map);
	assert_int_equal(make_agg("dso,sym", false), 0);
	add_on(1, 1, 0, 1, moved, 2);
	add_on(1, 1, 0, 2, outside, 2);
	assert_int_equal(agg_finish(agg, AGG_BY_CHILDREN, NULL), 0);
	weighs("dso,sym", "[kernel.kallsyms],inner", 1, 1);
	weighs("dso,sym", "[unknown],0xffffffff81000210", 2, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_self_and_children, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exact_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_address_of_a_retpoline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_code_in_front, setup, teardown),
		cmocka_unit_test(test_code_in_front_of_sized),
		cmocka_unit_test_setup_teardown(test_names_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacks_beyond_what_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unnamed_in_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_that_is_not_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_markers_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slide, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
