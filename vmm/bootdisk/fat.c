/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/fat.h"

#include "base/cleanup.h"
#include "base/cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A directory entry (specification, "FAT 32 Byte Directory Entry Structure"). */
#define ENTRY_LEN 32u
#define ATTR_VOLUME 0x08u
#define ATTR_DIR 0x10u
#define ATTR_LONG 0x0fu /* a part of the long name of a following entry */
#define NAME_FREE 0xe5u
#define NAME_END 0x00u
#define CASE_BASE 0x08u /* Windows NT's use of the reserved byte: lower case */
#define CASE_EXT 0x10u
/* Parts of a long name, each of 13 UTF-16 units. */
#define LONG_UNITS 13u
#define LONG_PIECES 20u
#define LONG_LAST 0x40u

#define BOOT_LEN 512u
/* Returns the first number that ends a chain or marks a bad cluster. */
static uint32_t last_of(unsigned int bits)
{
	return bits == 12 ? 0xff7 : bits == 16 ? 0xfff7 : 0x0ffffff7;
}

static bool power_of_two(uint32_t v, uint32_t max)
{
	return v && v <= max && !(v & (v - 1));
}

static int fat_bad(struct err *e, const char *what)
{
	return err_set(e, EINVAL, "FAT file system: %s", what);
}

int fat_open(struct fat *f, fat_read_fn *read, void *ctx, uint64_t len, struct err *e)
{
	uint8_t boot[BOOT_LEN];
	struct cursor c;
	uint32_t sector, per_cluster, reserved, tables, root_entries, sectors, table_sectors;
	uint64_t data, need;
	int ret;

	memset(f, 0, sizeof(*f));
	f->read = read;
	f->ctx = ctx;
	ret = len < sizeof(boot) ? -EINVAL : read(ctx, 0, boot, sizeof(boot));
	if (ret < 0)
		return err_set(e, -ret, "FAT file system: its first sector can't be read");
	cursor_init(&c, boot, sizeof(boot));
	cursor_seek(&c, 11); /* BPB_BytsPerSec and the following fields */
	sector = cursor_u16(&c);
	per_cluster = cursor_u8(&c);
	reserved = cursor_u16(&c);
	tables = cursor_u8(&c);
	root_entries = cursor_u16(&c);
	sectors = cursor_u16(&c);
	cursor_skip(&c, 1);
	table_sectors = cursor_u16(&c);
	cursor_skip(&c, 8);
	if (sectors)
		cursor_skip(&c, 4);
	else
		sectors = cursor_u32(&c);
	if (!power_of_two(sector, 4096) || sector < 512 || !power_of_two(per_cluster, 128))
		return fat_bad(e, "sizes of sectors and clusters that make no sense");
	if (!reserved || !tables || tables > 4)
		return fat_bad(e, "no reserved sectors or no tables");
	if (!table_sectors) { /* FAT32 has its own fields */
		table_sectors = cursor_u32(&c);
		cursor_skip(&c, 4);
		f->root_cluster = cursor_u32(&c);
	}
	f->cluster_len = sector * per_cluster;
	f->table_off = (uint64_t)reserved * sector;
	f->root_off = f->table_off + (uint64_t)tables * table_sectors * sector;
	f->root_len = root_entries * ENTRY_LEN;
	data = f->root_off + (f->root_len + sector - 1) / sector * (uint64_t)sector;
	f->data_off = data;
	if ((uint64_t)sectors * sector > len || data >= (uint64_t)sectors * sector)
		return fat_bad(e, "larger than the space that it is in, or without data");
	/* Only the number of clusters determines the kind of FAT ("FAT Type Determination"). */
	f->clusters = (uint32_t)(((uint64_t)sectors * sector - data) / f->cluster_len);
	f->bits = f->clusters < 4085 ? 12 : f->clusters < 65525 ? 16 : 32;
	if ((f->bits == 32) != (f->root_cluster != 0) || (f->bits == 32) != !root_entries)
		return fat_bad(e, "its number of clusters does not fit its kind");
	need = ((uint64_t)(f->clusters + 2) * f->bits + 7) / 8;
	if (need > (uint64_t)table_sectors * sector || f->clusters > 0x0ffffff5)
		return fat_bad(e, "its table is shorter than its number of clusters");
	return 0;
}

/* Reads the table's entry for cluster n, which must be valid. */
static int next_of(const struct fat *f, uint32_t n, uint32_t *next, struct err *e)
{
	uint64_t off = f->table_off + (uint64_t)n * f->bits / 8;
	uint8_t raw[4] = { 0 };
	uint32_t v;
	int ret = f->read(f->ctx, off, raw, f->bits == 32 ? 4 : 2);

	if (ret < 0)
		return err_set(e, -ret, "FAT file system: cannot read its table");
	v = raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24;
	if (f->bits == 12)
		v = n & 1 ? v >> 4 : v & 0xfff;
	*next = v & 0x0fffffff;
	return 0;
}

