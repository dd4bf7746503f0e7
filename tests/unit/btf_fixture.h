/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf_fixture: BTF built record by record.
 *
 * bf_kernel() is used by the tests of answers; its types in C:
 *
 * 	struct list_head { struct list_head *next, *prev; };
 * 	typedef int pid_t;
 * 	struct task {
 * 		char comm[16];
 * 		const pid_t pid;
 * 		unsigned int low : 3, high : 7;		// from byte 20 on
 * 		union {
 * 			int number;
 * 			struct { int x, y; };
 * 		};					// byte 24
 * 		struct list_head run[2];		// byte 32
 * 		struct list_head tail[];		// byte 64
 * 	};
 * 	struct other { int first; };			// and again, with { int x, first, second; }
 */
#ifndef KVMPROF_TESTS_UNIT_BTF_FIXTURE_H
#define KVMPROF_TESTS_UNIT_BTF_FIXTURE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct bf {
	struct buf types, strings;
	uint32_t n; /* number of types so far */
};

enum {
	BF_INT = 1,
	BF_PTR,
	BF_ARRAY,
	BF_STRUCT,
	BF_UNION,
	BF_ENUM,
	BF_FWD,
	BF_TYPEDEF,
	BF_VOLATILE,
	BF_CONST,
	BF_RESTRICT,
	BF_FUNC,
	BF_FUNC_PROTO,
	BF_VAR,
	BF_DATASEC,
	BF_FLOAT,
	BF_DECL_TAG,
	BF_TYPE_TAG,
	BF_ENUM64,
};

static inline void bf_init(struct bf *f)
{
	buf_init(&f->types);
	buf_init(&f->strings);
	buf_u8(&f->strings, 0);
	f->n = 0;
}

static inline uint32_t bf_name(struct bf *f, const char *name)
{
	uint32_t at = (uint32_t)f->strings.len;

	if (!name)
		return 0;
	buf_add(&f->strings, name, strlen(name) + 1);
	return at;
}

/* Returns the new type's id. */
static inline uint32_t bf_type(struct bf *f, uint32_t kind, const char *name, uint32_t vlen,
			       bool flag, uint32_t size_or_type)
{
	buf_u32(&f->types, bf_name(f, name));
	buf_u32(&f->types, vlen | kind << 24 | (uint32_t)flag << 31);
	buf_u32(&f->types, size_or_type);
	return ++f->n;
}

static inline uint32_t bf_int(struct bf *f, const char *name, uint32_t size, uint32_t bits,
			      uint32_t off)
{
	uint32_t id = bf_type(f, BF_INT, name, 0, false, size);

	buf_u32(&f->types, bits | off << 16);
	return id;
}

static inline uint32_t bf_array(struct bf *f, uint32_t elem, uint32_t n)
{
	uint32_t id = bf_type(f, BF_ARRAY, NULL, 0, false, 0);

	buf_u32(&f->types, elem);
	buf_u32(&f->types, 1);
	buf_u32(&f->types, n);
	return id;
}

static inline void bf_member(struct bf *f, const char *name, uint32_t type, uint32_t bits)
{
	buf_u32(&f->types, bf_name(f, name));
	buf_u32(&f->types, type);
	buf_u32(&f->types, bits);
}

static inline void bf_value(struct bf *f, const char *name, int32_t v)
{
	buf_u32(&f->types, bf_name(f, name));
	buf_u32(&f->types, (uint32_t)v);
}

/* Writes header, types and strings to *out; f is empty afterwards. */
static inline void bf_finish(struct bf *f, struct buf *out)
{
	buf_u16(out, 0xeb9f);
	buf_u8(out, 1);
	buf_u8(out, 0);
	buf_u32(out, 24);
	buf_u32(out, 0);
	buf_u32(out, (uint32_t)f->types.len);
	buf_u32(out, (uint32_t)f->types.len);
	buf_u32(out, (uint32_t)f->strings.len);
	buf_add(out, f->types.data, f->types.len);
	buf_add(out, f->strings.data, f->strings.len);
	buf_deinit(&f->types);
	buf_deinit(&f->strings);
}

