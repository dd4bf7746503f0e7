/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens BTF: every record is checked once, so that queries need no further checks. */
#include "symbolizer/types/btf.h"

#include "base/cleanup.h"
#include "symbolizer/types/btf_record.h"
#include "symbolizer/core/elf64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0xeb9fu
#define MAGIC_SWAPPED 0x9febu
#define VERSION 1u
#define HEADER_LEN 24u

struct header {
	uint16_t magic;
	uint8_t version;
	uint32_t len, type_off, type_len, str_off, str_len;
};

static struct header read_header(const uint8_t *bytes, size_t len)
{
	struct header h;
	struct cursor c;

	cursor_init(&c, bytes, len);
	h.magic = cursor_u16(&c);
	h.version = cursor_u8(&c);
	cursor_skip(&c, 1);
	h.len = cursor_u32(&c);
	h.type_off = cursor_u32(&c);
	h.type_len = cursor_u32(&c);
	h.str_off = cursor_u32(&c);
	h.str_len = cursor_u32(&c);
	return h;
}

/* Returns where the last part ends. */
static uint64_t header_extent(const struct header *h)
{
	uint64_t types = (uint64_t)h->type_off + h->type_len;
	uint64_t strings = (uint64_t)h->str_off + h->str_len;

	return h->len + (types > strings ? types : strings);
}

static int check_header(const struct header *h, size_t len, const char *name, struct err *e)
{
	if (len < HEADER_LEN)
		return err_set(e, EINVAL, "%s: BTF: %zu bytes are not even a header", name, len);
	if (h->magic == MAGIC_SWAPPED)
		return err_set(e, EINVAL, "%s: BTF of a big-endian machine, expected x86-64's",
			       name);
	if (h->magic != MAGIC || h->version != VERSION)
		return err_set(e, EINVAL,
			       "%s: no BTF, or of an unknown version: magic 0x%x and version %u, "
			       "expected 0x%x and %u",
			       name, h->magic, h->version, MAGIC, VERSION);
	if (len > BTF_MAX_BYTES)
		return err_set(e, E2BIG, "%s: BTF of %zu bytes; at most %u are read", name, len,
			       BTF_MAX_BYTES);
	if (h->len < HEADER_LEN || h->type_off % 4 || header_extent(h) > len)
		return err_set(e, EBADMSG,
			       "%s: BTF: header of %u bytes, types at +%u (%u bytes) and strings "
			       "at +%u (%u bytes) are not inside its %zu bytes",
			       name, h->len, h->type_off, h->type_len, h->str_off, h->str_len, len);
	return 0;
}

/* Checks all names and types to which a record refers. */
static int check_references(const struct btf *b, uint32_t id, const char *name, struct err *e)
{
	struct btf_record r = btf_record(b, id);
	uint32_t step = btf_item_len(r.kind), bad_name = 0, bad_type = 0;

	if (r.name >= b->strings_len)
		bad_name = r.name;
	if (btf_refers(r.kind) && r.size_or_type > b->n)
		bad_type = r.size_or_type;
	for (uint32_t i = 0; step && i < r.vlen; i++) {
		const uint8_t *p = r.items + (size_t)i * step;

		if (r.kind != BTF_DATASEC && btf_u32(p) >= b->strings_len)
			bad_name = btf_u32(p);
		if (r.kind == BTF_DATASEC && btf_u32(p) > b->n)
			bad_type = btf_u32(p);
		if ((r.kind == BTF_STRUCT || r.kind == BTF_UNION || r.kind == BTF_FUNC_PROTO) &&
		    btf_u32(p + 4) > b->n)
			bad_type = btf_u32(p + 4);
	}
	if (r.kind == BTF_ARRAY && btf_u32(r.items) > b->n)
		bad_type = btf_u32(r.items);
	if (bad_name)
		return err_set(
			e, EBADMSG,
			"%s: BTF type %u at offset 0x%x: a name at 0x%x of %zu bytes of strings",
			name, id, b->off[id], bad_name, b->strings_len);
	if (bad_type)
		return err_set(e, EBADMSG, "%s: BTF type %u at offset 0x%x refers to type %u of %u",
			       name, id, b->off[id], bad_type, b->n);
	return 0;
}

