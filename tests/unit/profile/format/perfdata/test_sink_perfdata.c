/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sink's output for tasks, modules and a kernel that comes late or never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/sample.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/sink.h"
#include "profile/format/perfdata/textstore.c"

#include <stdio.h>
#include <string.h>

#define TEXT 0xffffffff81000000u
#define MODULES 0xffffffffc0000000u

static char root[64];
static struct symtab *kernel_symbols, *module_symbols[4];
static struct sink *sink;
static struct stack st = { .n = 1, .n_kernel = 1, .ip = { TEXT + 4 } };

static struct symtab *one_function(uint64_t addr, const char *name)
{
	struct symtab *t = symtab_create();

	symtab_add(t, addr, 0x100, 'T', name);
	/* Outside of the module: must not be written as one of its functions. */
	symtab_add(t, addr + 0x100000, 0x100, 'T', "elsewhere");
	return symtab_freeze(t, NULL) ? NULL : t;
}

static int setup(void **state)
{
	static const char *const name[4] = { "a_one", "b_one", "c_one", "a_one" };

	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	kernel_symbols = one_function(TEXT, "guest_start");
	/* c lies over b; a comes again elsewhere. */
	for (unsigned int i = 0; i < 4; i++)
		module_symbols[i] = one_function(
			MODULES + (uint64_t[]){ 0, 0x4000, 0x5000, 0x9000 }[i], name[i]);
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	if (sink)
		sink->ops->destroy(sink);
	sink = NULL;
	symtab_destroy(kernel_symbols);
	for (unsigned int i = 0; i < 4; i++)
		symtab_destroy(module_symbols[i]);
	return file_remove_tree(root, NULL);
}

static const char *in_root(const char *name)
{
	static char path[4][128];
	static unsigned int turn;
	char *p = path[turn++ & 3];

	snprintf(p, 128, "%s/%s", root, name);
	return p;
}

static void open_sink(bool single)
{
	static struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
					    .nevents = 1,
					    .vcpus = 1 };
	struct sink_perfdata_options opt = {
		.path = in_root("p"),
		.single_file = single,
		.buildid_dir = in_root("cache"),
	};

	assert_int_equal(perfdata_sink_create(&sink, &opt, NULL), 0);
	assert_int_equal(sink->ops->begin(sink, &info, NULL), 0);
}

static void tell_kernel(void)
{
	struct profile_kernel k = {
		.symbols = kernel_symbols,
		.text = TEXT,
		.end = TEXT + 0x10000,
		.osrelease = "6.1.0",
	};

	assert_int_equal(sink->ops->kernel(sink, &k, NULL), 0);
}

static void add_module(const char *name, unsigned int i, uint64_t time_ns)
{
	struct profile_module m = {
		.name = name,
		.addr = symtab_at(module_symbols[i], 0)->addr,
		.len = 0x2000,
		.time_ns = time_ns,
		.symbols = module_symbols[i],
	};

	assert_int_equal(sink->ops->module(sink, &m, NULL), 0);
}

static void add_sample(uint64_t time_ns)
{
	struct profile_sample s = {
		.pid = 1, .tid = 1, .time_ns = time_ns, .period = 1, .stack = &st
	};

	assert_int_equal(sink->ops->sample(sink, &s, NULL), 0);
}

static struct perfdata *finish(void)
{
	struct perfdata *p = NULL;

	assert_int_equal(sink->ops->end(sink, NULL, NULL), 0);
	sink->ops->destroy(sink);
	sink = NULL;
	assert_int_equal(perfdata_open(&p, in_root("p"), NULL), 0);
	assert_false(p->partial);
	return p;
}

static char *text_of(const char *name)
{
	struct file_map m = { 0 };
	char *text;

	assert_int_equal(file_map_open(&m, in_root(name), 1 << 20, NULL), 0);
	text = strndup((const char *)m.data, m.len);
	file_map_close(&m);
	assert_non_null(text);
	return text;
}