static inline void bf_kernel_task(struct bf *f, uint32_t num, uint32_t comm, uint32_t pid,
				  uint32_t list)
{
	uint32_t run = bf_array(f, list, 2), tail = bf_array(f, list, 0);
	uint32_t pair, both;

	pair = bf_type(f, BF_STRUCT, NULL, 2, false, 8);
	bf_member(f, "x", num, 0);
	bf_member(f, "y", num, 32);
	both = bf_type(f, BF_UNION, NULL, 2, false, 8);
	bf_member(f, "number", num, 0);
	bf_member(f, NULL, pair, 0);
	/* Accessed through a typedef, as anonymous members may be. */
	both = bf_type(f, BF_TYPEDEF, "both_t", 0, false, both);
	bf_type(f, BF_STRUCT, "task", 7, true, 64);
	bf_member(f, "comm", comm, 0);
	bf_member(f, "pid", pid, 128);
	bf_member(f, "low", num, 3u << 24 | 160);
	bf_member(f, "high", num, 7u << 24 | 163);
	bf_member(f, NULL, both, 192);
	bf_member(f, "run", run, 256);
	bf_member(f, "tail", tail, 512);
}

static inline void bf_kernel(struct buf *out)
{
	uint32_t num, byte, list, pid;
	struct bf f;

	bf_init(&f);
	num = bf_int(&f, "int", 4, 32, 0);
	byte = bf_int(&f, "char", 1, 8, 0);
	list = bf_type(&f, BF_STRUCT, "list_head", 2, false, 16);
	bf_member(&f, "next", list + 1, 0); /* forward */
	bf_member(&f, "prev", list + 1, 64);
	bf_type(&f, BF_PTR, NULL, 0, false, list);
	pid = bf_type(&f, BF_TYPEDEF, "pid_t", 0, false, num);
	pid = bf_type(&f, BF_TYPE_TAG, "user", 0, false, pid);
	pid = bf_type(&f, BF_VOLATILE, NULL, 0, false, pid);
	pid = bf_type(&f, BF_RESTRICT, NULL, 0, false, pid);
	pid = bf_type(&f, BF_CONST, NULL, 0, false, pid);
	bf_kernel_task(&f, num, bf_array(&f, byte, 16), pid, list);
	bf_type(&f, BF_STRUCT, "other", 1, false, 4);
	bf_member(&f, "first", num, 0);
	bf_type(&f, BF_STRUCT, "other", 3, false, 12);
	bf_member(&f, "x", num, 0);
	bf_member(&f, "first", num, 32);
	bf_member(&f, "second", num, 64);
	bf_type(&f, BF_ENUM, "sign", 2, true, 4);
	bf_value(&f, "MINUS", -1);
	bf_value(&f, "PLUS", 1);
	bf_type(&f, BF_ENUM, NULL, 1, false, 4);
	bf_value(&f, "HIGH_BIT", INT32_MIN);
	bf_type(&f, BF_ENUM64, "wide", 1, false, 8);
	bf_member(&f, "WIDE", 0x89abcdef, 0x01234567);
	/* The other kinds, which must be skipped. */
	bf_type(&f, BF_FWD, "unknown", 0, false, 0);
	bf_type(&f, BF_FLOAT, "double", 0, false, 8);
	bf_type(&f, BF_FUNC_PROTO, NULL, 1, false, num);
	bf_value(&f, "argument", (int32_t)num);
	bf_type(&f, BF_FUNC, "function", 1, false, f.n);
	bf_type(&f, BF_VAR, "variable", 0, false, num);
	buf_u32(&f.types, 1);
	bf_type(&f, BF_DATASEC, ".data..percpu", 1, false, 4);
	bf_member(&f, NULL, 0, 4);
	buf_put32(&f.types, f.types.len - 12, f.n - 1);
	bf_type(&f, BF_DECL_TAG, "tag", 0, false, list);
	buf_u32(&f.types, UINT32_MAX);
	bf_type(&f, BF_STRUCT, "last", 2, false, 8);
	bf_member(&f, "a", num, 0);
	bf_member(&f, "b", num, 32);
	bf_finish(&f, out);
}

#endif
