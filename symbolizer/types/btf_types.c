/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers queries from checked BTF: references are valid and no type contains itself. */
#include "symbolizer/types/btf_types.h"

#include "symbolizer/types/btf_record.h"
#include "symbolizer/types/path.h"

#include <errno.h>
#include <string.h>

/* Members examined for one query: the same anonymous union may be in many structures. */
#define MAX_VISITS (1u << 14)

/* A place in a structure. */
struct btf_types_place {
	uint32_t type;
	uint64_t bits;	    /* offset from the start of the structure */
	uint32_t bit_count; /* size of a bit field */
};

struct btf_types_search {
	const struct btf *b;
	const struct types_step *step;
	unsigned int *visits;
};

/* Returns the type without typedefs and qualifiers; kind BTF_VOID for void. */
static struct btf_record bare_type(const struct btf *b, uint32_t id)
{
	struct btf_record r = { .kind = BTF_VOID };

	while (id) {
		r = btf_record(b, id);
		if (!btf_is_modifier(r.kind))
			return r;
		id = r.size_or_type;
	}
	return (struct btf_record){ .kind = BTF_VOID };
}

/* Computes the bytes of an object of this type. */
static int size_of(const struct btf *b, uint32_t id, uint64_t *out)
{
	uint64_t n = 1;
	struct btf_record r = bare_type(b, id);

	/* The depth was measured before; a product beyond 4 GiB is not a kernel's. */
	for (; r.kind == BTF_ARRAY; r = bare_type(b, btf_u32(r.items))) {
		n *= btf_u32(r.items + 8);
		if (n > UINT32_MAX)
			return -EINVAL;
	}
	switch (r.kind) {
	case BTF_INT:
	case BTF_FLOAT:
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_ENUM:
	case BTF_ENUM64:
		*out = n * r.size_or_type;
		break;
	case BTF_PTR:
		*out = n * 8;
		break;
	default:
		*out = 0;
		break;
	}
	return *out > UINT32_MAX ? -EINVAL : 0;
}

static struct btf_types_place member_place(const struct btf_record *r, uint32_t i, uint64_t bits)
{
	const uint8_t *p = r->items + (size_t)i * 12;
	uint32_t off = btf_u32(p + 8);

	return (struct btf_types_place){
		.type = btf_u32(p + 4),
		.bits = bits + (r->kind_flag ? off & 0xffffff : off),
		.bit_count = r->kind_flag ? off >> 24 : 0,
	};
}

/* Finds the member of this name in r, which begins at `bits`, also in anonymous members. */
static int find_member(struct btf_types_search *s, const struct btf_record *r, uint64_t bits,
		       struct btf_types_place *out)
{
	if (r->kind != BTF_STRUCT && r->kind != BTF_UNION)
		return -ENOENT;
	for (uint32_t i = 0; i < r->vlen; i++) {
		const char *name = s->b->strings + btf_u32(r->items + (size_t)i * 12);
		struct btf_types_place p = member_place(r, i, bits);
		struct btf_record inner;
		int ret;

		if (++*s->visits > MAX_VISITS)
			return -EINVAL;
		if (types_step_is(s->step, name)) {
			*out = p;
			return 0;
		}
		if (*name)
			continue;
		inner = bare_type(s->b, p.type);
		ret = find_member(s, &inner, p.bits, out);
		if (ret != -ENOENT)
			return ret;
	}
	return -ENOENT;
}

static int find_element(const struct btf *b, const struct types_step *step,
			struct btf_types_place *p)
{
	struct btf_record r = bare_type(b, p->type);
	uint64_t size;
	int ret;

	if (r.kind != BTF_ARRAY || step->index >= btf_u32(r.items + 8))
		return -ENOENT;
	p->type = btf_u32(r.items);
	ret = size_of(b, p->type, &size);
	if (ret < 0)
		return ret;
	size *= step->index; /* both below 2^32 */
	if (size > UINT32_MAX)
		return -EINVAL;
	p->bits += 8 * size;
	return 0;
}

/*
 * Handles a bit field before kind_flag (4.20), which had an integer type of its own: BTF_INT is
 * followed by encoding:8 (the upper four unused), offset:8, :8, bits:8.
 */
