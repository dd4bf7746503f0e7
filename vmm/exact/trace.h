/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace: what an exact run executed, as sums at fixed counts of instructions and, within windows,
 * block by block: for who wants to know where two runs part.
 *
 * One memory file, mapped by the plugin inside QEMU, which writes it, and read by the program when
 * that QEMU is no more:
 *
 *	file   := head, to TRACE_DATA | check... (nchecks) | record... (used bytes)
 *	check  := struct trace_sums after 1, 2, ... times `step` instructions
 *	record := struct trace_block | u8 length...(insns) | u8 code...(len) | 0..., to 8 bytes
 *		| struct trace_access
 *
 * Checks and records are not in one file. The sums do not depend on how QEMU cuts code into blocks:
 * `flow` is of addresses and bytes of each instruction, `values` of addresses and values of each
 * access to memory. QEMU may be in the guest's hands: the reader checks each number.
 */
#ifndef KVMPROF_VMM_EXACT_TRACE_H
#define KVMPROF_VMM_EXACT_TRACE_H

#include "base/err.h"
#include "vmm/exact/shared.h"

#include <stdbool.h>
#include <stddef.h>

#define TRACE_MAGIC UINT64_C(0x31454341525456) /* "VTRACE1" as bytes */
#define TRACE_DATA 4096u		       /* where checks or records begin */
#define TRACE_SIZE (UINT64_C(1) << 30)	       /* of the file, which has holes */
#define TRACE_MAX_INSNS 512u		       /* of a block */
#define TRACE_MAX_CODE (TRACE_MAX_INSNS * 15u) /* bytes of one */
#define TRACE_WINDOWS 2u

struct trace_sums {
	uint64_t flow, values;
};

struct trace_head {
	uint64_t magic, step;
	uint64_t count; /* instructions that the sums are of */
	struct trace_sums sums;
	uint64_t nchecks;
	uint64_t used;	     /* bytes of records */
	uint64_t full;	     /* checks or records that found no room */
	uint64_t has_values; /* this QEMU tells what is read and written */
};

enum trace_kind { TRACE_BLOCK = 1, TRACE_READ, TRACE_WRITE };

struct trace_block {
	uint32_t kind; /* TRACE_BLOCK */
	uint16_t insns, len;
	uint64_t before; /* instructions before it */
	uint64_t pc;
	struct exact_regs regs; /* as it begins */
};

struct trace_access {
	uint32_t kind;		  /* TRACE_READ or TRACE_WRITE */
	uint16_t off;		  /* of the instruction, in its block */
	uint16_t size;		  /* bytes */
	uint64_t va, value, high; /* high: bytes 8 to 15 */
};

/* What is to be traced: either checks (step not 0) or the records of windows. */
struct trace_plan {
	uint64_t step;
	struct {
		uint64_t from, to; /* instructions; to 0: none */
	} window[TRACE_WINDOWS];
};

struct trace_reader {
	const uint8_t *data;
	size_t len; /* of the records */
	size_t at;
	struct trace_head head;
	const struct trace_sums *check; /* head.nchecks */
};

/* One record, as values; code and length lie in the file. */
struct trace_record {
	enum trace_kind kind;
	struct trace_block block;
	const uint8_t *length, *code;
	struct trace_access access;
};

/* data stays there as long as the reader. -EINVAL: it is none, or damaged. */
int trace_open(struct trace_reader *out, const void *data, size_t len, struct err *e);
/* 1: there is a record; 0: the end; -EINVAL: it is damaged. */
int trace_next(struct trace_reader *r, struct trace_record *out, struct err *e);

#endif