/* Finds the offset of each record, which has at least 12 bytes. */
static int index_records(struct btf *b, const char *name, struct err *e)
{
	size_t cap = b->types_len / BTF_RECORD_LEN + 1;
	size_t at = 0;

	if (cap > BTF_MAX_TYPES + 1)
		cap = BTF_MAX_TYPES + 1;
	b->off = malloc(cap * sizeof(*b->off));
	if (!b->off)
		return err_set(e, ENOMEM, "%s: no memory for BTF", name);
	b->off[0] = 0;
	while (at < b->types_len) {
		uint64_t len = BTF_RECORD_LEN;
		uint32_t info;

		if (b->types_len - at < BTF_RECORD_LEN)
			return err_set(e, EBADMSG, "%s: BTF type %u at offset 0x%zx is cut off",
				       name, b->n + 1, at);
		if (b->n + 1 >= cap)
			return err_set(e, E2BIG, "%s: BTF with more than %u types", name,
				       BTF_MAX_TYPES);
		info = btf_u32(b->types + at + 4);
		if (btf_kind(info) == 0)
			return err_set(e, EINVAL, "%s: BTF type %u at offset 0x%zx has kind 0",
				       name, b->n + 1, at);
		/* The length of its record is unknown, so everything after it is lost. */
		if (btf_kind(info) > BTF_ENUM64)
			return err_set(e, EINVAL,
				       "%s: BTF type %u at offset 0x%zx has kind %u, newer than "
				       "what this program knows (up to %u)",
				       name, b->n + 1, at, btf_kind(info), BTF_ENUM64);
		len += btf_extra_len(btf_kind(info), info & 0xffff);
		if (len > b->types_len - at)
			return err_set(e, EBADMSG, "%s: BTF type %u at offset 0x%zx is cut off",
				       name, b->n + 1, at);
		b->off[++b->n] = (uint32_t)at;
		at += (size_t)len;
		if (btf_kind(info) == BTF_STRUCT || btf_kind(info) == BTF_UNION)
			b->nstructs++;
		b->nenums += btf_kind(info) == BTF_ENUM || btf_kind(info) == BTF_ENUM64;
		b->enum_flag_is_sign |= btf_kind(info) == BTF_ENUM && info >> 31;
	}
	return 0;
}

/* -- nesting -------------------------------------------------------------------- */

/* Returns the i-th type that is contained in this one. Returns false if there are no more. */
static bool inner_type(const struct btf_record *r, uint32_t i, uint32_t *id)
{
	switch (r->kind) {
	case BTF_STRUCT:
	case BTF_UNION:
		if (i >= r->vlen)
			return false;
		*id = btf_u32(r->items + (size_t)i * 12 + 4);
		return true;
	case BTF_ARRAY:
		*id = btf_u32(r->items);
		return i == 0;
	default:
		*id = r->size_or_type;
		return i == 0 && btf_is_modifier(r->kind);
	}
}

/* The type is on the path that is being measured. */
#define BUSY 0xffu

/*
 * Returns the maximum nesting in this type; depth stores it for each type. No type may contain
 * itself. Recurses at most BTF_MAX_DEPTH times: level.
 */
static int measure_depth(const struct btf *b, uint32_t id, unsigned int level, uint8_t *depth,
			 const char *name, struct err *e)
{
	struct btf_record r;
	unsigned int most = 0;
	uint32_t inner;

	if (id == 0)
		return 0;
	if (depth[id] == BUSY)
		return err_set(e, EBADMSG, "%s: BTF type %u at offset 0x%x holds itself", name, id,
			       b->off[id]);
	if (level + (depth[id] ? depth[id] - 1u : 0) >= BTF_MAX_DEPTH)
		return err_set(e, EBADMSG,
			       "%s: BTF type %u at offset 0x%x lies in more than %u others", name,
			       id, b->off[id], BTF_MAX_DEPTH);
	if (depth[id])
		return depth[id];
	r = btf_record(b, id);
	depth[id] = BUSY;
	for (uint32_t i = 0; inner_type(&r, i, &inner); i++) {
		int d = measure_depth(b, inner, level + 1, depth, name, e);

		if (d < 0)
			return d;
		if ((unsigned int)d > most)
			most = (unsigned int)d;
	}
	depth[id] = (uint8_t)(most + 1);
	return depth[id];
}

