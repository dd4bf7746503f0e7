/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code made at run time: what the sink is told of its regions, and of their names at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "profile/record/guest/jit.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CODE 0x7f3836000000u
#define MM1 0xffff888000111000u
#define MM2 0xffff888000222000u

/* -- a sink that keeps what it is told ---------------------------------------------------- */

struct told_map {
	struct profile_map map;
	char path[64];
	uint8_t id[20];
};

struct told_dso {
	char path[64];
	uint8_t id[20];
	uint8_t *elf;
	size_t elf_len;
};

static struct told_map map[16];
static struct told_dso dso[16];
static unsigned int nmaps, ndsos;
static int dso_result;

static int take_map(struct sink *s, const struct profile_map *m, struct err *e)
{
	struct told_map *t = &map[nmaps++];

	(void)s;
	(void)e;
	assert_true(nmaps <= 16);
	assert_null(m->elf);
	t->map = *m;
	snprintf(t->path, sizeof(t->path), "%s", m->path);
	memcpy(t->id, m->build_id, 20);
	return 0;
}

static int take_dso(struct sink *s, const struct profile_dso *d, struct err *e)
{
	struct told_dso *t = &dso[ndsos++];

	(void)s;
	assert_true(ndsos <= 16);
	snprintf(t->path, sizeof(t->path), "%s", d->path);
	memcpy(t->id, d->build_id, 20);
	t->elf = malloc(d->elf_len);
	assert_non_null(t->elf);
	memcpy(t->elf, d->elf, d->elf_len);
	t->elf_len = d->elf_len;
	return dso_result ? err_set(e, -dso_result, "no room") : 0;
}

static const struct sink_ops ops = { .map = take_map, .dso = take_dso };
static struct sink sink = { .ops = &ops };

static char root[64];
static struct userfile_finder finder;
static struct guest_jit *jit;

static int setup(void **state)
{
	struct userfile_options opt = { .guest_root = root, .system_debug = "", .cache = "" };
	char tmp[80];
	struct err e = { 0 };

	(void)state;
	nmaps = ndsos = 0;
	dso_result = 0;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(tmp, sizeof(tmp), "%s/tmp", root);
	if (file_mkdirs(tmp, &e) < 0 || userfile_finder_init(&finder, &opt, &e) < 0)
		return -1;
	return guest_jit_create(&jit, &finder, &sink, &e);
}

static int teardown(void **state)
{
	(void)state;
	guest_jit_destroy(jit);
	userfile_finder_deinit(&finder);
	for (unsigned int i = 0; i < ndsos; i++)
		free(dso[i].elf);
	return file_remove_tree(root, NULL);
}

static void write_map(uint32_t pid, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tmp/perf-%u.map", root, pid);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void see(uint32_t pid, uint64_t mm, uint64_t addr, uint64_t len)
{
	static const uint8_t zero[20];
	struct profile_map m = { .pid = pid,
				 .tid = pid,
				 .addr = addr,
				 .len = len,
				 .pgoff = 0x1234000,
				 .time_ns = 77,
				 .prot = 7,
				 .path = "//anon",
				 .build_id = zero };

	assert_int_equal(guest_jit_map(jit, mm, &m, NULL), 0);
}

/* The name that a profile's reader finds for an address of a mapping; "-": none. */
static const char *name_at(unsigned int d, uint64_t addr)
{
	static char name[128];
	struct file_bytes bytes = { dso[d].elf, dso[d].elf_len };
	struct file_source src = filepiece_source_of_bytes(&bytes);
	const struct symbol *s = NULL;
	struct symtab *t = NULL;
	struct userelf u;
	struct err e = { 0 };
	uint64_t va;

	assert_true(d < ndsos);
	if (userelf_open(&u, dso[d].path, &src, &e) < 0 || userelf_symbols(&u, &t, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(u.build_id_len, 20);
	assert_memory_equal(u.build_id, dso[d].id, 20);
	/* Mappings have their address as offset. */
	if (userelf_va_of(&u, addr, &va))
		s = symtab_lookup(t, va, NULL);
	snprintf(name, sizeof(name), "%s", s ? s->name : "-");
	symtab_destroy(t);
	return name;
}

/* -- tests -------------------------------------------------------------------------------- */

static void test_regions(void **state)
{
	const struct guest_jit_stats *st = guest_jit_stats(jit);

	(void)state;
	see(22, MM1, CODE, 0x1000);
	see(22, MM1, CODE + 0x10000, 0x1000);
	see(23, MM2, CODE, 0x1000);
	assert_int_equal(nmaps, 3);
	assert_string_equal(map[0].path, "[jit:22]");
	assert_string_equal(map[2].path, "[jit:23]");
	/* One file for a process, none for two. */
	assert_memory_equal(map[0].id, map[1].id, 20);
	assert_memory_not_equal(map[0].id, map[2].id, 20);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(map[i].map.pgoff, map[i].map.addr);
		assert_int_equal(map[i].map.time_ns, 77);
		assert_int_equal(map[i].map.prot, 7);
	}
	assert_int_equal(map[1].map.addr, CODE + 0x10000);
	assert_int_equal(map[1].map.len, 0x1000);
	/* Written while the program runs: 22 has a map, 23 has none. */
	write_map(22, "7f3836000000 10 first\n"
		      "7f3836010ff0 100 hangs over the end\n"
		      "7f3836001000 10 in no region\n"
		      "7f3836000100 100 old\n"
		      "7f3836000140 20 compiled anew\n");
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 1);
	assert_string_equal(dso[0].path, "[jit:22]");
	assert_memory_equal(dso[0].id, map[0].id, 20);
	assert_string_equal(name_at(0, CODE + 0xf), "first");
	assert_string_equal(name_at(0, CODE + 0x10), "-");
	assert_string_equal(name_at(0, CODE + 0x13f), "old");
	assert_string_equal(name_at(0, CODE + 0x140), "compiled anew [or older code]");
	assert_string_equal(name_at(0, CODE + 0x160), "old");
	assert_string_equal(name_at(0, CODE + 0x1000), "-");
	assert_string_equal(name_at(0, CODE + 0x10fff), "hangs over the end");
	assert_string_equal(name_at(0, CODE + 0x11000), "-");
	assert_int_equal(st->processes, 2);
	assert_int_equal(st->regions, 3);
	assert_int_equal(st->named, 2);
	assert_int_equal(st->names, 5);
	assert_int_equal(st->doubtful, 1);
	assert_int_equal(st->without_map, 1);
	assert_non_null(strstr(st->why, "/tmp/perf-23.map"));
	/* Nothing is told twice. */
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 1);
	assert_int_equal(st->without_map, 1);
}

