/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FAT12, FAT16 and FAT32 as mkfs.vfat and mtools make them: the files of fuzz_fat's corpus
 * (make-corpus-fat.py), which hold the sectors that are not zero.
 */
#include "vmm/bootdisk/fat.h"

#include "base/cursor.h"
#include "base/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECTOR 512u

struct image {
	uint8_t *data;
	size_t len;
};

static int read_image(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct image *m = ctx;

	if (off > m->len || len > m->len - off)
		return -EIO;
	memcpy(dst, m->data + off, len);
	return 0;
}

static void load(struct image *m, const char *name)
{
	char path[128];
	struct file_map f = { 0 };
	struct err e = { 0 };
	struct cursor c;

	snprintf(path, sizeof(path), "tests/fuzz/corpus/fuzz_fat/%s", name);
	if (file_map_open(&f, path, 1 << 20, &e))
		fail_msg("%s", e.text);
	cursor_init(&c, f.data, f.len);
	m->len = (size_t)cursor_u32(&c) * SECTOR;
	m->data = calloc(1, m->len);
	assert_non_null(m->data);
	while (cursor_left(&c)) {
		size_t at = (size_t)cursor_u32(&c) * SECTOR;
		const uint8_t *p = cursor_bytes(&c, SECTOR);

		assert_true(p && at + SECTOR <= m->len);
		memcpy(m->data + at, p, SECTOR);
	}
	file_map_close(&f);
}

static int count(void *ctx, const char *name, const struct fat_node *node)
{
	unsigned int *seen = ctx;

	(void)node;
	*seen |= !strcmp(name, "debian-6.1.0-18-amd64.conf")		? 1
		 : !strcmp(name, "\xc3\xa4\xe2\x82\xac long name.conf") ? 2
									: 4;
	return 0;
}

static void files(void **state)
{
	static const struct {
		const char *name;
		unsigned int bits;
	} rows[] = {
		{ "fat12", 12 }, { "fat16", 16 }, { "fat32", 32 }, { "fat12-4k-sectors", 12 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err e = { 0 };
		struct fat_node node;
		struct image m;
		struct buf out;
		struct fat f;
		unsigned int seen = 0;

		load(&m, rows[i].name);
		if (fat_open(&f, read_image, &m, m.len, &e))
			fail_msg("%s: %s", rows[i].name, e.text);
		assert_int_equal(f.bits, rows[i].bits);
		buf_init(&out);
		assert_int_equal(
			fat_find(&f, "/Loader//entries/DEBIAN-6.1.0-18-amd64.conf", &node, &e), 0);
		assert_int_equal(fat_read_file(&f, &node, 10000, &out, &e), 0);
		assert_int_equal(out.len, 60 * strlen("linux /vmlinuz\n"));
		assert_memory_equal(out.data + out.len - 15, "linux /vmlinuz\n", 15);
		assert_int_equal(fat_read_file(&f, &node, 800, &out, NULL), -EFBIG);
		/* Pieces, across clusters and to the end. */
		for (uint64_t off = 0; off < 1000; off += 97)
			for (size_t len = 1; len < 1200; len += 131) {
				size_t want = off >= 900 ? 0 : len < 900 - off ? len : 900 - off;
				struct buf part;

				buf_init(&part);
				assert_int_equal(fat_read_part(&f, &node, off, len, &part, &e), 0);
				assert_int_equal(part.len, want);
				if (want)
					assert_memory_equal(part.data, out.data + off, want);
				buf_deinit(&part);
			}
		buf_deinit(&out);
		assert_int_equal(fat_find(&f, "loader/none", &node, NULL), -ENOENT);
		assert_int_equal(fat_find(&f, "loader/loader.conf/x", &node, NULL), -ENOTDIR);
		assert_int_equal(fat_find(&f, "loader/entries", &node, NULL), 0);
		assert_int_equal(fat_list(&f, &node, count, &seen, NULL), 0);
		assert_int_equal(seen, 3);
		free(m.data);
	}
}

static void damaged(void **state)
{
	static const char *const refused[] = { "fat32-root-0", "fat12-sector-0", "fat12-cluster-3",
					       "fat12-too-many", "fat12-no-table" };
	struct image m;
	struct fat f;
	struct fat_node node;

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		load(&m, refused[i]);
		assert_int_equal(fat_open(&f, read_image, &m, m.len, NULL), -EINVAL);
		free(m.data);
	}
	/* They open, and then their chains make no sense. */
	load(&m, "fat32-root-out");
	assert_int_equal(fat_open(&f, read_image, &m, m.len, NULL), 0);
	assert_true(fat_find(&f, "loader", &node, NULL) < 0);
	free(m.data);
	load(&m, "fat16-circle");
	assert_int_equal(fat_open(&f, read_image, &m, m.len, NULL), 0);
	(void)fat_find(&f, "loader/none", &node, NULL); /* ends */
	free(m.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(files), cmocka_unit_test(damaged) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