/* Appends up to len bytes, from offset off, of the chain that begins at cluster n. */
static int read_chain(const struct fat *f, uint32_t n, uint64_t off, uint64_t len, struct buf *out,
		      struct err *e)
{
	uint32_t steps = 0;

	while (len) {
		uint32_t skip = off < f->cluster_len ? (uint32_t)off : f->cluster_len;
		uint32_t part = len < f->cluster_len - skip ? (uint32_t)len : f->cluster_len - skip;
		uint8_t *p;
		int ret;

		if (n >= last_of(f->bits))
			return 0; /* end of the chain; the caller knows the length it requested */
		if (n < 2 || n - 2 >= f->clusters)
			return fat_bad(e, "a chain leads out of it");
		if (steps++ >= f->clusters)
			return fat_bad(e, "a chain that runs in a circle");
		p = part ? buf_reserve(out, part) : NULL;
		if (part && !p)
			return err_nomem(e);
		ret = part ? f->read(f->ctx,
				     f->data_off + (uint64_t)(n - 2) * f->cluster_len + skip, p,
				     part)
			   : 0;
		if (ret < 0)
			return err_set(e, -ret, "FAT file system: cannot read a cluster");
		out->len += part;
		len -= part;
		off -= skip;
		ret = len ? next_of(f, n, &n, e) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

static int read_dir(const struct fat *f, const struct fat_node *dir, struct buf *out, struct err *e)
{
	uint8_t *p;
	int ret;

	if (!dir->dir)
		return err_set(e, ENOTDIR, "not a directory");
	if (dir->cluster || f->bits == 32)
		return read_chain(f, dir->cluster ? dir->cluster : f->root_cluster, 0, FAT_MAX_DIR,
				  out, e);
	p = buf_reserve(out, f->root_len);
	if (!p)
		return err_nomem(e);
	ret = f->read(f->ctx, f->root_off, p, f->root_len);
	if (ret < 0)
		return err_set(e, -ret, "FAT file system: cannot read its root directory");
	out->len += f->root_len;
	return 0;
}

/* A long name. Its parts precede their entry, the last one first. */
struct long_name {
	uint16_t unit[LONG_PIECES * LONG_UNITS];
	unsigned int units;
	unsigned int next; /* number of the expected part; 0: complete */
	uint8_t sum;
	bool valid;
};

static void take_piece(struct long_name *l, const uint8_t *entry)
{
	static const uint8_t places[LONG_UNITS] = { 1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30 };
	unsigned int number = entry[0] & ~LONG_LAST;

	if (entry[0] & LONG_LAST) {
		l->valid = number >= 1 && number <= LONG_PIECES;
		l->units = number * LONG_UNITS;
		l->next = number;
		l->sum = entry[13];
	}
	if (!l->valid || number != l->next || entry[13] != l->sum) {
		l->valid = false;
		return;
	}
	l->next--;
	for (unsigned int i = 0; i < LONG_UNITS; i++)
		l->unit[l->next * LONG_UNITS + i] =
			(uint16_t)(entry[places[i]] | entry[places[i] + 1] << 8);
}

/* Returns ChkSum() of the specification, which associates a long name with its entry. */
static uint8_t short_sum(const uint8_t *name)
{
	uint8_t sum = 0;

	for (unsigned int i = 0; i < 11; i++)
		sum = (uint8_t)(((sum & 1) << 7) + (sum >> 1) + name[i]);
	return sum;
}

static char *put_utf8(char *p, uint32_t c)
{
	if (c < 0x80) {
		*p++ = (char)c;
	} else if (c < 0x800) {
		*p++ = (char)(0xc0 | c >> 6);
		*p++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*p++ = (char)(0xe0 | c >> 12);
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		*p++ = (char)(0x80 | (c & 0x3f));
	} else {
		*p++ = (char)(0xf0 | c >> 18);
		*p++ = (char)(0x80 | (c >> 12 & 0x3f));
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		*p++ = (char)(0x80 | (c & 0x3f));
	}
	return p;
}

/*
 * Converts a long name. name has FAT_MAX_NAME + 32 bytes: LONG_PIECES * LONG_UNITS units of 3
 * bytes and a NUL.
 */
static void long_to_utf8(const struct long_name *l, char *name)
{
	char *p = name;

	for (unsigned int i = 0; i < l->units && l->unit[i]; i++) {
		uint32_t c = l->unit[i];

		if (c >= 0xd800 && c < 0xdc00 && i + 1 < l->units && l->unit[i + 1] >= 0xdc00 &&
		    l->unit[i + 1] < 0xe000)
			c = 0x10000 + ((c & 0x3ff) << 10) + (l->unit[++i] & 0x3ff);
		else if (c >= 0xd800 && c < 0xe000)
			c = 0xfffd;
		p = put_utf8(p, c);
	}
	*p = 0;
}

/* Converts a short name. Characters in the upper half of the OEM code page become '?'. */
static void short_to_text(const uint8_t *entry, char *name)
{
	char *p = name;

	for (unsigned int i = 0; i < 11; i++) {
		uint8_t c = entry[i];
		bool lower = entry[12] & (i < 8 ? CASE_BASE : CASE_EXT);

		if (c == ' ')
			continue;
		if (i >= 8 && !memchr(name, '.', (size_t)(p - name)))
			*p++ = '.';
		if (c < 0x20 || c > 0x7e)
			c = '?';
		*p++ = (char)(lower && c >= 'A' && c <= 'Z' ? c + 32 : c);
	}
	*p = 0;
}

int fat_list(const struct fat *f, const struct fat_node *dir, fat_list_fn *fn, void *ctx,
	     struct err *e)
{
	char name[FAT_MAX_NAME + 32];
	struct long_name l = { 0 };
	struct buf bytes;
	int ret;

	buf_init(&bytes);
	ret = read_dir(f, dir, &bytes, e);
	for (size_t off = 0; !ret && off + ENTRY_LEN <= bytes.len; off += ENTRY_LEN) {
		const uint8_t *p = bytes.data + off;
		struct fat_node node = {
			.dir = p[11] & ATTR_DIR,
			.cluster = p[26] | (uint32_t)p[27] << 8,
			.len = p[28] | (uint32_t)p[29] << 8 | (uint32_t)p[30] << 16 |
			       (uint32_t)p[31] << 24,
		};

		if (p[0] == NAME_END)
			break;
		if (p[0] != NAME_FREE && (p[11] & 0x3f) == ATTR_LONG) {
			take_piece(&l, p);
			continue;
		}
		if (p[0] != NAME_FREE && p[0] != '.' && !(p[11] & ATTR_VOLUME)) {
			if (f->bits == 32)
				node.cluster |= (uint32_t)p[20] << 16 | (uint32_t)p[21] << 24;
			if (l.valid && !l.next && l.sum == short_sum(p))
				long_to_utf8(&l, name);
			else
				short_to_text(p, name);
			ret = fn(ctx, name, &node);
		}
		l.valid = false;
	}
	buf_deinit(&bytes);
	return ret;
}

struct wanted {
	const char *name;
	size_t len;
	struct fat_node *out;
};

static int is_wanted(void *ctx, const char *name, const struct fat_node *node)
{
	const struct wanted *w = ctx;

	if (strlen(name) != w->len || strncasecmp(name, w->name, w->len) != 0)
		return 0;
	*w->out = *node;
	return 1;
}

int fat_find(const struct fat *f, const char *path, struct fat_node *out, struct err *e)
{
	struct fat_node node = { .dir = true, .cluster = f->root_cluster };
	unsigned int depth = 0;

	for (const char *s = path; *s;) {
		size_t n = strcspn(s, "/");
		struct fat_node next;
		struct wanted w = { .name = s, .len = n, .out = &next };
		int ret;

		if (n) {
			if (++depth > FAT_MAX_DEPTH)
				return err_set(e, EINVAL, "%s: more than %u directories deep", path,
					       FAT_MAX_DEPTH);
			ret = fat_list(f, &node, is_wanted, &w, e);
			if (ret < 0)
				return ret;
			if (!ret)
				return err_set(e, ENOENT, "%s: no such file", path);
			/* A directory without a cluster would be the root again. */
			if (next.dir && !next.cluster)
				return fat_bad(e, "a directory without a cluster");
			node = next;
		}
		s += n + (s[n] == '/');
	}
	*out = node;
	return 0;
}

int fat_read_file(const struct fat *f, const struct fat_node *node, size_t max, struct buf *out,
		  struct err *e)
{
	if (!node->dir && node->len > max)
		return err_set(e, EFBIG, "%u bytes, more than the limit of %zu", node->len, max);
	return fat_read_part(f, node, 0, node->len, out, e);
}

int fat_read_part(const struct fat *f, const struct fat_node *node, uint64_t off, size_t len,
		  struct buf *out, struct err *e)
{
	size_t before = out->len;
	int ret;

	if (node->dir)
		return err_set(e, EISDIR, "is a directory");
	if (node->len > (uint64_t)f->clusters * f->cluster_len)
		return fat_bad(e, "a file that is longer than it");
	if (off >= node->len)
		return 0;
	if (len > node->len - off)
		len = (size_t)(node->len - off);
	ret = read_chain(f, node->cluster, off, len, out, e);
	if (!ret && out->len - before != len)
		ret = fat_bad(e, "a file whose chain is too short");
	return ret;
}