static void test_growth(void **state)
{
	const struct guest_jit_stats *st = guest_jit_stats(jit);

	(void)state;
	see(5, MM1, CODE, 0x1000);
	see(5, MM1, CODE + 0x2000, 0x1000);
	assert_int_equal(st->regions, 2);
	/* It grows over its neighbour, downwards, and another one appears elsewhere. */
	see(5, MM1, CODE, 0x3000);
	assert_int_equal(st->regions, 1);
	see(5, MM1, CODE - 0x1000, 0x2000);
	see(5, MM1, CODE - 0x100000, 0x1000);
	assert_int_equal(st->regions, 2);
	assert_int_equal(nmaps, 5);
	assert_int_equal(map[2].map.len, 0x3000);
	for (unsigned int i = 0; i < nmaps; i++) {
		assert_memory_equal(map[i].id, map[0].id, 20);
		assert_int_equal(map[i].map.pgoff, map[i].map.addr);
	}
	write_map(5, "7f3836002800 10 late\n7f3835fff010 10 low\n7f3835f00000 1000 other\n");
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 1);
	assert_string_equal(name_at(0, CODE + 0x2800), "late");
	assert_string_equal(name_at(0, CODE - 0xff0), "low");
	assert_string_equal(name_at(0, CODE - 0x100000), "other");
	assert_int_equal(st->named, 2);
	assert_int_equal(st->without_map, 0);
	assert_string_equal(st->why, "");
}

/* A pid that comes again has another program, and another map under the same name. */
static void test_pid_again(void **state)
{
	(void)state;
	see(7, MM1, CODE, 0x1000);
	write_map(7, "7f3836000000 1000 of the first\n");
	see(7, MM2, CODE, 0x1000);
	/* The first one's names were taken before the second wrote its own. */
	assert_int_equal(ndsos, 1);
	write_map(7, "7f3836000000 1000 of the second\n");
	see(7, MM2, CODE + 0x4000, 0x1000);
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 2);
	assert_string_equal(map[0].path, "[jit:7]");
	assert_string_equal(map[1].path, "[jit:7#2]");
	assert_string_equal(map[2].path, "[jit:7#2]");
	assert_memory_not_equal(map[0].id, map[1].id, 20);
	assert_string_equal(dso[0].path, "[jit:7]");
	assert_string_equal(dso[1].path, "[jit:7#2]");
	assert_memory_equal(dso[1].id, map[1].id, 20);
	assert_string_equal(name_at(0, CODE), "of the first");
	assert_string_equal(name_at(1, CODE), "of the second");
}