static int check_nesting(const struct btf *b, const char *name, struct err *e)
{
	cleanup_free uint8_t *depth = calloc(b->n + 1, 1);

	if (!depth)
		return err_set(e, ENOMEM, "%s: no memory for BTF", name);
	for (uint32_t id = 1; id <= b->n; id++) {
		int ret = measure_depth(b, id, 0, depth, name, e);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* -- names ---------------------------------------------------------------------- */

static int index_names(struct btf *b, const char *name, struct err *e)
{
	uint32_t size = 16, enums = 0;

	while (size < 2 * b->nstructs)
		size *= 2;
	b->bucket_mask = size - 1;
	b->bucket = calloc(size, sizeof(*b->bucket));
	b->next = calloc(b->nstructs + 1, sizeof(*b->next));
	b->enums = calloc(b->nenums + 1, sizeof(*b->enums));
	if (!b->bucket || !b->next || !b->enums)
		return err_set(e, ENOMEM, "%s: no memory for BTF", name);
	b->nstructs = 0;
	/* From the last to the first, so that a lookup finds the first one of a name first. */
	for (uint32_t id = b->n; id; id--) {
		struct btf_record r = btf_record(b, id);
		const char *s = b->strings + r.name;
		uint32_t *head;

		if ((r.kind != BTF_STRUCT && r.kind != BTF_UNION) || !*s)
			continue;
		head = &b->bucket[btf_hash(s) & b->bucket_mask];
		b->next[b->nstructs] = (struct btf_link){ .id = id, .next = *head };
		*head = ++b->nstructs;
	}
	for (uint32_t id = 1; id <= b->n; id++) {
		uint32_t kind = btf_record(b, id).kind;

		if (kind == BTF_ENUM || kind == BTF_ENUM64)
			b->enums[enums++] = id;
	}
	return 0;
}

static int check_strings(const struct btf *b, const char *name, struct err *e)
{
	if (b->strings_len && !b->strings[0] && !b->strings[b->strings_len - 1])
		return 0;
	return err_set(
		e, b->strings_len && b->strings[0] ? EINVAL : EBADMSG,
		"%s: BTF: its %zu bytes of strings %s", name, b->strings_len,
		b->strings_len && b->strings[0]
			? "don't begin with an empty one: part of a module's, which continues "
			  "its kernel's; give the kernel's"
			: "are not closed");
}

/* Checks every record, and builds the indexes. */
static int check_all(struct btf *b, const char *name, struct err *e)
{
	int ret = check_strings(b, name, e);

	if (ret)
		return ret;
	ret = index_records(b, name, e);
	if (ret)
		return ret;
	for (uint32_t id = 1; id <= b->n; id++) {
		ret = check_references(b, id, name, e);
		if (ret)
			return ret;
	}
	ret = check_nesting(b, name, e);
	if (ret)
		return ret;
	return index_names(b, name, e);
}

int btf_open(struct btf **out, const uint8_t *bytes, size_t len, const char *name, struct err *e)
{
	struct header h = read_header(bytes, len);
	struct btf *b;
	int ret = check_header(&h, len, name, e);

	if (ret < 0)
		return ret;
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, ENOMEM, "%s: no memory for BTF", name);
	b->size = (size_t)header_extent(&h);
	b->types = bytes + h.len + h.type_off;
	b->types_len = h.type_len;
	b->strings = (const char *)bytes + h.len + h.str_off;
	b->strings_len = h.str_len;
	ret = check_all(b, name, e);
	if (ret < 0) {
		btf_destroy(b);
		return ret;
	}
	*out = b;
	return 0;
}

void btf_destroy(struct btf *b)
{
	if (!b)
		return;
	free(b->off);
	free(b->bucket);
	free(b->next);
	free(b->enums);
	free(b);
}

uint32_t btf_count(const struct btf *b)
{
	return b->n;
}

size_t btf_size(const struct btf *b)
{
	return b->size;
}

/* -- the BTF of an image ------------------------------------------------------------ */

/* Maximum number of places that look like a header and are opened. */
#define MAX_TRIES 32u

static int from_content(struct btf **out, const struct kimage *k, const char *name, struct err *e)
{
	static const uint8_t first[] = { 0x9f, 0xeb, VERSION, 0 };
	struct err why = { 0 };
	unsigned int tries = 0;

	for (unsigned int i = 0; i < k->nseg; i++) {
		const uint8_t *p = k->elf + k->seg[i].file_off;
		const uint8_t *end = p + k->seg[i].file_len;

		for (; (p = memmem(p, (size_t)(end - p), first, sizeof(first))); p++) {
			struct header h = read_header(p, (size_t)(end - p));
			uint64_t len = header_extent(&h);
			int ret;

			/* Linux's own have no gap between their parts. */
			if (h.len != HEADER_LEN || h.type_off || h.str_off != h.type_len ||
			    len > (size_t)(end - p) || !h.type_len || !h.str_len)
				continue;
			if (++tries > MAX_TRIES)
				break;
			err_clear(&why);
			ret = btf_open(out, p, (size_t)len, name, &why);
			if (ret == 0 || ret == -ENOMEM)
				return ret ? err_set(e, ENOMEM, "%s", why.text) : 0;
		}
	}
	if (why.code)
		return err_set(e, why.code, "%s", why.text);
	return -ENOENT;
}

int btf_from_image(struct btf **out, const struct kimage *k, const char *name, struct err *e)
{
	uint64_t va, len;
	const uint8_t *p;
	struct elf64 f;
	size_t avail;
	int ret;

	if (kimage_section(k, ".BTF", &va, &len)) {
		p = kimage_ptr(k, va, &avail);
		if (!p || avail < len)
			return err_set(
				e, EBADMSG,
				"%s: its .BTF section (0x%llx bytes at 0x%llx) is not in the "
				"file",
				name, (unsigned long long)len, (unsigned long long)va);
		return btf_open(out, p, (size_t)len, name, e);
	}
	ret = elf64_open(&f, name, k->elf, k->elf_len, e);
	if (ret < 0)
		return ret;
	ret = f.shnum ? -ENOENT : from_content(out, k, name, e);
	if (ret == -ENOENT)
		return err_set(e, ENOENT, "%s has no BTF (built without CONFIG_DEBUG_INFO_BTF)",
			       name);
	return ret;
}