static void test_tasks(void **state)
{
	struct perfdata_record r;
	struct perfdata *p;

	(void)state;
	open_sink(false);
	tell_kernel();
	/* Out of order, as several vCPUs are. */
	assert_int_equal(sink->ops->exit(sink, 9, 10, 400, NULL), 0);
	assert_int_equal(
		sink->ops->comm(sink, &(struct profile_comm){ 9, 10, "sh", true, 300 }, NULL), 0);
	assert_int_equal(
		sink->ops->comm(sink, &(struct profile_comm){ 1, 1, "init", false, 100 }, NULL), 0);
	assert_int_equal(sink->ops->fork(sink, &(struct profile_fork){ 9, 10, 1, 2, 200 }, NULL),
			 0);
	p = finish();
	assert_string_equal(p->osrelease, "6.1.0");
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_MAP);
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_COMM);
	assert_false(r.exec);
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_FORK);
	assert_int_equal(r.time_ns, 200);
	assert_int_equal(r.pid, 9);
	assert_int_equal(r.tid, 10);
	assert_int_equal(r.fork.ppid, 1);
	assert_int_equal(r.fork.ptid, 2);
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_COMM);
	assert_true(r.exec);
	assert_string_equal(r.comm, "sh");
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_EXIT);
	assert_int_equal(r.pid, 9);
	assert_int_equal(r.tid, 10);
	assert_false(perfdata_next(p, &r));
	perfdata_close(p);
}

static void expect_module(struct perfdata *p, uint64_t time_ns, const char *name, uint64_t addr)
{
	struct perfdata_record r;

	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_MAP);
	assert_true(r.kernel);
	assert_string_equal(r.map.path, name);
	assert_int_equal(r.map.addr, addr);
	assert_int_equal(r.time_ns, time_ns);
}

static void test_modules(void **state)
{
	cleanup_free char *kallsyms = NULL, *full = NULL;
	struct perfdata_record r;
	struct perfdata *p;

	(void)state;
	open_sink(false);
	tell_kernel();
	add_sample(50);
	add_module("a", 0, 100);
	add_module("b", 1, 200);
	add_module("c", 2, 300);
	add_module("a", 3, 400);
	/* The guest's nonsense is left out. */
	assert_int_equal(
		sink->ops->module(
			sink, &(struct profile_module){ .name = "x/y", .addr = 1, .len = 1 }, NULL),
		0);
	assert_int_equal(sink->ops->module(sink,
					   &(struct profile_module){ .name = "wrap",
								     .addr = UINT64_MAX - 1,
								     .len = 5 },
					   NULL),
			 0);
	p = finish();
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_MAP);
	/* In front of everything the last place of each that is not covered... */
	expect_module(p, 0, "[a]", MODULES + 0x9000);
	expect_module(p, 0, "[c]", MODULES + 0x5000);
	/* ...and all of them in their time. */
	assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_SAMPLE);
	expect_module(p, 100, "[a]", MODULES);
	expect_module(p, 200, "[b]", MODULES + 0x4000);
	expect_module(p, 300, "[c]", MODULES + 0x5000);
	expect_module(p, 400, "[a]", MODULES + 0x9000);
	assert_false(perfdata_next(p, &r));
	perfdata_close(p);

	kallsyms = text_of("p/kcore_dir/kallsyms");
	assert_non_null(strstr(kallsyms, "ffffffff81000000 W _text\n"
					 "ffffffff81000000 T guest_start\n"));
	assert_non_null(strstr(kallsyms, "ffffffffc0000000 T a_one\t[a]\n"
					 "ffffffffc0005000 T c_one [or older code]\t[c]\n"
					 "ffffffffc0009000 T a_one\t[a]\n"));
	assert_null(strstr(kallsyms, "b_one"));
	assert_null(strstr(strstr(kallsyms, "a_one"), "elsewhere"));
	full = text_of("p/kcore_dir/modules.full");
	assert_string_equal(full, "a 8192 1 - Live 0xffffffffc0009000\n"
				  "c 8192 1 - Live 0xffffffffc0005000\n");
	assert_int_equal(access(in_root("p/kcore_dir/modules"), F_OK), 0);
}

static void test_many_modules(void **state)
{
	struct perfdata_record r;
	struct perfdata *p;
	unsigned int early = 0, all = 0;

	(void)state;
	open_sink(false);
	tell_kernel();
	for (unsigned int i = 0; i < 3000; i++) {
		char name[32];
		struct profile_module m = {
			.name = name,
			.addr = MODULES + i * 0x4000ull,
			.len = 0x1000,
			.time_ns = 1000 + i,
			.symbols = module_symbols[0],
		};

		snprintf(name, sizeof(name), "module_%04u", i);
		assert_int_equal(sink->ops->module(sink, &m, NULL), 0);
	}
	p = finish();
	while (perfdata_next(p, &r)) {
		all += r.kind == PERFDATA_MAP && r.time_ns;
		early += r.kind == PERFDATA_MAP && !r.time_ns;
	}
	assert_int_equal(all, 3000);
	/* As many as there is room for. */
	assert_in_range(early, 550, 1000);
	perfdata_close(p);
}

