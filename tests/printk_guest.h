/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * printk_guest: a kernel's log in a byte array, written as kernels do: that since 5.10
 * (kernel/printk/printk_ringbuffer.c) and that before.
 */
#ifndef KVMPROF_TESTS_PRINTK_GUEST_H
#define KVMPROF_TESTS_PRINTK_GUEST_H

#include "symbolizer/linux/printk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PG_BASE 0xffffffff82000000ull
#define PG_PAGE 4096u
#define PG_PAGES 24u
#define PG_BYTES (PG_PAGES * PG_PAGE)
/* Variables. */
#define PG_PRB (PG_BASE + 0x10) /* and log_buf */
#define PG_TIME (PG_BASE + 0x18)
#define PG_LOG_BUF_LEN (PG_BASE + 0x20)
#define PG_FIRST_IDX (PG_BASE + 0x24)
#define PG_NEXT_IDX (PG_BASE + 0x28)
#define PG_RODATA (PG_BASE + 0x100)
#define PG_RODATA_END (PG_BASE + 0x200)
#define PG_CODE (PG_BASE + 0x300)
#define PG_RING (PG_BASE + 0x400)
#define PG_DESCS (PG_BASE + 1 * PG_PAGE)
#define PG_INFOS (PG_BASE + 4 * PG_PAGE)
#define PG_DATA (PG_BASE + 16 * PG_PAGE)
#define PG_DATA_PAGES 8u
#define PG_COUNT_BITS 6u
#define PG_COUNT (1u << PG_COUNT_BITS)
#define PG_ID_MASK (~UINT64_C(0) >> 2)

/* struct printk_info with 16 bytes of subsystem and 48 of device. */
#define PG_INFO 88u
#define PG_DESC 24u

struct pg {
	uint8_t bytes[PG_BYTES];
	bool gone[PG_PAGES]; /* pages that are not in memory */
	unsigned int size_bits;
	uint64_t head_lpos, tail_lpos; /* positions in the text ring */
	uint64_t head, tail;	       /* ids */
	uint64_t seq;		       /* number of the next record */
	bool fits_exactly;	       /* as newer kernels: a block may end where the ring ends */
	uint32_t old_header;	       /* older buffer: bytes of struct printk_log */
	uint32_t old_first, old_next, old_len;
};

static inline size_t pg_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	const struct pg *g = ctx;
	size_t got = 0;

	(void)space;
	while (got < len && va - PG_BASE < PG_BYTES && !g->gone[(va - PG_BASE) / PG_PAGE]) {
		size_t n = PG_PAGE - va % PG_PAGE;

		n = n < len - got ? n : len - got;
		memcpy((uint8_t *)dst + got, g->bytes + (va - PG_BASE), n);
		got += n;
		va += n;
	}
	return got;
}

static inline void pg_put(struct pg *g, uint64_t va, const void *src, size_t len)
{
	if (len)
		memcpy(g->bytes + (va - PG_BASE), src, len);
}

static inline void pg_u64(struct pg *g, uint64_t va, uint64_t v)
{
	pg_put(g, va, &v, sizeof(v));
}

static inline void pg_u32(struct pg *g, uint64_t va, uint32_t v)
{
	pg_put(g, va, &v, sizeof(v));
}

static inline uint64_t pg_desc(uint64_t id)
{
	return PG_DESCS + (id & (PG_COUNT - 1)) * PG_DESC;
}

static inline uint64_t pg_state(const struct pg *g, uint64_t id)
{
	uint64_t v;

	memcpy(&v, g->bytes + (pg_desc(id) - PG_BASE), sizeof(v));
	return v;
}

/* An empty log, whose last descriptor counts as a record that has been read. */
static inline void pg_make(struct pg *g, unsigned int size_bits)
{
	memset(g, 0, sizeof(*g));
	g->size_bits = size_bits;
	g->tail = g->head = -(uint64_t)(PG_COUNT + 1) & PG_ID_MASK; /* DESC0_ID */
	g->head_lpos = g->tail_lpos = -(UINT64_C(1) << size_bits);  /* BLK0_LPOS */
	pg_u64(g, pg_desc(g->head), UINT64_C(3) << 62 | g->head);
	pg_u64(g, pg_desc(g->head) + 8, 1);
	pg_u64(g, pg_desc(g->head) + 16, 1);
	pg_u64(g, PG_PRB, PG_RING);
	g->bytes[PG_TIME - PG_BASE] = 1;
	pg_u32(g, PG_RING, PG_COUNT_BITS);
	pg_u64(g, PG_RING + 8, PG_DESCS);
	pg_u64(g, PG_RING + 16, PG_INFOS);
	pg_u64(g, PG_RING + 24, g->head);
	pg_u64(g, PG_RING + 32, g->tail);
	pg_u32(g, PG_RING + 48, size_bits);
	pg_u64(g, PG_RING + 56, PG_DATA);
	/* A form that is 8 bytes shorter must not fit: its size_bits would be this. */
	pg_u64(g, PG_RING + 40, 0x1000);
}

