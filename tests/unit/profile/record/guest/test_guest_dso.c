/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs in a guest's page cache, and what the host may have of them. */
#include "profile/record/guest/dso.h"

#include "base/cleanup.h"
#include "tests/unit/guest_fixture.h"

#include <limits.h>
#include <setjmp.h>
#include <unistd.h>

#include <cmocka.h>

#define NONE UINT_MAX

static struct lm g;
static struct memory mem;
static struct linux_mm_layout mm_layout;
static struct linux_file_layout file_layout;
static struct guest_dsos *dsos;
static struct userfile_finder finder;
static struct buf elf;
static uint64_t mnt, root;
static char top[64]; /* on the host: root is the guest's "/", debug has debug files */

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void put_host(const char *dir, const char *name, const struct buf *b)
{
	FILE *f;

	assert_int_equal(file_mkdirs(at(dir), NULL), 0);
	f = fopen(at(name), "w");
	assert_non_null(f);
	assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
	fclose(f);
}

static void create(bool with_host)
{
	static char guest_root[80], debug[80];
	const struct userfile_options opt = {
		.guest_root = guest_root,
		.debuginfo = { debug },
		.system_debug = "",
		.cache = "",
	};

	guest_dsos_destroy(dsos);
	if (with_host) {
		snprintf(guest_root, sizeof(guest_root), "%s/root", top);
		snprintf(debug, sizeof(debug), "%s/debug", top);
		assert_int_equal(userfile_finder_init(&finder, &opt, NULL), 0);
	}
	assert_int_equal(guest_dsos_create(&dsos, &mm_layout, &file_layout, &mem,
					   with_host ? &finder : NULL, NULL),
			 0);
}

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	memset(&finder, 0, sizeof(finder));
	finder.root_fd = -1;
	mem = lm_memory(&g);
	lm_layout(&mm_layout, true);
	gf_file_layout(&file_layout);
	snprintf(top, sizeof(top), "/tmp/kvmprof-dso-XXXXXX");
	if (!mkdtemp(top) || file_mkdirs(at("root"), NULL) || file_mkdirs(at("debug"), NULL))
		return -1;
	root = lm_dentry(&g, 0, "/");
	mnt = lm_mount(&g, root, 0, 0);
	buf_init(&elf);
	create(false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	guest_dsos_destroy(dsos);
	dsos = NULL;
	if (finder.root_fd >= 0)
		userfile_finder_deinit(&finder);
	buf_deinit(&elf);
	return file_remove_tree(top, NULL);
}

static struct guest_dso *dso_of(uint64_t file, const char *path)
{
	return guest_dso_of_file(dsos, file, path);
}

static uint64_t library(uint8_t id, uint64_t ino, unsigned int hole)
{
	buf_deinit(&elf);
	gf_elf(&elf, id, "fn", 300);
	return gf_file(&g, mnt, root, ino, elf.data, elf.len, hole);
}

/*
 * Checks that the names stored in a profile are the same for these addresses, under the id that the
 * map has.
 */