/* A map that was there before the run is of another process, though its addresses may be the same. */
static void test_old_map(void **state)
{
	struct stat st;
	char path[128];

	(void)state;
	write_map(8, "7f3836000000 1000 of an earlier one\n");
	snprintf(path, sizeof(path), "%s/tmp/perf-8.map", root);
	assert_int_equal(stat(path, &st), 0);
	finder.opt.not_before = st.st_mtime + 1;
	see(8, MM1, CODE, 0x1000);
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 0);
	assert_non_null(strstr(guest_jit_stats(jit)->why, "older than this run"));
	/* At that second it is this run's. */
	finder.opt.not_before = st.st_mtime;
	write_map(9, "7f3836000000 1000 mine\n");
	see(9, MM1, CODE, 0x1000);
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 1);
	assert_string_equal(name_at(0, CODE), "mine");
}

/* One of another process of that number: nothing in it is of this one's code. */
static void test_map_of_another(void **state)
{
	(void)state;
	write_map(9, "400000 10 elsewhere\n");
	see(9, MM1, CODE, 0x1000);
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 0);
	assert_int_equal(guest_jit_stats(jit)->without_map, 1);
	assert_non_null(strstr(guest_jit_stats(jit)->why, "of another process"));
}

/* Neither a map of the host nor one that says nothing gives names. */
static void test_without_names(void **state)
{
	const struct guest_jit_stats *st;
	struct guest_jit *alone = NULL;
	char host[80], guest[80];

	(void)state;
	see(8, MM1, CODE, 0x1000);
	write_map(8, "this is no map\n");
	see(9, MM1, CODE, 0x1000);
	write_map(9, "400000 10 elsewhere\n");
	/* A link that would lead to the host's /tmp leads to the guest's. */
	see(10, MM1, CODE, 0x1000);
	snprintf(host, sizeof(host), "%s.map", root);
	write_map(10, "");
	snprintf(guest, sizeof(guest), "%s/tmp/perf-10.map", root);
	assert_int_equal(unlink(guest), 0);
	assert_int_equal(symlink(host, guest), 0);
	{
		FILE *f = fopen(host, "w");

		assert_non_null(f);
		fputs("7f3836000000 1000 of the host\n", f);
		fclose(f);
	}
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	unlink(host);
	assert_int_equal(ndsos, 0);
	st = guest_jit_stats(jit);
	assert_int_equal(st->regions, 3);
	assert_int_equal(st->named, 0);
	assert_int_equal(st->without_map, 3);
	assert_non_null(strstr(st->why, "perf-8.map"));

	/* Without a guest's root nothing is looked at. */
	assert_int_equal(guest_jit_create(&alone, NULL, &sink, NULL), 0);
	guest_jit_destroy(jit);
	jit = alone;
	see(9, MM1, CODE, 0x1000);
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(ndsos, 0);
	assert_int_equal(guest_jit_stats(jit)->without_map, 1);
	assert_non_null(strstr(guest_jit_stats(jit)->why, "--guest-root"));
	/* Another run: another id, as perf's cache outlives both. */
	assert_memory_not_equal(map[1].id, map[3].id, 20);
}

static void test_caps(void **state)
{
	static char name[20000];
	struct err e = { 0 };
	char text[20100];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	snprintf(text, sizeof(text), "7f3836000000 10 %s\n", name);
	write_map(3, text);
	see(3, MM1, CODE, 0x1000);
	/* The widest span that a user process can have. */
	see(3, MM1, 0x1000, 0x1000);
	see(3, MM1, 0x7ffffffff000, 0x1000);
	dso_result = -ENOSPC;
	assert_int_equal(guest_jit_finish(jit, &e), -ENOSPC);
	assert_string_equal(e.text, "no room");
	assert_int_equal(ndsos, 1);
	assert_memory_equal(name_at(0, CODE), "nnnnnnnnnn", 10);
	assert_string_equal(name_at(0, 0x1000), "-");
}

/* More than is kept: it is mapped all the same, and stays without names. */
static void test_many_regions(void **state)
{
	const struct guest_jit_stats *st = guest_jit_stats(jit);

	(void)state;
	for (unsigned int i = 0; i < GUEST_JIT_MAX_OF_ONE + 5; i++) {
		nmaps = 0;
		see(4, MM1, CODE + i * 0x2000ull, 0x1000);
		assert_int_equal(nmaps, 1);
	}
	assert_int_equal(st->regions, GUEST_JIT_MAX_OF_ONE + 5);
	assert_int_equal(st->beyond, 5);
	write_map(4, "7f3836000000 10000000 all\n");
	assert_int_equal(guest_jit_finish(jit, NULL), 0);
	assert_int_equal(st->named, GUEST_JIT_MAX_OF_ONE);
	assert_int_equal(ndsos, 1);
	assert_string_equal(name_at(0, CODE + (GUEST_JIT_MAX_OF_ONE - 1) * 0x2000ull), "all");
	assert_string_equal(name_at(0, CODE + GUEST_JIT_MAX_OF_ONE * 0x2000ull), "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_map_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_caps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_regions, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
