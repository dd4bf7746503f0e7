/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/memref.h"

#include "base/cursor.h"

#include <linux/perf_event.h>

/* -- bytes ------------------------------------------------------------------------------ */

size_t memref_raw_size(const struct mem_refs *m)
{
	return 4 + MEMREF_HEAD + (1 + (size_t)m->n) * MEMREF_SIZE;
}

static void put_ref(struct buf *b, const struct mem_ref *r)
{
	buf_u64(b, r->va);
	buf_u64(b, r->gpa);
	buf_u16(b, r->size);
	buf_u16(b, (uint16_t)r->node);
	buf_u8(b, r->access);
	buf_u8(b, r->region);
	buf_u8(b, r->status);
	buf_u8(b, r->guest_shift);
	buf_u8(b, r->host_shift);
	buf_u8(b, r->host);
	buf_u8(b, r->flags);
	buf_add(b, NULL, 5);
}

void memref_put(struct buf *b, const struct mem_refs *m)
{
	buf_u32(b, MEMREF_MAGIC);
	buf_u8(b, MEMREF_VERSION);
	buf_u8(b, m->why);
	buf_u8(b, m->n);
	buf_u8(b, MEMREF_SIZE);
	buf_u32(b, 0);
	put_ref(b, &m->code);
	for (unsigned int i = 0; i < m->n; i++)
		put_ref(b, &m->ref[i]);
}

static bool is_page_shift(uint8_t shift)
{
	return shift == 0 || shift == 12 || shift == 21 || shift == 30;
}

/* c covers one whole ref, which may be longer than the part known to this version. */
static bool parse_ref(struct cursor c, struct mem_ref *r)
{
	r->va = cursor_u64(&c);
	r->gpa = cursor_u64(&c);
	r->size = cursor_u16(&c);
	r->node = (int16_t)cursor_u16(&c);
	r->access = cursor_u8(&c) & (MEMOP_READ | MEMOP_WRITE);
	r->region = cursor_u8(&c);
	r->status = cursor_u8(&c);
	r->guest_shift = cursor_u8(&c);
	r->host_shift = cursor_u8(&c);
	r->host = cursor_u8(&c);
	r->flags = cursor_u8(&c);
	return !c.bad && r->region < MEM_REGION_COUNT && r->status < MEM_STATUS_COUNT &&
	       r->host < MEM_HOST_COUNT && is_page_shift(r->guest_shift) && r->host_shift < 64;
}

bool memref_parse(const uint8_t *bytes, size_t len, struct mem_refs *out)
{
	struct cursor c;
	struct mem_refs m = { 0 };
	uint8_t version, size;
	uint32_t magic;

	cursor_init(&c, bytes, len);
	magic = cursor_u32(&c);
	version = cursor_u8(&c);
	m.why = cursor_u8(&c);
	m.n = cursor_u8(&c);
	size = cursor_u8(&c);
	cursor_skip(&c, 4);
	if (c.bad || magic != MEMREF_MAGIC || version != MEMREF_VERSION ||
	    m.why >= MEMOP_WHY_COUNT || m.n > MEMREF_MAX || size < MEMREF_SIZE)
		return false;
	for (unsigned int i = 0; i <= m.n; i++) {
		struct cursor one = cursor_window(&c, MEMREF_HEAD + i * (size_t)size, size);

		if (!parse_ref(one, i ? &m.ref[i - 1] : &m.code))
			return false;
	}
	*out = m;
	return true;
}

/* -- for perf ---------------------------------------------------------------------------- */

uint64_t memref_data_src(const struct mem_refs *m)
{
	union perf_mem_data_src d = {
		.mem_op = PERF_MEM_OP_NA,
		.mem_lvl = PERF_MEM_LVL_NA,
		.mem_snoop = PERF_MEM_SNOOP_NA,
		.mem_lock = PERF_MEM_LOCK_NA,
		.mem_dtlb = PERF_MEM_TLB_NA,
		.mem_lvl_num = PERF_MEM_LVLNUM_NA,
	};

	if (m->n) {
		const struct mem_ref *r = &m->ref[0];

		if (r->access)
			d.mem_op = (r->access & MEMOP_READ ? PERF_MEM_OP_LOAD : 0u) |
				   (r->access & MEMOP_WRITE ? PERF_MEM_OP_STORE : 0u);
		if (r->flags & MEM_FLAG_LOCKED)
			d.mem_lock = PERF_MEM_LOCK_LOCKED;
		if (r->flags & MEM_FLAG_DEVICE)
			d.mem_lvl = PERF_MEM_LVL_IO | PERF_MEM_LVL_HIT;
	}
	return d.val;
}

/* -- for people -------------------------------------------------------------------------- */

const char *memref_region_name(uint8_t region)
{
	static const char *const name[MEM_REGION_COUNT] = {
		[MEM_REGION_UNKNOWN] = "unknown",
		[MEM_KERNEL_TEXT] = "kernel text",
		[MEM_KERNEL_DATA] = "kernel data",
		[MEM_MODULE] = "module",
		[MEM_KERNEL_STACK] = "kernel stack",
		[MEM_PERCPU] = "per-CPU",
		[MEM_DIRECT_MAP] = "direct map",
		[MEM_VMALLOC] = "vmalloc",
		[MEM_VMEMMAP] = "vmemmap",
		[MEM_ENTRY_AREA] = "CPU entry area",
		[MEM_FIXMAP] = "fixmap",
		[MEM_KERNEL_OTHER] = "other kernel",
		[MEM_USER_TEXT] = "user text",
		[MEM_USER_FILE] = "user file",
		[MEM_USER_STACK] = "user stack",
		[MEM_USER_HEAP] = "user heap",
		[MEM_USER_ANON] = "user anon",
		[MEM_USER_OTHER] = "other user",
	};

	return region < MEM_REGION_COUNT ? name[region] : "?";
}

const char *memref_status_text(uint8_t status)
{
	static const char *const text[MEM_STATUS_COUNT] = {
		[MEM_OK] = "",
		[MEM_GONE] = "not mapped any more when it was looked up, or not yet",
		[MEM_NOT_CANONICAL] = "no canonical address",
		[MEM_NO_PAGING] = "32-bit page tables",
	};

	return status < MEM_STATUS_COUNT ? text[status] : "?";
}

const char *memref_host_text(uint8_t host)
{
	static const char *const text[MEM_HOST_COUNT] = {
		[MEM_HOST_OK] = "",
		[MEM_HOST_NO_RIGHT] = "only root can see the host's huge pages",
		[MEM_HOST_ABSENT] = "the host had no page there",
		[MEM_HOST_NO_FILE] = "/proc/self/pagemap cannot be read",
		[MEM_HOST_DEVICE] = "not RAM",
	};

	return host < MEM_HOST_COUNT ? text[host] : "?";
}
