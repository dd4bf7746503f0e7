/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The perf.data writer and reader: what goes in comes out, and the bytes are perf's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/perfdata_fixture.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/sample.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/side.h"
#include "profile/format/perfdata/write.h"
#include "profile/format/perfdata/sink.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* -- round trip ------------------------------------------------------------------------ */

static void round_trip(bool single)
{
	static const uint8_t id[20] = { 1, 2, 3 };
	static const uint64_t kernel_ip[] = { TEXT + 0x10, TEXT + 0x120, TEXT + 0x9005 };
	static const uint64_t mixed_ip[] = { TEXT + 0x10, TEXT + 0x120, 0x400010, 0x400020 };
	struct symtab *t = make_symbols();
	struct profile_totals totals = { .json = "{\"a\":1}" };
	struct profile_map map = {
		.pid = 1,
		.tid = 1,
		.addr = 0x400000,
		.len = 0x1000,
		.pgoff = 0x2000,
		.time_ns = 50,
		.path = "demo",
		.build_id = id,
		.elf = (const uint8_t *)"elf!",
		.elf_len = 4,
	};
	const char *path = in_root(single ? "file" : "dir");
	struct sink *s = make_sink(path, single);
	struct perfdata *p = NULL;
	struct perfdata_record r;
	struct perfdata_walk w;
	struct perfdata_frame f;
	struct err e = { 0 };

	assert_int_equal(begin(s, t), 0);
	assert_int_equal(s->ops->comm(s, &(struct profile_comm){ 1, 2, "vcpu1", false, 40 }, &e),
			 0);
	assert_int_equal(s->ops->map(s, &map, &e), 0);
	add_sample(s, 300, 1, mixed_ip, 4, 2);
	add_sample(s, 200, 0, kernel_ip, 3, 3);
	assert_int_equal(s->ops->lost(s, 1, 7, 250, &e), 0);
	assert_int_equal(s->ops->end(s, &totals, &e), 0);
	s->ops->destroy(s);

	assert_int_equal(perfdata_open(&p, path, &e), 0);
	assert_false(p->partial);
	assert_true(p->ours);
	assert_string_equal(p->event, "wall");
	assert_string_equal(p->hostname, "h");
	assert_string_equal(p->osrelease, "6.9.0");
	assert_int_equal(p->ncpus, 2);
	assert_int_equal(p->nsamples, 2);
	assert_int_equal(p->nlost, 7);
	assert_int_equal(p->first_ns, 200);
	assert_int_equal(p->last_ns, 300);
	assert_int_equal(p->json_len, 7);
	assert_memory_equal(p->json, "{\"a\":1}", 7);
	assert_int_equal(p->nbuild_ids, 2);
	assert_string_equal(p->build_ids[0].name, "demo");
	assert_memory_equal(p->build_ids[0].id, id, 20);
	assert_true(p->build_ids[1].kernel);
	assert_string_equal(p->build_ids[1].name, "[kernel.kallsyms]");

	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_MAP);
	assert_true(r.kernel);
	assert_int_equal(r.map.addr, TEXT);
	assert_int_equal(r.map.len, 0x10000);
	assert_string_equal(r.map.path, "[kernel.kallsyms]_text");
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_COMM);
	assert_int_equal(r.tid, 2);
	assert_string_equal(r.comm, "vcpu1");
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_MAP);
	assert_false(r.kernel);
	assert_int_equal(r.map.pgoff, 0x2000);
	assert_memory_equal(r.map.build_id, id, 20);

	/* Sorted, although written the other way round. */
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_SAMPLE);
	assert_int_equal(r.time_ns, 200);
	assert_int_equal(r.sample.ip, kernel_ip[0]);
	assert_int_equal(r.sample.period, 1000);
	perfdata_walk_begin(&w, &r);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(perfdata_walk_next(&w, &f));
		assert_true(f.kernel);
		/* Callers are inside their call. */
		assert_int_equal(f.ip, kernel_ip[i] - (i > 0));
	}
	assert_false(perfdata_walk_next(&w, &f));
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.kind, PERFDATA_LOST);
	assert_int_equal(r.cpu, 1);
	assert_true(perfdata_next(p, &r));
	assert_int_equal(r.cpu, 1);
	assert_int_equal(r.tid, 2);
	perfdata_walk_begin(&w, &r);
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(perfdata_walk_next(&w, &f));
		assert_int_equal(f.kernel, i < 2);
		assert_int_equal(f.innermost, i == 0);
		/* No call is in front of what the user's code was interrupted at. */
		assert_int_equal(f.interrupted, i == 0 || i == 2);
		assert_int_equal(f.ip, mixed_ip[i] - (i > 0));
	}
	assert_false(perfdata_walk_next(&w, &f));
	assert_false(perfdata_next(p, &r));
	perfdata_close(p);
	symtab_destroy(t);
}

