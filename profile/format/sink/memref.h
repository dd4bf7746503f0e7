/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memref: the memory that a sampled instruction was about to use, as a value.
 *
 * A sample has one reference for the code at rip and one for each memory operand. perf.data has
 * fields for an address and page sizes; they hold those of the first operand. All references are
 * stored in the sample's PERF_SAMPLE_RAW field, little endian; the bytes of exittime.h may follow:
 *
 *   raw  := u32 magic "KMEM" | u8 version (1) | u8 why | u8 n | u8 ref size (32) | u32 0
 *           code-ref ref...(n)
 *   ref  := u64 va | u64 gpa | u16 size | s16 node | u8 access | u8 region | u8 status |
 *           u8 log2 of the guest's page | u8 log2 of the host's | u8 host why | u8 flags | 5 x 0
 *
 * A reader uses the ref size of the header, so that later versions can append to a ref. All
 * functions are pure; any thread may call them. Returned strings are constants.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_MEMREF_H
#define KVMPROF_PROFILE_FORMAT_SINK_MEMREF_H

#include "base/buf.h"
#include "symbolizer/core/memop.h"

#define MEMREF_MAX MEMOP_MAX
#define MEMREF_MAGIC 0x4d454d4bu /* "KMEM" */
#define MEMREF_VERSION 1u
#define MEMREF_HEAD 12u
#define MEMREF_SIZE 32u

/* The kind of memory at a virtual address. */
enum mem_region {
	MEM_REGION_UNKNOWN,
	MEM_KERNEL_TEXT,
	MEM_KERNEL_DATA, /* the kernel image except its text */
	MEM_MODULE,
	MEM_KERNEL_STACK,
	MEM_PERCPU,
	MEM_DIRECT_MAP,
	MEM_VMALLOC,
	MEM_VMEMMAP,
	MEM_ENTRY_AREA, /* cpu_entry_area: descriptor tables, entry and exception stacks */
	MEM_FIXMAP,
	MEM_KERNEL_OTHER,
	MEM_USER_TEXT, /* text of a program or library */
	MEM_USER_FILE, /* other file mappings */
	MEM_USER_STACK,
	MEM_USER_HEAP,	/* the brk area */
	MEM_USER_ANON,	/* other anonymous memory */
	MEM_USER_OTHER, /* the mapping at this address is not known */
	MEM_REGION_COUNT
};

enum mem_status {
	MEM_OK,
	MEM_GONE,	   /* not mapped at the time of the lookup, some ms after the sample */
	MEM_NOT_CANONICAL, /* not an address: the instruction will fault */
	MEM_NO_PAGING,	   /* 32-bit paging, whose tables are not read */
	MEM_STATUS_COUNT
};

/* The reason why the size of the host's page is not known. */
enum mem_host {
	MEM_HOST_OK,
	MEM_HOST_NO_RIGHT, /* /proc/kpageflags and frame numbers are readable by root only */
	MEM_HOST_ABSENT,   /* the host has no page there now: swapped out or never touched */
	MEM_HOST_NO_FILE,  /* a file in /proc cannot be read */
	MEM_HOST_DEVICE,   /* not RAM */
	MEM_HOST_COUNT
};

#define MEM_FLAG_DEVICE 1u   /* outside guest RAM: MMIO */
#define MEM_FLAG_USER 2u     /* user mode may access the page */
#define MEM_FLAG_IMPLICIT 4u /* operand of push, call or a string instruction */
#define MEM_FLAG_LOCKED 8u

#define MEM_NO_NODE (-1)

struct mem_ref {
	uint64_t va, gpa; /* guest addresses; gpa is 0 unless status is MEM_OK */
	uint16_t size;	  /* bytes; 0 unknown */
	int16_t node;	  /* the host's NUMA node, or MEM_NO_NODE */
	/* bits of enum memop_access; 0 if unknown, and for the code reference */
	uint8_t access;
	uint8_t region;	     /* enum mem_region */
	uint8_t status;	     /* enum mem_status */
	uint8_t guest_shift; /* log2 of the page size in bytes: 12, 21 or 30; 0 unknown */
	/* log2 of the host's page size in bytes; 0 unknown, see `host` */
	uint8_t host_shift;
	uint8_t host; /* enum mem_host */
	uint8_t flags;
};

struct mem_refs {
	uint8_t why; /* enum memop_why: why there are no operands */
	uint8_t n;
	struct mem_ref code;
	struct mem_ref ref[MEMREF_MAX];
};

/* Returns the length in bytes of the RAW field with its own u32 length; a multiple of 8. */
size_t memref_raw_size(const struct mem_refs *m);
/* Appends the bytes after RAW's u32 length to b. If memory runs out, b->failed is set. */
void memref_put(struct buf *b, const struct mem_refs *m);
/*
 * Parses the bytes after RAW's u32 length; further bytes may follow. Returns false, and leaves *out
 * alone, if they do not begin with a memref or a value is out of range.
 */
bool memref_parse(const uint8_t *bytes, size_t len, struct mem_refs *out);

/* Returns the first operand in perf's form (union perf_mem_data_src, PERF_SAMPLE_DATA_SRC). */
uint64_t memref_data_src(const struct mem_refs *m);

/* Returns the name of an enum mem_region ("kernel text"); "?" for other values. */
const char *memref_region_name(uint8_t region);
/*
 * Return a phrase for an enum mem_status or enum mem_host; "" for MEM_OK and MEM_HOST_OK, "?" for
 * values outside the enum.
 */
const char *memref_status_text(uint8_t status);
const char *memref_host_text(uint8_t host);

#endif
