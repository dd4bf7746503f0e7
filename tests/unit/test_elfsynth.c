/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A synthesized file reads back as the original, for us and for perf. */
#include "symbolizer/elfsynth.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/sample.h"
#include "profile/sink_perfdata.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LOAD_BIAS 0x7f1234000000ull

static const uint8_t id[20] = { 0xde, 0xad, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

struct original {
	struct file_map map;
	struct file_bytes bytes;
	struct userelf u;
	struct symtab *t;
};

static void original_open(struct original *o, const char *path)
{
	struct file_source src;
	struct err e = { 0 };

	if (file_map_open(&o->map, path, 1u << 30, &e) < 0)
		fail_msg("%s", e.text);
	o->bytes = (struct file_bytes){ o->map.data, o->map.len };
	src = file_source_of_bytes(&o->bytes);
	if (userelf_open(&o->u, path, &src, &e) < 0 || userelf_symbols(&o->u, &o->t, NULL, &e) < 0)
		fail_msg("%s", e.text);
}

static void original_close(struct original *o)
{
	symtab_destroy(o->t);
	file_map_close(&o->map);
}

static void write_ok(struct buf *b, const struct original *o)
{
	struct err e = { 0 };

	buf_init(b);
	if (elfsynth_write(b, &o->u, id, sizeof(id), o->t, &e) < 0)
		fail_msg("%s", e.text);
}

/* Every address of every function has the same name and offset. */
static void reads_back(void **state)
{
	struct original o;
	struct file_bytes bytes;
	struct file_source src;
	struct userelf u;
	struct userelf_names n;
	struct symtab *t;
	struct err e = { 0 };
	struct buf b;
	uint64_t off, want_off, va;

	(void)state;
	original_open(&o, "/proc/self/exe");
	write_ok(&b, &o);
	bytes = (struct file_bytes){ b.data, b.len };
	src = file_source_of_bytes(&bytes);
	if (userelf_open(&u, "synthesized", &src, &e) < 0 || userelf_symbols(&u, &t, &n, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(u.build_id_len, sizeof(id));
	assert_memory_equal(u.build_id, id, sizeof(id));
	assert_int_equal(u.type, o.u.type);
	assert_int_equal(u.nseg, o.u.nseg);
	assert_memory_equal(u.seg, o.u.seg, u.nseg * sizeof(u.seg[0]));
	assert_string_equal(n.why, "");
	assert_true(symtab_count(t) > 50);
	for (size_t i = 0; i < symtab_count(o.t); i++) {
		const struct symbol *s = symtab_at(o.t, i), *want, *got;

		for (uint64_t at = s->addr; at < s->addr + s->size; at += 1 + s->size / 5) {
			want = symtab_lookup(o.t, at, &want_off);
			got = symtab_lookup(t, at, &off);
			assert_non_null(got);
			assert_string_equal(got->name, want->name);
			assert_true(got->addr == want->addr && off == want_off);
		}
		assert_true(userelf_off_of(&o.u, s->addr, &off) && userelf_va_of(&u, off, &va) &&
			    va == s->addr);
	}
	symtab_destroy(t);
	buf_deinit(&b);
	original_close(&o);
}

static void refused(void **state)
{
	struct symtab *t = symtab_create();
	struct userelf u = { .name = "file", .type = ET_DYN, .nseg = 1 };
	struct err e = { 0 };
	struct buf b;

	(void)state;
	u.seg[0] = (struct userelf_segment){ .va = 0x1000, .mem_len = 4096, .flags = PF_R };
	buf_init(&b);
	symtab_add(t, 0x5000, 16, 'T', "elsewhere");
	symtab_add(t, 0x1000, 16, 'D', "data");
	symtab_freeze(t, NULL);
	assert_int_equal(elfsynth_write(&b, &u, id, 0, t, &e), -EINVAL);
	assert_non_null(strstr(e.text, "build id"));
	err_clear(&e);
	assert_int_equal(elfsynth_write(&b, &u, id, 20, t, &e), -EINVAL);
	assert_non_null(strstr(e.text, "executable"));
	err_clear(&e);
	u.seg[0].flags = PF_R | PF_X;
	assert_int_equal(elfsynth_write(&b, &u, id, 20, t, &e), -EINVAL);
	assert_non_null(strstr(e.text, "none of its 2"));
	buf_deinit(&b);
	symtab_destroy(t);
}

/* Up to max functions with a size and no alias, spread over the file; returns how many. */
static unsigned int pick(const struct original *o, const struct symbol **out, unsigned int max)
{
	size_t n = symtab_count(o->t), step = n / max + 1;
	unsigned int k = 0;

	for (size_t i = 1; i + 1 < n && k < max; i += step) {
		const struct symbol *s = symtab_at(o->t, i);

		if (s->size >= 16 &&
		    symtab_at(o->t, i - 1)->addr + symtab_at(o->t, i - 1)->size <= s->addr &&
		    symtab_at(o->t, i + 1)->addr >= s->addr + s->size)
			out[k++] = s;
	}
	return k;
}

static void write_profile(const struct original *o, const char *root, const struct buf *elf,
			  const struct symbol **s, unsigned int n)
{
	char path[128], cache[128];
	char *argv[] = { path, NULL };
	struct err e = { 0 }, note = { 0 };
	struct sink_perfdata_options opt = { .path = path, .buildid_dir = cache, .note = &note };
	struct profile_info info = { .event = "wall",
				     .freq_hz = 1000,
				     .vcpus = 1,
				     .hostname = "host",
				     .osrelease = "",
				     .argc = 1,
				     .argv = argv };
	struct profile_totals totals = { .json = "{}" };
	struct profile_map map = { .pid = 7,
				   .tid = 7,
				   .time_ns = 5000000000u,
				   .build_id = id,
				   .path = "/opt/guest/libguest.so.1",
				   .elf = elf->data,
				   .elf_len = elf->len };
	struct sink *sink;
	int ret;

	snprintf(path, sizeof(path), "%s/perf.data", root);
	snprintf(cache, sizeof(cache), "%s/.debug", root);
	ret = sink_perfdata_create(&sink, &opt, &e);
	ret = ret ? ret : sink->ops->begin(sink, &info, &e);
	ret = ret ? ret : sink->ops->comm(sink, 7, 7, "guestprog", 5000000000u, &e);
	for (unsigned int i = 0; i < o->u.nseg; i++) {
		const struct userelf_segment *g = &o->u.seg[i];

		if (!(g->flags & PF_X))
			continue;
		map.addr = LOAD_BIAS + (g->va & ~4095ull);
		map.pgoff = g->file_off & ~4095ull;
		map.len = (g->mem_len + (g->va & 4095) + 4095) & ~4095ull;
		ret = ret ? ret : sink->ops->map(sink, &map, &e);
	}
	for (unsigned int i = 0; i < n && ret == 0; i++) {
		static struct stack st;
		struct profile_sample p = { .pid = 7,
					    .tid = 7,
					    .period = 1000000,
					    .stack = &st,
					    .mode = SAMPLE_USER,
					    .time_ns = 5000001000u + i * 1000000ull };

		st.n = 1;
		st.end = STACK_END_ROOT;
		st.exact[0] = 1;
		st.ip[0] = LOAD_BIAS + s[i]->addr + s[i]->size / 2;
		ret = sink->ops->sample(sink, &p, &e);
	}
	ret = ret ? ret : sink->ops->end(sink, &totals, &e);
	if (ret || note.code)
		fail_msg("%s%s", e.text, note.text);
	sink->ops->destroy(sink);
}

/* Stock perf names every function out of the build-id cache, by the synthesized file. */
static void perf_reads(void **state)
{
	char root[] = "/tmp/kvmprof-elfsynth-XXXXXX", cmd[256], line[4096], sym[2048];
	const struct symbol *s[40];
	bool seen[40] = { false };
	unsigned int n, found = 0;
	struct original o;
	struct buf b;
	FILE *f;

	(void)state;
	if (system("perf --version >/dev/null 2>&1") != 0)
		skip();
	assert_non_null(mkdtemp(root));
	original_open(&o, "/proc/self/exe");
	n = pick(&o, s, ARRAY_SIZE(s));
	assert_true(n >= 10);
	write_ok(&b, &o);
	write_profile(&o, root, &b, s, n);
	snprintf(cmd, sizeof(cmd),
		 "HOME=%s perf report --stdio --sort dso,sym -g none -i %s/perf.data 2>%s/err",
		 root, root, root);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		double children, self;

		if (sscanf(line, " %lf%% %lf%% libguest.so.1 [.] %2047s", &children, &self, sym) !=
		    3)
			continue;
		for (unsigned int i = 0; i < n; i++)
			if (!strcmp(sym, s[i]->name)) {
				found += !seen[i];
				seen[i] = true;
			}
	}
	assert_int_equal(pclose(f), 0);
	print_message("perf names %u of %u functions\n", found, n);
	assert_int_equal(found, n);
	buf_deinit(&b);
	original_close(&o);
	file_remove_tree(root, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back),
		cmocka_unit_test(refused),
		cmocka_unit_test(perf_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