static void test_round_trip(void **state)
{
	(void)state;
	round_trip(false);
	assert_true(exists(in_root("dir/kvmprof.json")));
	assert_true(exists(in_root("dir/kcore_dir/modules")));
	assert_true(exists(in_root("dir/dso/0102030000000000000000000000000000000000")));
	assert_true(
		exists(in_root("cache/.build-id/01/02030000000000000000000000000000000000/elf")));
	assert_false(exists(in_root("cache/[kernel.kallsyms]")));
	round_trip(true);
	assert_true(exists(in_root("cache/[kernel.kallsyms]")));
}

/* -- bytes ------------------------------------------------------------------------------ */

static void test_golden_header(void **state)
{
	/* tools/perf/util/header.h: struct perf_file_header; then ids, attr, and the first record. */
	static const uint8_t golden[] = {
		'P',
		'E',
		'R',
		'F',
		'I',
		'L',
		'E',
		'2',
		104,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		144,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		112,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		144,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		1,
		0,
		0,
		0,
		0,
		0,
		0,
		/* data: the kernel map (88), room for module maps (65528), a FINISHED_ROUND (8) */
		0x58,
		0,
		1,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		/* features 2-9, 11, 12, 21, 23 and 29 */
		0xfc,
		0x1b,
		0xa0,
		0x20,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		1,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		/* attr */
		1,
		0,
		0,
		0,
		128,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0xe8,
		3,
		0,
		0,
		0,
		0,
		0,
		0,
		0xa7,
		1,
		0,
		0,
		0,
		0,
		0,
		0,
		4,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0x27,
		0x84,
		3,
		0,
		0,
		0,
		0,
	};
	static const uint8_t kernel_map[] = {
		1, 0, 0, 0,    1,    0,	   88,	 0,    0xff, 0xff, 0xff, 0xff, 0,   0,	 0,   0,
		0, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff, 0,    0,	   1,	 0,    0,   0,	 0,   0,
		0, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff, '[',  'k',  'e',	 'r',  'n', 'e', 'l', '.',
	};
	struct sink *s = make_sink(in_root("golden"), true);
	struct profile_totals totals = { .json = "{}" };
	struct file_map m = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(begin(s, NULL), 0);
	assert_int_equal(s->ops->end(s, &totals, &e), 0);
	s->ops->destroy(s);
	assert_int_equal(file_map_open(&m, in_root("golden"), 1 << 20, &e), 0);
	assert_memory_equal(m.data, golden, sizeof(golden));
	assert_memory_equal(m.data + 256, kernel_map, sizeof(kernel_map));
	file_map_close(&m);
}

static void test_kallsyms(void **state)
{
	struct symtab *t = make_symbols();
	struct profile_kernel kernel = make_kernel(t);
	struct buf b, again;
	uint8_t id[20], id2[20];

	(void)state;
	buf_init(&b);
	buf_init(&again);
	perfdata_kallsyms(&b, &kernel);
	buf_u8(&b, 0);
	/* Functions only, all names of each, and a weak _text; of several the one that is shown is the last. */
	assert_string_equal((char *)b.data, "ffffffff81000000 W _text\n"
					    "ffffffff81000000 T first\n"
					    "ffffffff81000100 W second_alias_of_weak_kind\n"
					    "ffffffff81000100 t second\n"
					    "ffffffff81009000 T far\n");
	/* No build id: a stable one that depends on the symbols. */
	assert_int_equal(perfdata_kernel_id(id, &kernel, &b), 20);
	assert_int_equal(perfdata_kernel_id(id2, &kernel, &b), 20);
	assert_memory_equal(id, id2, 20);
	b.data[20] ^= 1;
	perfdata_kernel_id(id2, &kernel, &b);
	assert_memory_not_equal(id, id2, 20);
	kernel.symbols = NULL;
	perfdata_kallsyms(&again, &kernel);
	assert_int_equal(again.len, 0);
	buf_deinit(&b);
	buf_deinit(&again);
	symtab_destroy(t);
}

