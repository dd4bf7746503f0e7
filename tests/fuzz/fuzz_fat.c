/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A FAT file system: all names, two levels deep, and the beginning of each file. The input
 * is the sectors that are not zero: number of sectors in all (4 bytes), then for each its
 * number (4 bytes) and its 512 bytes. make-corpus-fat.py makes such of mkfs.vfat's.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "vmm/bootdisk/fat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u
#define RECORD (4 + SECTOR)
/* One input shall not take seconds. */
#define MAX_NAMES 200u
#define MAX_READS 3000u

struct sectors {
	const uint8_t *data;
	size_t n;
	uint64_t len;
	unsigned int reads;
};

static int read_sectors(void *ctx, uint64_t off, void *dst, size_t len)
{
	struct sectors *s = ctx;

	if (off > s->len || len > s->len - off)
		abort(); /* the reader must have checked */
	if (s->reads++ > MAX_READS)
		return -EIO;
	memset(dst, 0, len);
	for (size_t i = 0; i < s->n; i++) {
		struct cursor c;
		uint64_t at, from, to;

		cursor_init(&c, s->data + i * RECORD, RECORD);
		at = (uint64_t)cursor_u32(&c) * SECTOR;
		from = at > off ? at : off;
		to = at + SECTOR < off + len ? at + SECTOR : off + len;
		if (from < to)
			memcpy((uint8_t *)dst + (from - off), c.base + 4 + (from - at),
			       (size_t)(to - from));
	}
	return 0;
}

struct walk {
	const struct fat *fat;
	unsigned int depth, names;
};

static int look(void *ctx, const char *name, const struct fat_node *node)
{
	struct walk *w = ctx;
	struct walk inner = { .fat = w->fat, .depth = w->depth + 1 };
	struct fat_node again;
	struct buf out;

	if (strlen(name) > FAT_MAX_NAME)
		abort();
	if (w->names++ == MAX_NAMES)
		return 1;
	buf_init(&out);
	if (node->dir && w->depth < 2)
		(void)fat_list(w->fat, node, look, &inner, NULL);
	else if (!node->dir && fat_read_file(w->fat, node, 1u << 20, &out, NULL) == 0 &&
		 out.len != node->len)
		abort();
	if (!w->depth && w->names < 4)
		(void)fat_find(w->fat, name, &again, NULL);
	buf_deinit(&out);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fat_node root;
	struct sectors s = { 0 };
	struct fat fat;
	struct walk w = { .fat = &fat };
	struct cursor c;

	cursor_init(&c, data, size);
	s.len = (uint64_t)cursor_u32(&c) * SECTOR;
	if (c.bad)
		return 0;
	s.data = data + 4;
	s.n = (size - 4) / RECORD;
	if (fat_open(&fat, read_sectors, &s, s.len, NULL) == 0 &&
	    fat_find(&fat, "/", &root, NULL) == 0)
		(void)fat_list(&fat, &root, look, &w, NULL);
	return 0;
}