static void expect_names(const struct guest_dso *o, const char *first)
{
	struct file_bytes b = { o->elf, o->elf_len };
	struct file_source src = filepiece_source_of_bytes(&b);
	struct symtab *t = NULL;
	struct userelf u;
	struct err e = { 0 };
	uint64_t off;

	if (userelf_open(&u, "carried", &src, &e) < 0 || userelf_symbols(&u, &t, NULL, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(u.build_id_len, 20);
	assert_memory_equal(u.build_id, o->build_id, 20);
	assert_string_equal(symtab_lookup(t, GF_TEXT_VA + 5, &off)->name, first);
	assert_int_equal(off, 5);
	symtab_destroy(t);
}

static void expect_stats(uint64_t files, uint64_t memory, uint64_t host, uint64_t debug)
{
	const struct guest_dso_stats *s = guest_dsos_stats(dsos);

	assert_int_equal(s->files, files);
	assert_int_equal(s->from_memory, memory);
	assert_int_equal(s->from_root, host);
	assert_int_equal(s->from_debug, debug);
	assert_int_equal(s->named, memory + host + debug);
	assert_int_equal(s->unnamed, files - s->named);
}

/* -- from the page cache ------------------------------------------------------------- */

static void whole_file(void **state)
{
	uint64_t file = library(0xaa, 7, NONE), again, inode, reads;
	struct guest_dso *o = dso_of(file, "/lib/a.so");

	(void)state;
	assert_non_null(o);
	assert_true(o->own_id && o->named);
	assert_int_equal(o->build_id[0], 0xaa);
	assert_int_equal(o->elf_len, elf.len);
	assert_memory_equal(o->elf, elf.data, elf.len);
	assert_string_equal(o->path, "/lib/a.so");
	assert_string_equal(o->why, "");
	expect_names(o, "fn0");
	/* Another process has it open, under another name. */
	memcpy(&inode, lm_ptr(&g, file + 8, 8), 8);
	again = lm_file(&g, 0, 0, inode);
	reads = g.reads;
	assert_ptr_equal(dso_of(again, "/chroot/lib/a.so"), o);
	assert_true(g.reads - reads < 12); /* its bytes aren't looked at */
	assert_ptr_equal(guest_dsos_at(dsos, 0), o);
	assert_null(guest_dsos_at(dsos, 1));
	expect_stats(1, 1, 0, 0);
	guest_dso_free_elf(o);
	assert_null(o->elf);
	assert_true(o->named);
	assert_ptr_equal(dso_of(again, "x"), o);
}

static void file_written_anew(void **state)
{
	uint64_t file = library(0xaa, 7, NONE), inode;
	struct guest_dso *o = dso_of(file, "/lib/a.so"), *changed;

	(void)state;
	memcpy(&inode, lm_ptr(&g, file + 8, 8), 8);
	lm_put64(&g, inode + 32, 1700000001);
	changed = dso_of(file, "/lib/a.so");
	assert_ptr_not_equal(changed, o);
	assert_memory_equal(changed->build_id, o->build_id, 20); /* it was but touched */
	expect_stats(2, 2, 0, 0);
}

/* perf takes two of one id for one: they get different ones, and what is carried has them. */
static void files_without_a_build_id(void **state)
{
	struct guest_dso *a = dso_of(library(0, 7, NONE), "/lib/a.so");
	struct guest_dso *b = dso_of(library(0, 8, NONE), "/lib/a.so");
	uint8_t name_id[GUEST_BUILD_ID], id[GUEST_BUILD_ID];
	uint64_t file = library(0, 9, NONE), inode;

	(void)state;
	assert_false(a->own_id);
	assert_true(a->named && b->named);
	assert_memory_not_equal(a->build_id, b->build_id, 20);
	expect_names(a, "fn0");
	expect_names(b, "fn0");
	/* Every part of its identity counts. */
	memcpy(&inode, lm_ptr(&g, file + 8, 8), 8);
	memcpy(id, dso_of(file, "/lib/a.so")->build_id, 20);
	for (uint32_t off = 8; off <= 40; off += 8) {
		uint64_t v;

		memcpy(&v, lm_ptr(&g, inode + off, 8), 8);
		if (off == 16)
			continue; /* its size: the pages would end elsewhere */
		lm_put64(&g, inode + off, v + 1);
		assert_memory_not_equal(dso_of(file, "/lib/a.so")->build_id, id, 20);
		memcpy(id, dso_of(file, "/lib/a.so")->build_id, 20);
	}
	guest_dso_name_id(name_id, "/lib/a.so");
	assert_memory_not_equal(name_id, a->build_id, 20);
	guest_dso_name_id(id, "/lib/a.so");
	assert_memory_equal(id, name_id, 20);
	guest_dso_name_id(id, "/lib/b.so");
	assert_memory_not_equal(id, name_id, 20);
}

static void pages_that_are_missing(void **state)
{
	struct guest_dso *o = dso_of(library(0xaa, 7, 1), "/lib/a.so");

	(void)state;
	assert_false(o->named);
	assert_true(o->own_id);
	assert_string_not_equal(o->why, "");
	o = dso_of(library(0xaa, 8, 0), "/lib/b.so"); /* not even its header */
	assert_false(o->named || o->own_id);
	assert_string_not_equal(o->why, "");
	expect_stats(2, 0, 0, 0);
}

/* As if the kernel had read the page in now. */
static void read_page(uint64_t file, unsigned int i)
{
	uint64_t as, node, page, part = elf.len - i * 4096ul;

	memcpy(&as, lm_ptr(&g, file + file_layout.file_mapping, 8), 8);
	memcpy(&node, lm_ptr(&g, as + 16, 8), 8);
	page = lm_page(&g, as, i, 0);
	part = part < 4096 ? part : 4096;
	memcpy(lm_ptr(&g, LM_DIRECT + ((page - LM_VMEMMAP) / LM_PAGE_SIZE << 12), part),
	       elf.data + i * 4096ul, part);
	lm_xa_slot(&g, node - 2, i, page);
}

/* Looked for again when the file is mapped again, under the build id that was told. */
static void pages_that_come_later(void **state)
{
	uint64_t file = library(0xaa, 7, 0);
	struct guest_dso *o = dso_of(file, "/lib/a.so");
	uint8_t told[20];

	(void)state;
	assert_false(o->named || o->own_id);
	memcpy(told, o->build_id, 20);
	assert_ptr_equal(dso_of(file, "/lib/a.so"), o);
	assert_false(o->named);
	read_page(file, 0);
	assert_ptr_equal(dso_of(file, "/lib/a.so"), o);
	assert_true(o->named);
	assert_memory_equal(o->build_id, told, 20);
	expect_names(o, "fn0");
	expect_stats(1, 1, 0, 0);
}

static void pages_that_come_before_the_end(void **state)
{
	uint64_t late = library(0xaa, 7, 1), never, gone;
	struct guest_dso *o = dso_of(late, "/lib/a.so");
	struct gf_sink sink;

	(void)state;
	read_page(late, 1);
	never = library(0xbb, 8, 1);
	gone = library(0xcc, 9, 1);
	assert_false(dso_of(never, "/lib/b.so")->named);
	assert_false(dso_of(gone, "/lib/c.so")->named);
	read_page(gone, 1);
	lm_put64(&g, gone + 8, 0x1000); /* another file has its place */
	gf_sink_init(&sink);
	assert_int_equal(guest_dsos_finish(dsos, &sink.sink, NULL), 0);
	gf_expect(&sink, "dso /lib/a.so\n");
	assert_true(o->named);
	assert_null(o->elf);
	expect_stats(3, 1, 0, 0);
	assert_int_equal(guest_dsos_stats(dsos)->unnamed, 2);
	gf_sink_deinit(&sink);
}

static void no_programs(void **state)
{
	static const uint8_t text[5000] = "#!/bin/sh\n";
	struct guest_dso *o = dso_of(gf_file(&g, mnt, root, 7, text, sizeof(text), NONE), "/a");
	uint64_t file = library(0xaa, 8, NONE), reads = g.reads;

	(void)state;
	assert_false(o->named || o->own_id);
	assert_string_not_equal(o->why, "");
	/* No inode there: nobody's mapping any more. */
	lm_put64(&g, file + 8, 0x1000);
	assert_null(dso_of(file, "/b"));
	assert_null(dso_of(0xdead, "/c"));
	assert_true(g.reads - reads < 10);
	expect_stats(1, 0, 0, 0);
}

/* For a large file only the names are stored. */
static void large_file(void **state)
{
	uint64_t file = library(0xaa, 7, NONE), inode;
	struct guest_dso *o;

	(void)state;
	memcpy(&inode, lm_ptr(&g, file + 8, 8), 8);
	lm_put64(&g, inode + 16, GUEST_DSO_MAX_WHOLE + 1);
	o = dso_of(file, "/lib/a.so");
	assert_true(o->named && o->own_id);
	assert_true(o->elf_len < 1 << 20);
	expect_names(o, "fn0");
	file = library(0xab, 8, NONE);
	memcpy(&inode, lm_ptr(&g, file + 8, 8), 8);
	lm_put64(&g, inode + 16, INT64_MAX);
	o = dso_of(file, "/lib/b.so");
	assert_true(o->named);
	expect_names(o, "fn0");
}

/* -- from the host --------------------------------------------------------------------- */

static void from_the_guests_root(void **state)
{
	uint64_t file = library(0xaa, 7, 1);
	struct guest_dso *o;

	(void)state;
	create(true);
	put_host("root/lib", "root/lib/a.so", &elf);
	o = dso_of(file, "/lib/a.so");
	assert_true(o->named && o->own_id);
	assert_string_equal(o->why, ""); /* what memory lacked is no matter */
	assert_memory_equal(o->elf, elf.data, elf.len);
	expect_stats(1, 0, 1, 0);
	assert_false(o->unverified);
	assert_int_equal(guest_dsos_stats(dsos)->unverified, 0);
	/*
	 * Not a page of it is there: the root's file of that path is all there is. It may be
	 * another one, so its build id is not the guest's.
	 */
	o = dso_of(library(0xaa, 8, 0), "/lib/a.so");
	assert_true(o->named && o->unverified);
	assert_false(o->own_id);
	assert_int_not_equal(o->build_id[0], 0xaa);
	expect_names(o, "fn0");
	assert_int_equal(guest_dsos_stats(dsos)->unverified, 1);
	assert_int_equal(finder.count[USERFILE_UNVERIFIED], 1);
}

static void another_build_on_the_host(void **state)
{
	uint64_t file = library(0xaa, 7, 1);
	struct buf other;
	struct guest_dso *o;

	(void)state;
	create(true);
	gf_elf(&other, 0xcc, "wrong", 300);
	put_host("root/lib", "root/lib/a.so", &other);
	o = dso_of(file, "/lib/a.so");
	assert_false(o->named);
	assert_int_equal(o->build_id[0], 0xaa);
	assert_int_equal(finder.count[USERFILE_MISMATCH], 1);
	expect_stats(1, 0, 0, 0);
	buf_deinit(&other);
}

static void from_a_debug_file(void **state)
{
	uint64_t file = library(0xaa, 7, 1);
	struct guest_dso *o;

	(void)state;
	create(true);
	put_host("debug/.build-id/aa",
		 "debug/.build-id/aa/bb000000000000000000000000000000000000.debug", &elf);
	o = dso_of(file, "/lib/a.so");
	assert_true(o->named && o->own_id);
	expect_names(o, "fn0");
	expect_stats(1, 0, 0, 1);
}

/* One file after the other: those over the cap are counted. */
static void too_many_files(void **state)
{
	uint64_t file = library(0xaa, 7, 0), inode;

	(void)state;
	create(false);
	memcpy(&inode, lm_ptr(&g, file + 8, 8), 8);
	for (uint64_t i = 0; i < GUEST_DSO_MAX; i++) {
		lm_put64(&g, inode + 8, 100 + i);
		assert_non_null(dso_of(file, "/lib/a.so"));
	}
	assert_int_equal(guest_dsos_stats(dsos)->beyond, 0);
	lm_put64(&g, inode + 8, 7);
	assert_null(dso_of(file, "/lib/a.so"));
	assert_null(dso_of(file, "/lib/a.so"));
	assert_int_equal(guest_dsos_stats(dsos)->beyond, 2);
	lm_put64(&g, inode + 8, 100);
	assert_non_null(dso_of(file, "/lib/a.so"));
}

/* A path of the guest's making leads to nothing of the host. */
static void paths_out_of_the_root(void **state)
{
	uint64_t file = library(0xaa, 7, 0);
	struct guest_dso *o;

	(void)state;
	create(true);
	put_host("secret", "secret/a.so", &elf);
	o = dso_of(file, "/../secret/a.so");
	assert_false(o->named);
	o = dso_of(library(0xaa, 8, 0), "/lib/a.so (deleted)");
	assert_false(o->named);
	o = dso_of(library(0xaa, 9, 0), "");
	assert_false(o->named);
	expect_stats(3, 0, 0, 0);
}

/* -- the vdso -------------------------------------------------------------------------- */

static uint64_t mm_with_vdso(const struct buf *b)
{
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), image = lm_alloc(&g, 16, 8);
	uint64_t data = lm_alloc(&g, b->len, 4096);

	memcpy(lm_ptr(&g, data, b->len), b->data, b->len);
	lm_put64(&g, image, b->len);
	lm_put64(&g, image + 8, data);
	lm_put64(&g, mm + 16, LM_USER);
	lm_put64(&g, mm + 24, image);
	return mm;
}

static void vdso(void **state)
{
	uint64_t mm, other, image, wrong;
	struct guest_dso *o;

	(void)state;
	gf_elf(&elf, 0xaa, "__vdso_", 5);
	mm = mm_with_vdso(&elf);
	o = guest_dso_of_vdso(dsos, mm, LM_CR3);
	assert_true(o->named && o->own_id);
	expect_names(o, "__vdso_0");
	assert_string_equal(o->path, "[vdso]");
	/* Another process has the same image. */
	memcpy(&image, lm_ptr(&g, mm + 24, 8), 8);
	other = lm_alloc(&g, LM_MM_SIZE, 8);
	lm_put64(&g, other + 16, LM_USER + 0x5000);
	lm_put64(&g, other + 24, image);
	assert_ptr_equal(guest_dso_of_vdso(dsos, other, LM_CR3), o);
	/* A program of 32 bits has another, which is none for us; so has the x32 one. */
	elf.data[EI_CLASS] = ELFCLASS32;
	wrong = mm_with_vdso(&elf);
	assert_null(guest_dso_of_vdso(dsos, wrong, LM_CR3));
	assert_null(guest_dso_of_vdso(dsos, 0x1000, LM_CR3));
	elf.data[EI_CLASS] = ELFCLASS64;
	assert_ptr_not_equal(guest_dso_of_vdso(dsos, mm_with_vdso(&elf), LM_CR3), o);
	expect_stats(2, 2, 0, 0);
}

static void vdso_through_the_process(void **state)
{
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8);
	struct guest_dso *o;

	(void)state;
	mm_layout.mm_vdso_image = LINUX_NO_MEMBER;
	lm_put64(&g, mm + 16, LM_USER);
	assert_null(guest_dso_of_vdso(dsos, mm, LM_CR3));
	gf_elf(&elf, 0xaa, "__vdso_", 5);
	assert_true(elf.len <= sizeof(g.user));
	memcpy(g.user, elf.data, elf.len);
	assert_null(guest_dso_of_vdso(dsos, mm, LM_CR3 + 0x1000));
	o = guest_dso_of_vdso(dsos, mm, LM_CR3);
	assert_non_null(o);
	expect_names(o, "__vdso_0");
	assert_ptr_equal(guest_dso_of_vdso(dsos, mm, LM_CR3 + 0x1000), o);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(whole_file),
		T(file_written_anew),
		T(files_without_a_build_id),
		T(pages_that_are_missing),
		T(pages_that_come_later),
		T(pages_that_come_before_the_end),
		T(no_programs),
		T(large_file),
		T(from_the_guests_root),
		T(another_build_on_the_host),
		T(from_a_debug_file),
		T(paths_out_of_the_root),
		T(too_many_files),
		T(vdso),
		T(vdso_through_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