static void test_kcore(void **state)
{
	static const uint64_t ip[] = { TEXT + 0x9010 };
	struct symtab *t = make_symbols();
	struct profile_kernel kernel = make_kernel(t);
	struct file_map m = { 0 };
	struct err e = { 0 };
	Elf64_Phdr ph;
	FILE *f = fopen(in_root("kcore"), "w");

	(void)state;
	assert_non_null(f);
	assert_int_equal(perfdata_kcore(fileno(f), "kcore", &kernel, ip, 1, &e), 0);
	fclose(f);
	assert_int_equal(file_map_open(&m, in_root("kcore"), 1 << 20, &e), 0);
	assert_int_equal(m.len, 0x11000);
	memcpy(&ph, m.data + sizeof(Elf64_Ehdr), sizeof(ph));
	assert_int_equal(ph.p_vaddr, TEXT);
	assert_int_equal(ph.p_filesz, 0x10000);
	/* Only the page of the function that was sampled. */
	assert_int_equal(m.data[0x1000], 0);
	assert_int_equal(m.data[0x9fff], 0);
	assert_int_equal(m.data[0xa000], 0x90);
	assert_int_equal(m.data[0xb000], 0);
	file_map_close(&m);
	symtab_destroy(t);
}

/* -- what can go wrong --------------------------------------------------------------------- */

static void test_giving_up(void **state)
{
	struct sink_perfdata_options opt = { 0 };
	struct sink *s = NULL;
	struct err e = { 0 };
	char tmp[160];

	(void)state;
	/* destroy() without end() leaves nothing. */
	s = make_sink(in_root("gone"), false);
	snprintf(tmp, sizeof(tmp), "%s.tmp-%d", in_root("gone"), (int)getpid());
	assert_true(exists(tmp));
	assert_int_equal(begin(s, NULL), 0);
	s->ops->destroy(s);
	assert_false(exists(tmp));
	assert_false(exists(in_root("gone")));

	/* Before any guest: a place that cannot be written, and one that is not ours. */
	opt.path = in_root("missing/x");
	assert_int_equal(perfdata_sink_create(&s, &opt, &e), -ENOENT);
	assert_non_null(strstr(e.text, "missing/x"));
	err_clear(&e);
	assert_int_equal(mkdir(in_root("precious"), 0755), 0);
	opt.path = in_root("precious");
	assert_int_equal(perfdata_sink_create(&s, &opt, &e), -EEXIST);
	assert_true(exists(in_root("precious")));
}

static int open_bytes(struct perfdata **p, const char *name, const uint8_t *data, size_t len,
		      struct err *e)
{
	struct cursor c;

	cursor_init(&c, data, len);
	return perfdata_open_split(p, name, &c, NULL, 0, e);
}

static void test_damaged(void **state)
{
	static const uint64_t ip[] = { TEXT };
	struct sink *s = make_sink(in_root("whole"), true);
	struct file_map m = { 0 };
	struct perfdata *p = NULL;
	struct err e = { 0 };
	uint8_t *copy;

	(void)state;
	assert_int_equal(begin(s, NULL), 0);
	for (unsigned int i = 0; i < 100; i++)
		add_sample(s, 100 + i, 0, ip, 1, 1);
	assert_int_equal(s->ops->end(s, NULL, &e), 0);
	s->ops->destroy(s);
	assert_int_equal(file_map_open(&m, in_root("whole"), 1 << 20, &e), 0);
	/* Cut anywhere: a refusal with a reason, or a partial profile with one. */
	for (size_t len = 0; len < m.len; len++) {
		/* One record is as good as another, and this one is long. */
		if (len == 256 + 88 + 100)
			len += PERFDATA_EARLY - 200;
		copy = malloc(len + 1);
		assert_non_null(copy);
		memcpy(copy, m.data, len);
		err_clear(&e);
		if (open_bytes(&p, "cut", copy, len, &e) == 0) {
			assert_true(p->partial);
			assert_true(p->message[0]);
			assert_true(p->nsamples <= 100);
			perfdata_close(p);
		} else {
			assert_true(e.text[0]);
		}
		free(copy);
	}
	/* A bad record in the middle keeps what is before it. */
	copy = malloc(m.len);
	assert_non_null(copy);
	memcpy(copy, m.data, m.len);
	memset(copy + 256 + 88 + PERFDATA_EARLY + 72 * 50, 0xff, 72);
	err_clear(&e);
	assert_int_equal(open_bytes(&p, "bad", copy, m.len, &e), 0);
	assert_true(p->partial);
	assert_int_equal(p->nsamples, 50);
	perfdata_close(p);
	free(copy);
	file_map_close(&m);
}