/* Returns where a block of `size` bytes at lpos ends; in the next round if it does not fit. */
static inline uint64_t pg_next_lpos(const struct pg *g, uint64_t lpos, uint64_t size)
{
	uint64_t next = lpos + size, bits = g->size_bits;

	if (lpos >> bits == (next - (g->fits_exactly ? 1 : 0)) >> bits)
		return next;
	return (next >> bits << bits) + size;
}

static inline void pg_drop_tail(struct pg *g)
{
	uint64_t next;

	memcpy(&next, g->bytes + (pg_desc(g->tail) + 16 - PG_BASE), sizeof(next));
	if (!(next & 1))
		g->tail_lpos = next;
	pg_u64(g, pg_desc(g->tail), UINT64_C(3) << 62 | g->tail);
	g->tail = (g->tail + 1) & PG_ID_MASK;
	pg_u64(g, PG_RING + 32, g->tail);
}

struct pg_record {
	const char *text;
	uint64_t ts_ns;
	uint8_t facility, level;
	uint32_t caller;
	const char *subsystem, *device; /* may be NULL */
};

/* Stores a record in this state (2: finished). */
static inline void pg_store(struct pg *g, const struct pg_record *r, uint64_t state)
{
	uint16_t len = (uint16_t)strlen(r->text);
	uint64_t size = (len + 8u + 7u) & ~7ull, begin = 3, next = 3, at, info, block;

	if (((g->head - g->tail) & PG_ID_MASK) == PG_COUNT - 1)
		pg_drop_tail(g);
	g->head = (g->head + 1) & PG_ID_MASK;
	pg_u64(g, PG_RING + 24, g->head);
	if (len) {
		begin = g->head_lpos;
		next = pg_next_lpos(g, begin, size);
		while (next - g->tail_lpos > UINT64_C(1) << g->size_bits)
			pg_drop_tail(g);
		g->head_lpos = next;
		block = next - begin == size ? begin : next - size;
		at = PG_DATA + (block & ((UINT64_C(1) << g->size_bits) - 1));
		pg_u64(g, at, g->head);
		pg_put(g, at + 8, r->text, len);
	}
	pg_u64(g, pg_desc(g->head), state << 62 | g->head);
	pg_u64(g, pg_desc(g->head) + 8, begin);
	pg_u64(g, pg_desc(g->head) + 16, next);
	info = PG_INFOS + (g->head & (PG_COUNT - 1)) * PG_INFO;
	memset(g->bytes + (info - PG_BASE), 0, PG_INFO);
	pg_u64(g, info, g->seq++);
	pg_u64(g, info + 8, r->ts_ns);
	pg_put(g, info + 16, &len, 2);
	g->bytes[info + 18 - PG_BASE] = r->facility;
	g->bytes[info + 19 - PG_BASE] = (uint8_t)(r->level << 5 | 2);
	pg_u32(g, info + 20, r->caller);
	if (r->subsystem)
		pg_put(g, info + 24, r->subsystem, strlen(r->subsystem));
	if (r->device)
		pg_put(g, info + 40, r->device, strlen(r->device));
}

/* An empty log of the form before 5.10, of `len` bytes. */
static inline void pg_make_old(struct pg *g, uint32_t len, uint32_t header)
{
	memset(g, 0, sizeof(*g));
	g->old_len = len;
	g->old_header = header;
	g->bytes[PG_TIME - PG_BASE] = 1;
	pg_u64(g, PG_PRB, PG_DATA);
	pg_u32(g, PG_LOG_BUF_LEN, len);
}

static inline void pg_drop_old(struct pg *g)
{
	uint16_t len;

	memcpy(&len, g->bytes + (PG_DATA + g->old_first + 8 - PG_BASE), 2);
	g->old_first = len ? g->old_first + len : 0;
}

