/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles of a guest that ran several kernels: each frame has the names of the kernel of its time. */
#include "tests/unit/profile_fixture.h"

#include "profile/format/names/reader.h"
#include "profile/format/names/srcline.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/sink_epochs.h"
#include "symbolizer/core/kimage.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fx f;
static char cache[128];
static struct sink_perfdata_options options;
static struct symtab *second, *third;

static struct sink *wrap(struct sink *to)
{
	struct sink *s = NULL;

	assert_int_equal(sink_epochs_create(&s, to, &options, NULL), 0);
	return s;
}

/* Other functions at the addresses of the first kernel. */
static struct symtab *other_kernel(const char *a, const char *b)
{
	struct symtab *t = symtab_create();

	assert_int_equal(symtab_add(t, fx_k(0, 0), 0x180, 'T', a), 0);
	assert_int_equal(symtab_add(t, fx_k(0, 0x180), 0x180, 'T', b), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	return t;
}

static int setup(void **state)
{
	(void)state;
	if (fx_setup(&f))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache", f.root);
	options = (struct sink_perfdata_options){ .buildid_dir = cache };
	f.wrap = wrap;
	second = other_kernel("second_a", "second_b");
	third = other_kernel("third_a", "third_b");
	return 0;
}

static int teardown(void **state)
{
	int ret;

	(void)state;
	ret = fx_teardown(&f);
	symtab_destroy(second);
	symtab_destroy(third);
	return ret;
}

static void next_kernel(const struct symtab *symbols, const char *release, const char *comm,
			uint64_t after_ns)
{
	const struct profile_kernel k = {
		.symbols = symbols, .text = FX_TEXT, .end = FX_TEXT + 0x10000, .osrelease = release
	};
	const struct profile_comm c = { 7, 7, comm, false, FX_T0 + after_ns };

	assert_int_equal(f.sink->ops->kernel(f.sink, &k, NULL), 0);
	if (*comm)
		assert_int_equal(f.sink->ops->comm(f.sink, &c, NULL), 0);
}

/* Addresses that have a name in each kernel, or in one. */
static void add(uint64_t after_ns)
{
	fx_add(&f, &(struct fx_sample){
			   .after_ns = after_ns,
			   .weight = 1,
			   .pid = 7,
			   .n = 4,
			   .ip = { fx_k(1, 0x10), fx_k(2, 0x20), fx_m(0x50), fx_u(0, 0x10) } });
}

static void three_kernels(const char *name, bool single)
{
	fx_begin(&f, name, single);
	add(1000);
	next_kernel(second, "6.12.0-two", "late", 2000);
	add(3000);
	add(4000);
	next_kernel(third, "6.13.0-three", "", 5000);
	add(6000);
}

struct expected {
	const char *comm, *dso, *name[4];
};

static const struct expected by_kernel[] = {
	{ "prog", "[kernel.kallsyms]", { "middle", "inner", "mod_write", "main" } },
	{ "late", "[kernel.kallsyms]", { "second_a", "second_b", NULL, NULL } },
	{ "late", "[kernel.kallsyms]", { "second_a", "second_b", NULL, NULL } },
	{ ":7", "[kernel.kallsyms]", { "third_a", "third_b", NULL, NULL } },
};

struct looked_up {
	struct names_view view;
	struct perfdata_record r;
	char comm[32];
};

static void check_names(struct reader *in, const struct looked_up *x, const struct expected *want)
{
	struct perfdata_walk walk;
	struct perfdata_frame frame;
	unsigned int i = 0;

	assert_string_equal(x->comm, want->comm);
	perfdata_walk_begin(&walk, &x->r);
	while (perfdata_walk_next(&walk, &frame)) {
		struct name name;

		names_lookup_frame(in->names, x->view, &frame, true, &name);
		if (!want->name[i])
			assert_null(name.symbol);
		else
			assert_string_equal(name.symbol ? name.symbol->name : "none",
					    want->name[i]);
		if (i < 2)
			assert_string_equal(name.dso, want->dso);
		i++;
	}
	assert_int_equal(i, 4);
}

/* Names are asked for at each sample, or, as most commands do, after the last one. */
static void expect(const char *name, uint32_t epoch, const struct expected *want, unsigned int n,
		   bool late)
{
	const struct reader_options o = { .input = fx_path(&f, name),
					  .epoch = epoch,
					  .buildid_dir = cache };
	struct looked_up x[8];
	struct reader in = { 0 };
	struct err e = { 0 };
	unsigned int got = 0;

	if (reader_open(&in, &o, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(in.p->nsamples, n);
	assert_string_equal(in.p->message, "");
	while (reader_next(&in, &x[got].r, &e) > 0) {
		assert_true(got < n);
		x[got].view = names_view(in.names, x[got].r.pid);
		snprintf(x[got].comm, sizeof(x[got].comm), "%s",
			 tasks_text(in.tasks, tasks_name(in.tasks, x[got].r.tid)));
		if (!late)
			check_names(&in, &x[got], &want[got]);
		got++;
	}
	assert_int_equal(got, n);
	for (unsigned int i = 0; late && i < n; i++)
		check_names(&in, &x[i], &want[i]);
	reader_close(&in);
}

static void names_of_their_time(void **state)
{
	(void)state;
	three_kernels("three", false);
	fx_end(&f);
	expect("three", 0, by_kernel, 4, false);
	expect("three", 0, by_kernel, 4, true);
}

static void one_kernel(void **state)
{
	struct reader_options none = { .epoch = 4 };
	struct reader in = { 0 };
	struct err e = { 0 };

	(void)state;
	three_kernels("three", false);
	fx_end(&f);
	expect("three", 1, by_kernel, 1, true);
	expect("three", 2, by_kernel + 1, 2, true);
	expect("three", 3, by_kernel + 3, 1, true);
	/* Each is a profile. */
	expect("three/epoch-2", 0, by_kernel + 1, 2, true);
	none.input = fx_path(&f, "three");
	assert_int_equal(reader_open(&in, &none, &e), -ENOENT);
	assert_non_null(strstr(e.text, "the guest had no kernel 4: `kvmprof report` lists"));
	/* The third one's own profile has no other. */
	none.input = fx_path(&f, "three/epoch-3");
	e = (struct err){ 0 };
	assert_int_equal(reader_open(&in, &none, &e), -ENOENT);
	assert_non_null(strstr(e.text, "the profile has one kernel"));
}

static void facts(void **state)
{
	const struct perfdata *at;
	struct perfdata *p = NULL;

	(void)state;
	three_kernels("three", false);
	fx_end(&f);
	assert_int_equal(perfdata_open(&p, fx_path(&f, "three"), NULL), 0);
	assert_string_equal(p->osrelease, "6.1.0-fx");
	assert_int_equal(p->first_ns, FX_T0 + 1000);
	assert_int_equal(p->last_ns, FX_T0 + 6000);
	assert_int_equal(p->own.samples, 1);
	at = p->next_epoch;
	assert_int_equal(at->epoch, 2);
	assert_int_equal(at->own.samples, 2);
	assert_int_equal(at->own.first_ns, FX_T0 + 3000);
	assert_string_equal(at->osrelease, "6.12.0-two");
	at = at->next_epoch;
	assert_int_equal(at->epoch, 3);
	assert_string_equal(at->osrelease, "6.13.0-three");
	assert_null(at->next_epoch);
	perfdata_close(p);
}

/* A copy while it is written has the kernels so far. */
static void copy(void **state)
{
	const struct profile_totals t = { .json = "{}" };

	(void)state;
	three_kernels("whole", false);
	assert_int_equal(sink_snapshot(f.sink, fx_path(&f, "copy"), &t, NULL), 0);
	add(7000);
	fx_end(&f);
	expect("copy", 0, by_kernel, 4, true);
	expect("copy", 3, by_kernel + 3, 1, true);
}

#define SLIDE 0x2400000u

extern const uint8_t demo_elf[], demo_elf_end[];

/* Returns source lines out of the demo's file, and the address of one of its functions in the first kernel. */
static struct srcline *lines_of_demo(uint64_t *addr)
{
	const size_t len = (size_t)(demo_elf_end - demo_elf);
	const char *path = fx_path(&f, "demo");
	const struct debuginfo_places places = { .given = path, .cache_dir = "/nowhere" };
	struct srcline *s = NULL;
	struct symtab *t = NULL;
	struct kimage demo;
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(demo_elf, 1, len, out), len);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(kimage_parse(&demo, "demo", demo_elf, len, NULL), 0);
	assert_int_equal(kimage_symbols(&demo, &t, NULL), 0);
	*addr = symtab_find(t, "left_leaf")->addr - demo.text + FX_TEXT;
	symtab_destroy(t);
	assert_int_equal(srcline_create(&s, &places, NULL), 0);
	srcline_set_id(s, demo.build_id, demo.build_id_len);
	return s;
}

/* Source lines are those of the first kernel, also after a later one lay elsewhere. */
static void lines(void **state)
{
	const struct reader_options o = { .input = fx_path(&f, "lines"), .buildid_dir = cache };
	const struct profile_kernel moved = { .symbols = second,
					      .text = FX_TEXT + SLIDE,
					      .end = FX_TEXT + SLIDE + 0x10000 };
	const bool other[] = { false, true, false, true };
	struct perfdata_record r;
	struct reader in = { 0 };
	struct name name;
	uint64_t addr, at;
	unsigned int n = 0;

	(void)state;
	fx_begin(&f, "lines", false);
	add(1000);
	next_kernel(third, "6.13.0-three", "", 2000);
	add(3000);
	next_kernel(f.kernel, "6.1.0-fx", "", 4000);
	add(5000);
	assert_int_equal(f.sink->ops->kernel(f.sink, &moved, NULL), 0);
	add(6000);
	fx_end(&f);
	assert_int_equal(reader_open(&in, &o, NULL), 0);
	in.lines = lines_of_demo(&addr);
	while (reader_next(&in, &r, NULL) > 0) {
		at = r.sample.ip;
		names_lookup_in(in.names, names_view(in.names, r.pid), NAMES_KERNEL, at, &name);
		assert_int_equal(names_to_first_kernel(&name, &at), !other[n++]);
		assert_int_equal(at, r.sample.ip);
	}
	assert_int_equal(n, 4);
	assert_true(srcline_of(in.lines, addr).n > 0);
	assert_int_equal(srcline_of(in.lines, addr + SLIDE).n, 0);
	srcline_destroy(in.lines);
	reader_close(&in);
}

/* A run that is killed has lost nothing of the kernels before, and half a second of the present one. */
static void killed(void **state)
{
	struct perfdata *p = NULL;
	char path[200];

	(void)state;
	three_kernels("killed", false);
	snprintf(path, sizeof(path), "%s.tmp-%d", fx_path(&f, "killed"), (int)getpid());
	assert_int_equal(perfdata_open(&p, path, NULL), 0);
	assert_int_equal(p->own.samples, 1);
	assert_int_equal(p->next_epoch->own.samples, 2);
	assert_int_equal(p->next_epoch->next_epoch->own.samples, 0);
	perfdata_close(p);
	fx_end(&f);
}

/* One file has room for one kernel: nothing of the others is in it, and that is counted. */
static void single_file(void **state)
{
	struct perfdata *p = NULL;

	(void)state;
	three_kernels("single", true);
	fx_end(&f);
	expect("single", 0, by_kernel, 1, true);
	assert_int_equal(perfdata_open(&p, fx_path(&f, "single"), NULL), 0);
	assert_int_equal(p->nlost, 3);
	perfdata_close(p);
}

/* Damage to a later kernel's profile costs its samples. Those of the first one are read. */
static void damaged(void **state)
{
	struct perfdata *p = NULL;
	char path[160];
	FILE *out;

	(void)state;
	three_kernels("three", false);
	fx_end(&f);
	snprintf(path, sizeof(path), "%s/epoch-2/data", fx_path(&f, "three"));
	out = fopen(path, "w");
	assert_non_null(out);
	fputs("no profile", out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(perfdata_open(&p, fx_path(&f, "three"), NULL), 0);
	assert_true(p->partial);
	assert_non_null(strstr(p->message, "kernel 2: "));
	assert_int_equal(p->nsamples, 1);
	perfdata_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_of_their_time, setup, teardown),
		cmocka_unit_test_setup_teardown(one_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(facts, setup, teardown),
		cmocka_unit_test_setup_teardown(copy, setup, teardown),
		cmocka_unit_test_setup_teardown(lines, setup, teardown),
		cmocka_unit_test_setup_teardown(killed, setup, teardown),
		cmocka_unit_test_setup_teardown(single_file, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