/* Profiles up to version 0.2 have their totals in a feature, at which perf inject crashes. */
static void test_old_totals(void **state)
{
	struct profile_totals totals = { .json = "{\"a\":1}" };
	static const uint64_t ip[] = { TEXT };
	struct sink *s = make_sink(in_root("new"), true);
	cleanup_free uint8_t *old = NULL;
	struct file_map m = { 0 };
	struct perfdata *p = NULL;
	struct err e = { 0 };
	uint64_t data[2], bits[4], end, off;
	size_t n = 0;

	(void)state;
	assert_int_equal(begin(s, NULL), 0);
	add_sample(s, 100, 0, ip, 1, 1);
	assert_int_equal(s->ops->end(s, &totals, &e), 0);
	s->ops->destroy(s);
	assert_int_equal(file_map_open(&m, in_root("new"), 1 << 20, &e), 0);
	memcpy(data, m.data + PERFDATA_HDR_DATA, sizeof(data));
	memcpy(bits, m.data + PERFDATA_HDR_FEATURES, sizeof(bits));
	/* perf inject uses each bit as an index into a table of 33 entries or more. */
	assert_int_equal(bits[0] >> 33 | bits[1] | bits[2] | bits[3], 0);
	for (uint64_t b = bits[0]; b; b &= b - 1)
		n++;
	end = data[0] + data[1] + 16 * n;
	assert_memory_equal(m.data + end, PERFDATA_TOTALS_MAGIC, 8);
	/* One more entry in the index, for the same text. */
	old = malloc(m.len + 16);
	assert_non_null(old);
	memcpy(old, m.data, end);
	memcpy(old + end + 16, m.data + end, m.len - end);
	memset(old + end + 16, 0, 8);
	for (size_t i = 0; i < n; i++) {
		memcpy(&off, old + data[0] + data[1] + 16 * i, 8);
		off += 16;
		memcpy(old + data[0] + data[1] + 16 * i, &off, 8);
	}
	off = end + 16 + PERFDATA_TOTALS_HEADER;
	memcpy(old + end, &off, 8);
	off = 7;
	memcpy(old + end + 8, &off, 8);
	old[PERFDATA_HDR_FEATURES + PERFDATA_FEAT_OLD_TOTALS / 8] |= 0x80;
	assert_int_equal(open_bytes(&p, "old", old, m.len + 16, &e), 0);
	assert_false(p->partial);
	assert_int_equal(p->json_len, 7);
	assert_memory_equal(p->json, "{\"a\":1}", 7);
	perfdata_close(p);
	file_map_close(&m);
}

static void test_cache_names(void **state)
{
	static const uint8_t id[20] = { 0xab, 0xcd };
	struct err e = { 0 };
	struct stat st;

	(void)state;
	/* A guest's name for its program must not lead out of the cache. */
	assert_int_equal(buildid_cache_add(in_root("c"),
					   &(struct buildid_file_entry){ "../../evil", id, 20,
									 "elf", "x", 1 },
					   &e),
			 0);
	assert_false(exists(in_root("evil")));
	assert_true(exists(in_root("c/kvmprof/abcd000000000000000000000000000000000000/elf")));
	assert_int_equal(buildid_cache_add(in_root("c"),
					   &(struct buildid_file_entry){ "/bin/../sh", id, 20,
									 "elf", "x", 1 },
					   &e),
			 0);
	assert_int_equal(
		buildid_cache_add(in_root("c"),
				  &(struct buildid_file_entry){ "/bin/sh", id, 20, "elf", "x", 1 },
				  &e),
		0);
	assert_true(exists(in_root("c/bin/sh/abcd000000000000000000000000000000000000/elf")));
	assert_int_equal(
		lstat(in_root("c/.build-id/ab/cd000000000000000000000000000000000000"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* The kernel's unwinder may give nothing but markers; the sample is where its header says. */
static void test_markers_alone(void **state)
{
	static const uint64_t chain[] = { (uint64_t)-128, (uint64_t)-512 };
	struct perfdata_walk w;
	struct perfdata_frame f;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		const bool kernel = i & 1;
		struct perfdata_record r = {
			.kind = PERFDATA_SAMPLE,
			.kernel = kernel,
			.sample = { .ip = 0x1234, .chain = (const uint8_t *)chain, .nr = i / 2 }
		};

		perfdata_walk_begin(&w, &r);
		assert_true(perfdata_walk_next(&w, &f));
		assert_int_equal(f.ip, 0x1234);
		assert_int_equal(f.kernel, kernel);
		assert_true(f.innermost);
		assert_false(perfdata_walk_next(&w, &f));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_golden_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kallsyms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kcore, setup, teardown),
		cmocka_unit_test_setup_teardown(test_giving_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_totals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_names, setup, teardown),
		cmocka_unit_test(test_markers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
