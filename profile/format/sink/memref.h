/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memref: which memory a sampled instruction was about to use, as a value.
 *
 * One for the code at rip, and one for each memory operand. What perf.data has fields
 * for (address, page sizes) is told in them of the first operand; all of it travels in
 * the sample's PERF_SAMPLE_RAW, little endian; what is behind it is exittime.h's:
 *
 *   raw  := u32 magic "KMEM" | u8 version (1) | u8 why | u8 n | u8 ref size (32) | u32 0
 *           code-ref ref...(n)
 *   ref  := u64 va | u64 gpa | u16 size | s16 node | u8 access | u8 region | u8 status |
 *           u8 log2 of the guest's page | u8 log2 of the host's | u8 host why | u8 flags | 5 x 0
 *
 * A reader takes ref size from the head, so that a ref can grow.
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

/* What lies at a virtual address. */
enum mem_region {
	MEM_REGION_UNKNOWN,
	MEM_KERNEL_TEXT,
	MEM_KERNEL_DATA, /* the image but its text */
	MEM_MODULE,
	MEM_KERNEL_STACK,
	MEM_PERCPU,
	MEM_DIRECT_MAP,
	MEM_VMALLOC,
	MEM_VMEMMAP,
	MEM_ENTRY_AREA, /* cpu_entry_area: descriptor tables, entry and exception stacks */
	MEM_FIXMAP,
	MEM_KERNEL_OTHER,
	MEM_USER_TEXT, /* of a program or library */
	MEM_USER_FILE, /* other mappings of files */
	MEM_USER_STACK,
	MEM_USER_HEAP,	/* of brk */
	MEM_USER_ANON,	/* other memory without a file */
	MEM_USER_OTHER, /* what is mapped there is not known */
	MEM_REGION_COUNT
};

enum mem_status {
	MEM_OK,
	MEM_GONE,	   /* not mapped when it was looked up, some ms after the sample */
	MEM_NOT_CANONICAL, /* no address: the instruction will fault */
	MEM_NO_PAGING,	   /* 32-bit paging, which is not walked */
	MEM_STATUS_COUNT
};

/* Why the host's page is not known. */
enum mem_host {
	MEM_HOST_OK,
	MEM_HOST_NO_RIGHT, /* /proc/kpageflags and frame numbers are for root */
	MEM_HOST_ABSENT,   /* the host has no page there now: swapped out, or never touched */
	MEM_HOST_NO_FILE,  /* a file of /proc can't be read */
	MEM_HOST_DEVICE,   /* not RAM */
	MEM_HOST_COUNT
};

#define MEM_FLAG_DEVICE 1u   /* outside of guest RAM: MMIO */
#define MEM_FLAG_USER 2u     /* programs may access the page */
#define MEM_FLAG_IMPLICIT 4u /* push, call, string instruction */
#define MEM_FLAG_LOCKED 8u

#define MEM_NO_NODE (-1)

struct mem_ref {
	uint64_t va, gpa;    /* gpa 0 unless status is MEM_OK */
	uint16_t size;	     /* bytes, 0 unknown */
	int16_t node;	     /* the host's NUMA node, or MEM_NO_NODE */
	uint8_t access;	     /* enum memop_access bits; 0 not known, and of code */
	uint8_t region;	     /* enum mem_region */
	uint8_t status;	     /* enum mem_status */
	uint8_t guest_shift; /* log2 of the page's bytes: 12, 21, 30; 0 unknown */
	uint8_t host_shift;
	uint8_t host; /* enum mem_host */
	uint8_t flags;
};

struct mem_refs {
	uint8_t why; /* enum memop_why */
	uint8_t n;
	struct mem_ref code;
	struct mem_ref ref[MEMREF_MAX];
};

/* Length of the RAW field with that of its length, a multiple of 8; and its bytes behind that. */
size_t memref_raw_size(const struct mem_refs *m);
void memref_put(struct buf *b, const struct mem_refs *m);
/* bytes: what is behind the length. False: not ours, or nonsense. */
bool memref_parse(const uint8_t *bytes, size_t len, struct mem_refs *out);

/* The same as perf has it, of the first operand (union perf_mem_data_src). */
uint64_t memref_data_src(const struct mem_refs *m);

const char *memref_region_name(uint8_t region);
const char *memref_status_text(uint8_t status);
const char *memref_host_text(uint8_t host);

#endif