/* log_store(); dict has `dict_len` bytes. */
static inline void pg_store_old(struct pg *g, const struct pg_record *r, const char *dict,
				uint16_t dict_len)
{
	uint16_t text_len = (uint16_t)strlen(r->text), len;
	uint64_t at;

	len = (uint16_t)((g->old_header + text_len + dict_len + 3) & ~3u);
	for (;;) {
		uint32_t room = g->old_next > g->old_first || !g->seq
					? (g->old_len - g->old_next > g->old_first
						   ? g->old_len - g->old_next
						   : g->old_first)
					: g->old_first - g->old_next;

		/* A header of zeros must fit behind the record, too. */
		if (room >= len + g->old_header)
			break;
		pg_drop_old(g);
	}
	if (g->old_next + len + g->old_header > g->old_len) {
		memset(g->bytes + (PG_DATA + g->old_next - PG_BASE), 0, g->old_header);
		g->old_next = 0;
	}
	at = PG_DATA + g->old_next;
	memset(g->bytes + (at - PG_BASE), 0, len);
	pg_u64(g, at, r->ts_ns);
	pg_put(g, at + 8, &len, 2);
	pg_put(g, at + 10, &text_len, 2);
	pg_put(g, at + 12, &dict_len, 2);
	g->bytes[at + 14 - PG_BASE] = r->facility;
	g->bytes[at + 15 - PG_BASE] = (uint8_t)(r->level << 5 | 2);
	if (g->old_header == 20)
		pg_u32(g, at + 16, r->caller);
	pg_put(g, at + g->old_header, r->text, text_len);
	pg_put(g, at + g->old_header + text_len, dict, dict_len);
	g->old_next += len;
	g->seq++;
	pg_u32(g, PG_FIRST_IDX, g->old_first);
	pg_u32(g, PG_NEXT_IDX, g->old_next);
}

/* Symbols of the variables. The caller frees them with symtab_destroy(). */
static inline struct symtab *pg_symbols(bool old)
{
	static const struct {
		const char *name;
		uint64_t at;
	} variable[] = {
		{ "printk_time", PG_TIME },
		{ "__start_rodata", PG_RODATA },
		{ "__end_rodata", PG_RODATA_END },
		{ "prb", PG_PRB },
		{ "log_buf", PG_PRB },
		{ "log_buf_len", PG_LOG_BUF_LEN },
		{ "log_first_idx", PG_FIRST_IDX },
		{ "log_next_idx", PG_NEXT_IDX },
	};
	struct symtab *t = symtab_create();
	int ret = t ? 0 : -ENOMEM;

	for (size_t i = old ? 4 : 0; !ret && i < (old ? 8 : 4); i++)
		ret = symtab_add(t, variable[i].at, 0, 'd', variable[i].name);
	for (size_t i = 0; !ret && old && i < 3; i++)
		ret = symtab_add(t, variable[i].at, 0, 'd', variable[i].name);
	ret = ret ? ret
		  : symtab_add(t, PG_CODE, 64, 't', old ? "msg_print_text" : "record_print_text");
	if (ret || symtab_freeze(t, NULL))
		abort();
	return t;
}

static const struct {
	const char *structure, *path;
	uint32_t off, size;
} pg_members[] = {
	{ "printk_ringbuffer", "desc_ring.count_bits", 0, 4 },
	{ "printk_ringbuffer", "desc_ring.descs", 8, 8 },
	{ "printk_ringbuffer", "desc_ring.infos", 16, 8 },
	{ "printk_ringbuffer", "desc_ring.head_id", 24, 8 },
	{ "printk_ringbuffer", "desc_ring.tail_id", 32, 8 },
	{ "printk_ringbuffer", "text_data_ring.size_bits", 48, 4 },
	{ "printk_ringbuffer", "text_data_ring.data", 56, 8 },
	{ "prb_desc", "state_var", 0, 8 },
	{ "prb_desc", "text_blk_lpos.begin", 8, 8 },
	{ "prb_desc", "text_blk_lpos.next", 16, 8 },
	{ "printk_info", "seq", 0, 8 },
	{ "printk_info", "ts_nsec", 8, 8 },
	{ "printk_info", "text_len", 16, 2 },
	{ "printk_info", "facility", 18, 1 },
	{ "printk_info", "caller_id", 20, 4 },
	{ "printk_info", "dev_info.subsystem", 24, 16 },
	{ "printk_info", "dev_info.device", 40, 48 },
};

/* ctx: the path of a member that is left out, or NULL. */
static inline int pg_member(void *ctx, const char *structure, const char *path,
			    struct type_member *out)
{
	for (size_t i = 0; i < sizeof(pg_members) / sizeof(pg_members[0]); i++) {
		if (strcmp(pg_members[i].structure, structure) != 0 ||
		    strcmp(pg_members[i].path, path) != 0 || (ctx && !strcmp(ctx, path)))
			continue;
		*out = (struct type_member){ .off = pg_members[i].off, .size = pg_members[i].size };
		return 0;
	}
	return -ENOENT;
}

static inline int pg_size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	*out = !strcmp(structure, "prb_desc") ? PG_DESC : PG_INFO;
	return 0;
}

static inline int pg_enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	(void)name;
	(void)out;
	return -ENOENT;
}

static const struct types pg_types = { pg_member, pg_size, pg_enumerator, NULL };

#endif
