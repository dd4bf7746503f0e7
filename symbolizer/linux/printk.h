/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_printk: the kernel's log, read from its ring buffer.
 *
 *	since 5.10	the variable prb points to a struct printk_ringbuffer
 *			(kernel/printk/printk_ringbuffer.h, "printk: use the lockless ringbuffer"):
 *			printk_ring.c
 *	before		the variable log_buf points to records of struct printk_log: printk_old.c
 *
 * Offsets come from the kernel's types. Without types, the forms of released kernels are compared
 * with what is in memory, and the log is unknown unless exactly one of them agrees.
 *
 * The guest may run meanwhile, and may lie. A record that changed while it was read is left out and
 * counted. Any thread may call the functions; addresses are run-time guest virtual ones.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_PRINTK_H
#define KVMPROF_SYMBOLIZER_LINUX_PRINTK_H

#include "base/buf.h"
#include "base/err.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * CONFIG_LOG_BUF_SHIFT ends at 25. log_buf_len= may request more; then the last records are read.
 */
#define LINUX_PRINTK_MAX_RECORDS (1u << 18)
#define LINUX_PRINTK_MAX_BYTES (32u << 20)
#define LINUX_PRINTK_PRINTERS 5u
/* Bytes of struct dev_printk_info, with a NUL. */
#define LINUX_PRINTK_SUBSYSTEM 17u
#define LINUX_PRINTK_DEVICE 49u

/* Offsets in struct printk_ringbuffer and in the structures that it points to. */
struct linux_printk_ring {
	uint32_t count_bits, descs, infos, head_id, tail_id; /* members of desc_ring */
	uint32_t size_bits, data;			     /* members of text_data_ring */
	uint32_t desc_size, state, begin, next;		     /* struct prb_desc */
	uint32_t info_size, seq, ts, text_len, facility,
		caller; /* struct printk_info; flags and level follow facility */
	uint32_t subsystem, subsystem_len, device, device_len; /* lengths of 0: unknown */
};

struct linux_printk_layout {
	uint64_t prb; /* address of the variable; 0: there is none */
	bool by_types;
	struct linux_printk_ring ring; /* valid with by_types */
	/* Addresses of the older buffer's variables; log_buf 0: there is none. */
	uint64_t log_buf, log_buf_len, first_idx, next_idx;
	uint64_t time;	    /* printk_time; 0: unknown */
	uint64_t rodata[2]; /* the kernel's constants; 0: unknown */
	struct linux_printk_code {
		uint64_t addr, len;
	} code[LINUX_PRINTK_PRINTERS]; /* functions that print the prefix; addr 0: there is none */
};

/*
 * Finds the variables and offsets. types and symbols may be NULL. Returns 0, or -ENOENT with the
 * reason in *e if the kernel has no log that can be found.
 */
int linux_printk_layout(struct linux_printk_layout *out, const struct types *types,
			const struct symtab *symbols, struct err *e);

#define LINUX_PRINTK_IS_CPU UINT32_C(0x80000000) /* caller: a processor's number, no thread id */

struct linux_printk_record {
	uint64_t seq;	 /* number of the record since the boot; 0 in the older buffer */
	uint64_t ts_ns;	 /* on the kernel's clock of the scheduler */
	uint32_t caller; /* 0: unknown, or the idle thread of the boot */
	uint8_t facility, level;
	const char *text; /* any bytes, without the last newline; valid during the call */
	size_t len;
	/* The device that the message is about; "": none, or unknown. */
	char subsystem[LINUX_PRINTK_SUBSYSTEM], device[LINUX_PRINTK_DEVICE];
};

/* What a reading left out. */
struct linux_printk_losses {
	uint64_t unfinished;  /* records that were being written */
	uint64_t overwritten; /* records whose text or descriptor the kernel has used again */
	uint64_t absent;      /* records of which a page is not in memory */
	bool ended_early; /* older buffer: a record could not be believed; none after it was read */
};

/* Returns 0 to continue. Any other value ends the reading, which then returns it. */
typedef int (*linux_printk_fn)(void *ctx, const struct linux_printk_record *r);

/* Which records are wanted, and what is called for each. */
struct linux_printk_reading {
	size_t most; /* the last so many */
	linux_printk_fn each;
	void *ctx;
	struct linux_printk_losses losses; /* result */
};

/*
 * Calls r->each() for the last r->most records that are complete, the oldest first. Returns 0, or
 * -ENOENT if no form of the log agrees with memory, -EFAULT if the log's variables or all of its
 * records cannot be read, or -ENOMEM. *e has the reason.
 */
int linux_printk_read(const struct linux_printk_layout *l, const struct memory *m,
		      struct linux_printk_reading *r, struct err *e);

/* What the kernel prints in front of each line. */
struct linux_printk_style {
	bool level;  /* "<N>", as syslog(2) returns it; never set by linux_printk_style() */
	bool time;   /* printk_time */
	bool caller; /* CONFIG_PRINTK_CALLER */
};

/*
 * Finds out what this kernel prints in front of a line. time is true if that is unknown. caller is
 * true if the functions that print the prefix refer to the format of a caller's id.
 */
struct linux_printk_style linux_printk_style(const struct linux_printk_layout *l,
					     const struct memory *m);

/*
 * Appends a record as the kernel prints it (record_print_text()): each of its lines with the prefix
 * in front. The kernel cuts what exceeds its own buffer of about 1,000 bytes; this does not.
 */
void linux_printk_print(const struct linux_printk_record *r, const struct linux_printk_style *style,
			struct buf *out);

/*
 * Stores the caller's id as the kernel prints it, "T" and a thread's id or "C" and a processor's
 * number, in out[0..11].
 */
void linux_printk_caller(const struct linux_printk_record *r, char out[12]);

#endif