static void test_kernel_never_told(void **state)
{
	struct perfdata_record r;
	struct perfdata *p;

	(void)state;
	for (unsigned int samples = 0; samples < 2; samples++) {
		open_sink(false);
		if (samples)
			add_sample(50);
		p = finish();
		assert_string_equal(p->osrelease, "");
		assert_true(perfdata_next(p, &r) && r.kind == PERFDATA_MAP);
		assert_int_equal(r.map.addr, 0xffffffff80000000u);
		assert_int_equal(p->nsamples, samples);
		assert_int_equal(p->nbuild_ids, 1);
		perfdata_close(p);
	}
}

/* Modules lie elsewhere in each run, so the cache must not mix the runs' names. */
static void test_single_file_identity(void **state)
{
	uint8_t id[3][20];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct perfdata *p;

		open_sink(true);
		tell_kernel();
		if (i)
			add_module("a", i == 1 ? 0 : 3, 100);
		p = finish();
		assert_int_equal(p->nbuild_ids, 1);
		memcpy(id[i], p->build_ids[0].id, 20);
		perfdata_close(p);
	}
	assert_memory_not_equal(id[0], id[1], 20);
	assert_memory_not_equal(id[1], id[2], 20);
}

/* Many processes map one file: it is kept once, under its build id. */
static void test_shared_file(void **state)
{
	static const uint8_t id[20] = { 0xaa, 0xbb };
	struct profile_map m = {
		.addr = 0x400000,
		.len = 0x1000,
		.path = "[vdso]",
		.build_id = id,
		.elf = (const uint8_t *)"elf!",
		.elf_len = 4,
	};
	struct perfdata *p;

	(void)state;
	open_sink(false);
	tell_kernel();
	for (unsigned int pid = 1; pid < 50; pid++) {
		m.pid = m.tid = pid;
		m.time_ns = pid;
		if (pid == 20)
			m.elf = NULL;
		assert_int_equal(sink->ops->map(sink, &m, NULL), 0);
	}
	p = finish();
	assert_int_equal(p->nbuild_ids, 2);
	perfdata_close(p);
	assert_int_equal(access(in_root("p/dso/aabb000000000000000000000000000000000000"), F_OK),
			 0);
	/* perf's name for the file of a vdso. */
	assert_int_equal(
		access(in_root("cache/[vdso]/aabb000000000000000000000000000000000000/vdso"), F_OK),
		0);
}

/* A mapping whose names come behind all samples. */
static void late_file(bool single)
{
	static const uint8_t id[20] = { 0xcc, 0xdd };
	struct profile_map m = { .pid = 7,
				 .tid = 7,
				 .addr = 0x7f0000000000,
				 .len = 0x1000,
				 .pgoff = 0x7f0000000000,
				 .time_ns = 5,
				 .path = "[jit:7]",
				 .build_id = id };
	struct profile_dso d = {
		.path = "[jit:7]", .build_id = id, .elf = (const uint8_t *)"names", .elf_len = 5
	};
	const char *kept = in_root("p/dso/ccdd000000000000000000000000000000000000");

	open_sink(single);
	tell_kernel();
	assert_int_equal(sink->ops->map(sink, &m, NULL), 0);
	add_sample(100);
	assert_int_equal(sink->ops->dso(sink, &d, NULL), 0);
	perfdata_close(finish());
	assert_int_equal(access(kept, F_OK) == 0, !single);
	assert_int_equal(
		access(in_root("cache/[jit:7]/ccdd000000000000000000000000000000000000/elf"), F_OK),
		0);
}

static void test_late_file(void **state)
{
	(void)state;
	late_file(false);
	assert_int_equal(file_remove_tree(in_root("p"), NULL), 0);
	assert_int_equal(file_remove_tree(in_root("cache"), NULL), 0);
	late_file(true);
}