static void old_bit_field(const struct btf *b, struct btf_types_place *p)
{
	struct btf_record r = bare_type(b, p->type);
	uint32_t v;

	if (p->bit_count || r.kind != BTF_INT)
		return;
	v = btf_u32(r.items);
	if ((v & 0xff) == 8 * r.size_or_type && !(v >> 16 & 0xff) && p->bits % 8 == 0)
		return;
	p->bits += v >> 16 & 0xff;
	p->bit_count = v & 0xff;
}

static int btf_types_describe(const struct btf *b, struct btf_types_place *p, uint32_t struct_size,
			      struct type_member *out)
{
	uint64_t size;
	int ret = size_of(b, p->type, &size);

	if (ret < 0)
		return ret;
	old_bit_field(b, p);
	return types_member_at(p->bits, p->bit_count, size, struct_size, out);
}

static int member_of(const struct btf *b, uint32_t id, const char *path, unsigned int *visits,
		     struct type_member *out)
{
	struct types_step step;
	struct btf_types_search s = { .b = b, .step = &step, .visits = visits };
	struct btf_types_place p = { .type = id };
	int ret;

	for (ret = types_path_name(&path, &step); ret > 0; ret = types_path_next(&path, &step)) {
		struct btf_record r = bare_type(b, p.type);

		ret = step.name ? find_member(&s, &r, p.bits, &p) : find_element(b, &step, &p);
		if (ret < 0)
			return ret;
	}
	return ret ? ret : btf_types_describe(b, &p, btf_record(b, id).size_or_type, out);
}

/* Returns the next structure of this name after *link; 0 in *link: the first one. */
static uint32_t next_structure(const struct btf *b, const char *name, uint32_t *link)
{
	uint32_t i = *link ? b->next[*link - 1].next : b->bucket[btf_hash(name) & b->bucket_mask];

	for (; i; i = b->next[i - 1].next) {
		uint32_t id = b->next[i - 1].id;

		*link = i;
		if (!strcmp(b->strings + btf_record(b, id).name, name))
			return id;
	}
	return 0;
}

static int types_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	const struct btf *b = ctx;
	unsigned int visits = 0;
	uint32_t id, link = 0;
	int ret = -ENOENT;

	while ((id = next_structure(b, structure, &link))) {
		int one = member_of(b, id, path, &visits, out);

		if (one == 0)
			return 0;
		if (one != -ENOENT)
			ret = one;
	}
	return ret;
}

static int types_size(void *ctx, const char *structure, uint64_t *out)
{
	const struct btf *b = ctx;
	uint32_t link = 0, id = next_structure(b, structure, &link);

	if (!id)
		return -ENOENT;
	*out = btf_record(b, id).size_or_type;
	return 0;
}

static int64_t enum_value(const struct btf *b, const struct btf_record *r, const uint8_t *item)
{
	uint32_t v = btf_u32(item + 4);

	if (r->kind == BTF_ENUM64)
		return (int64_t)((uint64_t)btf_u32(item + 8) << 32 | v);
	return r->kind_flag || !b->enum_flag_is_sign ? (int64_t)(int32_t)v : (int64_t)v;
}

/* There are a few such queries per kernel, so an index is not worth it. */
static int types_enumerator(void *ctx, const char *name, int64_t *out)
{
	const struct btf *b = ctx;

	for (uint32_t e = 0; e < b->nenums; e++) {
		struct btf_record r = btf_record(b, b->enums[e]);
		uint32_t step = btf_item_len(r.kind);

		for (uint32_t i = 0; i < r.vlen; i++) {
			const uint8_t *p = r.items + (size_t)i * step;

			if (!strcmp(b->strings + btf_u32(p), name)) {
				*out = enum_value(b, &r, p);
				return 0;
			}
		}
	}
	return -ENOENT;
}

struct types btf_types(const struct btf *b)
{
	return (struct types){
		.member = types_member,
		.size = types_size,
		.enumerator = types_enumerator,
		.ctx = (void *)(uintptr_t)b,
	};
}
