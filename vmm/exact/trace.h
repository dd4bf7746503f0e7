/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace: the record of what an exact run executed, as sums at fixed counts of instructions and,
 * within windows, block by block. It serves to find where two runs diverge.
 *
 * It is one memory file. The plugin inside QEMU maps and writes it; the program reads it after
 * QEMU has ended:
 *
 *	file   := head, to TRACE_DATA | check... (nchecks) | record... (used bytes)
 *	check  := struct trace_sums after 1, 2, ... times `step` instructions
 *	record := struct trace_block | u8 length...(insns) | u8 code...(len) | 0..., to 8 bytes
 *		| struct trace_access
 *
 * A file contains either checks or records. The sums do not depend on how QEMU divides code into
 * blocks: `flow` covers the address and bytes of each instruction, `values` the address and value
 * of each memory access. The guest may have taken over QEMU, so the reader checks each number. The
 * reader allocates nothing; one thread at a time.
 */
#ifndef KVMPROF_VMM_EXACT_TRACE_H
#define KVMPROF_VMM_EXACT_TRACE_H

#include "base/err.h"
#include "vmm/exact/shared.h"

#include <stdbool.h>
#include <stddef.h>

#define TRACE_MAGIC UINT64_C(0x31454341525456) /* "VTRACE1" as bytes */
#define TRACE_DATA 4096u		       /* where checks or records begin */
#define TRACE_SIZE (UINT64_C(1) << 30)	       /* file size; the file is sparse */
#define TRACE_MAX_INSNS 512u		       /* most instructions of a block */
#define TRACE_MAX_CODE (TRACE_MAX_INSNS * 15u) /* bytes of a block */
#define TRACE_WINDOWS 2u

struct trace_sums {
	uint64_t flow, values;
};

struct trace_head {
	uint64_t magic, step;
	uint64_t count; /* instructions that the sums cover */
	struct trace_sums sums;
	uint64_t nchecks;
	uint64_t used;	     /* bytes of all records */
	uint64_t full;	     /* checks or records that did not fit */
	uint64_t has_values; /* whether this QEMU reports the values of accesses */
};

enum trace_kind { TRACE_BLOCK = 1, TRACE_READ, TRACE_WRITE };

struct trace_block {
	uint32_t kind; /* TRACE_BLOCK */
	uint16_t insns, len;
	uint64_t before; /* instructions executed before this block */
	uint64_t pc;
	struct exact_regs regs; /* at the start of the block */
};

struct trace_access {
	uint32_t kind;		  /* TRACE_READ or TRACE_WRITE */
	uint16_t off;		  /* offset of the instruction in its block, bytes */
	uint16_t size;		  /* bytes */
	uint64_t va, value, high; /* high: bytes 8 to 15 of a 16-byte access */
};

/* The plan of a trace: either checks (step not 0) or the records of windows. */
struct trace_plan {
	uint64_t step;
	struct {
		uint64_t from, to; /* instruction numbers; to 0: unused */
	} window[TRACE_WINDOWS];
};

struct trace_reader {
	const uint8_t *data;
	size_t len; /* bytes of all records */
	size_t at;
	struct trace_head head;
	const struct trace_sums *check; /* head.nchecks elements */
};

/* One record, by value; length and code point into the file's data. */
struct trace_record {
	enum trace_kind kind;
	struct trace_block block;
	const uint8_t *length, *code;
	struct trace_access access;
};

/*
 * Checks the head of data[0..len) and initialises *out, which refers to data: data must outlive
 * the reader and everything read with it. Returns 0, or -EINVAL with *e set if it is not a
 * complete trace.
 */
int trace_open(struct trace_reader *out, const void *data, size_t len, struct err *e);
/*
 * Reads the next record into *out. Returns 1 if there was one, 0 at the end, or -EINVAL with *e
 * set if it is damaged.
 */
int trace_next(struct trace_reader *r, struct trace_record *out, struct err *e);

#endif