static void modes(const uint8_t *mode, const uint32_t *pid, unsigned int n, const bool *idle)
{
	struct perfdata_record r;
	struct perfdata *p;

	open_sink(true);
	tell_kernel();
	for (unsigned int i = 0; i < n; i++) {
		struct profile_sample s = { .pid = pid[i],
					    .tid = pid[i],
					    .time_ns = 100 + i,
					    .period = 1,
					    .mode = mode[i],
					    .stack = &st };

		assert_int_equal(sink->ops->sample(sink, &s, NULL), 0);
	}
	p = finish();
	for (unsigned int i = 0; i < n;) {
		assert_true(perfdata_next(p, &r));
		if (r.kind != PERFDATA_SAMPLE)
			continue;
		assert_int_equal(r.pid, pid[i]);
		assert_int_equal(r.idle, idle[i]);
		i++;
	}
	perfdata_close(p);
}

/* As the vCPU was, not as the task is called; in files that do not say so, by the task. */
static void test_idle(void **state)
{
	static const uint8_t mode[] = { SAMPLE_IDLE, SAMPLE_KERNEL, SAMPLE_IDLE, SAMPLE_USER };
	static const uint8_t silent[] = { SAMPLE_IDLE, SAMPLE_IDLE, SAMPLE_IDLE };
	static const uint32_t pid[] = { 0, 0, 7, 7 };

	(void)state;
	modes(mode, pid, 4, (const bool[]){ true, false, true, false });
	modes(silent, pid, 3, (const bool[]){ true, true, false });
}

/* -- code --------------------------------------------------------------------------- */

static uint8_t guest_byte; /* what all of the guest's memory has */
static bool readable = true;

static size_t read_guest(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	memset(dst, guest_byte, len);
	/* The kernel has patched something in each function. */
	if (va < MODULES)
		memset(dst, 0x90, 5);
	return readable ? len : 0;
}

static void sample_at(uint64_t ip)
{
	const struct stack at = { .n = 1, .n_kernel = 1, .ip = { ip } };
	const struct profile_sample s = { .time_ns = 1000, .period = 1, .stack = &at };

	assert_int_equal(sink->ops->sample(sink, &s, NULL), 0);
}

static void expect_text(const struct textstore *t, const char *name, uint64_t addr, uint8_t value)
{
	const struct textstore_range *r = textstore_find(t, name, addr);

	assert_non_null(r);
	assert_int_equal(r->len, 0x100);
	assert_int_equal(r->live[0x80], value);
	assert_false(r->has_image);
}

/* A module's code is what it was; the kernel's what it is at the end. */
static void test_text(void **state)
{
	struct profile_kernel k = {
		.symbols = kernel_symbols,
		.text = TEXT,
		.end = TEXT + 0x10000,
		.read_text = read_guest,
	};
	struct file_map map;
	struct textstore *t;

	(void)state;
	open_sink(false);
	assert_int_equal(sink->ops->kernel(sink, &k, NULL), 0);
	add_module("a", 0, 100);
	add_module("b", 1, 200);
	guest_byte = 0xa1;
	sample_at(TEXT + 4);
	sample_at(MODULES + 4);
	sample_at(MODULES + 5);
	sample_at(MODULES + 0x4010);
	/* Over b; nothing of it was sampled. */
	add_module("c", 2, 300);
	/* No module is there. */
	sample_at(MODULES + 0x10000);
	guest_byte = 0xb2;
	assert_int_equal(sink->ops->end(sink, NULL, NULL), 0);

	assert_int_equal(file_map_open(&map, in_root("p/text"), 1 << 20, NULL), 0);
	assert_int_equal(textstore_parse(&t, "text", map.data, map.len, NULL), 0);
	assert_int_equal(t->n, 3);
	expect_text(t, "", TEXT, 0xb2);
	/* All other bytes there now: not the module any more, whatever came. */
	expect_text(t, "a", MODULES, 0xa1);
	expect_text(t, "b", MODULES + 0x4000, 0xa1);
	textstore_destroy(t);
	file_map_close(&map);
}

static void test_no_text(void **state)
{
	struct profile_kernel k = {
		.symbols = kernel_symbols,
		.text = TEXT,
		.end = TEXT + 0x10000,
		.read_text = read_guest,
	};

	(void)state;
	readable = false;
	open_sink(false);
	assert_int_equal(sink->ops->kernel(sink, &k, NULL), 0);
	add_module("a", 0, 100);
	sample_at(TEXT + 4);
	sample_at(MODULES + 4);
	assert_int_equal(sink->ops->end(sink, NULL, NULL), 0);
	readable = true;
	assert_int_not_equal(access(in_root("p/text"), F_OK), 0);
	assert_int_equal(access(in_root("p/data"), F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tasks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_never_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_single_file_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
