/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp_regs: parses the registers of an x86-64 in the GDB remote protocol.
 *
 * The target description defines their order (GDB manual, appendix G). It is XML. Only the elements
 * <reg> and <xi:include> are used, with attributes in double or single quotes.
 */
#ifndef KVMPROF_VMM_ATTACH_RSP_REGS_H
#define KVMPROF_VMM_ATTACH_RSP_REGS_H

#include "base/err.h"
#include "base/sample.h"

#include <stddef.h>
#include <stdint.h>

#define RSP_MAX_INCLUDES 8u
#define RSP_MAX_REGS 512u

struct rsp_place {
	uint32_t off, len; /* bytes; len 0: not there */
};

/* The places of the registers in a `g` packet, from the target description. */
struct rsp_layout {
	struct rsp_place gpr[GPR_COUNT], rip, rflags, cs, ss, fs_base, gs_base, kernel_gs, cr0, cr2,
		cr3, cr4, cr8, efer;
	uint32_t size; /* bytes of all registers */
};

/*
 * Parses a description, whose files follow each other in the order of their inclusion. Returns 0;
 * -ENOTSUP if it is not of an x86-64 or lacks registers that define the page tables; -EPROTO or
 * -E2BIG if it is malformed.
 */
int rsp_layout_parse(struct rsp_layout *out, const char *xml, size_t len, struct err *e);
/*
 * Stores the names of the files that a description includes, in order. Returns their number, at
 * most RSP_MAX_INCLUDES; further ones are left out.
 */
unsigned int rsp_includes(const char *xml, size_t len, char name[RSP_MAX_INCLUDES][64]);
/*
 * Parses the data of a `g` reply, len hex digits. Registers that the stub does not have are 0.
 * Returns 0, or -EPROTO if a required register is missing or unknown.
 */
int rsp_regs_parse(const struct rsp_layout *l, const char *hex, size_t len, struct sample_regs *out,
		   uint64_t *kernel_gs);

#endif
