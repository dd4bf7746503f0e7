/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf_record: the contents of struct btf, and its checked records.
 *
 * Only for btf.c and btf_types.c. Numbers of kinds and contents of records:
 * include/uapi/linux/btf.h of Linux. Reads constant data; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_BTF_RECORD_H
#define KVMPROF_SYMBOLIZER_TYPES_BTF_RECORD_H

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BTF_RECORD_LEN 12u

enum btf_kind {
	BTF_VOID = 0, /* not in the file: type 0 */
	BTF_INT,
	BTF_PTR,
	BTF_ARRAY,
	BTF_STRUCT,
	BTF_UNION,
	BTF_ENUM,
	BTF_FWD,
	BTF_TYPEDEF,
	BTF_VOLATILE,
	BTF_CONST,
	BTF_RESTRICT,
	BTF_FUNC,
	BTF_FUNC_PROTO,
	BTF_VAR,
	BTF_DATASEC,
	BTF_FLOAT,
	BTF_DECL_TAG,
	BTF_TYPE_TAG,
	BTF_ENUM64,
};

struct btf_link {
	uint32_t id, next; /* next: index + 1 in btf.next, 0: the last */
};

struct btf {
	const uint8_t *types; /* borrowed */
	size_t types_len;
	const char *strings; /* borrowed; the last byte is NUL */
	size_t strings_len;
	size_t size;
	uint32_t n;    /* number of types; ids are 1 to n */
	uint32_t *off; /* offset of each type's record, by id */
	/* Structs and unions with a name, by its hash, the lower id first. */
	uint32_t *bucket, bucket_mask;
	struct btf_link *next;
	uint32_t nstructs;
	uint32_t *enums, nenums; /* ids */
	/*
	 * Since "bpf: Add btf enum64 support" (6.0), an enum's kind_flag says that values are
	 * signed; before, it was 0 and they always were.
	 */
	bool enum_flag_is_sign;
};

struct btf_record {
	uint32_t id, name, kind, vlen, size_or_type;
	bool kind_flag;
	const uint8_t *items; /* the items after the record */
};

static inline uint32_t btf_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t btf_kind(uint32_t info)
{
	return info >> 24 & 0x1f;
}

/* Returns the bytes of one of the vlen items after a record. */
static inline uint32_t btf_item_len(uint32_t kind)
{
	switch (kind) {
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_DATASEC:
	case BTF_ENUM64:
		return 12;
	case BTF_ENUM:
	case BTF_FUNC_PROTO:
		return 8;
	default:
		return 0;
	}
}

/* Returns the bytes of everything after a record. */
static inline uint32_t btf_extra_len(uint32_t kind, uint32_t vlen)
{
	switch (kind) {
	case BTF_ARRAY:
		return 12;
	case BTF_INT:
	case BTF_VAR:
	case BTF_DECL_TAG:
		return 4;
	default:
		return btf_item_len(kind) * vlen;
	}
}

/* Returns whether the kind is a typedef or qualifier, so that it describes the same object. */
static inline bool btf_is_modifier(uint32_t kind)
{
	return kind == BTF_TYPEDEF || kind == BTF_VOLATILE || kind == BTF_CONST ||
	       kind == BTF_RESTRICT || kind == BTF_TYPE_TAG;
}

/* Returns whether size_or_type is a type. */
static inline bool btf_refers(uint32_t kind)
{
	return btf_is_modifier(kind) || kind == BTF_PTR || kind == BTF_FUNC ||
	       kind == BTF_FUNC_PROTO || kind == BTF_VAR || kind == BTF_DECL_TAG;
}

/* Returns the record of type id, which must be 1 to n. */
static inline struct btf_record btf_record(const struct btf *b, uint32_t id)
{
	const uint8_t *p = b->types + b->off[id];
	uint32_t info = btf_u32(p + 4);

	return (struct btf_record){
		.id = id,
		.name = btf_u32(p),
		.kind = btf_kind(info),
		.vlen = info & 0xffff,
		.size_or_type = btf_u32(p + 8),
		.kind_flag = info >> 31,
		.items = p + BTF_RECORD_LEN,
	};
}

/*
 * Hashes the beginning of a name, which suffices to distinguish names; a hostile one may be as
 * long as the file.
 */
static inline uint32_t btf_hash(const char *s)
{
	return hash_text32(s, 64);
}

#endif
