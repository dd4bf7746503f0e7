/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A synthesized file reads back as the original, for us and for perf. */
#include "symbolizer/program/elfsynth.h"

#include "base/cleanup.h"
#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "tests/unit/user_profile.h"
#include "tests/unit/skip.h"

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

static const uint8_t id[20] = { 0xde, 0xad, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

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
	src = filepiece_source_of_bytes(&bytes);
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
		SKIP("perf is not installed");
	assert_non_null(mkdtemp(root));
	original_open(&o, "/proc/self/exe");
	n = pick(&o, s, ARRAY_SIZE(s));
	assert_true(n >= 10);
	write_ok(&b, &o);
	write_profile(&o, root, b.data, b.len, id, s, n);
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

/* Our own reader finds every sample's function in the synthesized file, loaded anywhere. */
static void names_read(void **state)
{
	char root[] = "/tmp/kvmprof-elfsynth-XXXXXX", path[64], cache[64];
	struct perfdata_record r;
	const struct symbol *s[40];
	unsigned int n, found = 0;
	struct perfdata *p = NULL;
	struct names *names = NULL;
	struct original o;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	assert_non_null(mkdtemp(root));
	original_open(&o, "/proc/self/exe");
	assert_int_equal(o.u.type, ET_DYN);
	n = pick(&o, s, ARRAY_SIZE(s));
	assert_true(n >= 10);
	write_ok(&b, &o);
	write_profile(&o, root, b.data, b.len, id, s, n);
	snprintf(path, sizeof(path), "%s/perf.data", root);
	snprintf(cache, sizeof(cache), "%s/.debug", root);
	if (perfdata_open(&p, path, &e) < 0 || names_create(&names, p, cache, &e) < 0)
		fail_msg("%s", e.text);
	while (perfdata_next(p, &r)) {
		struct name name;

		assert_int_equal(names_record(names, &r, &e), 0);
		if (r.kind != PERFDATA_SAMPLE)
			continue;
		names_lookup(names, r.pid, NAMES_PROGRAM, r.sample.ip, &name);
		assert_non_null(name.symbol);
		assert_true(found < n);
		assert_string_equal(name.symbol->name, s[found]->name);
		assert_int_equal(name.symbol->addr, s[found]->addr);
		assert_int_equal(name.off, s[found]->size / 2);
		found++;
	}
	assert_int_equal(found, n);
	names_destroy(names);
	perfdata_close(p);
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
		cmocka_unit_test(names_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
