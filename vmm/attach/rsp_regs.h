/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rsp_regs: the registers of an x86-64 in the GDB remote protocol.
 *
 * The target description says in which order they come (GDB manual, appendix G). It is XML, of which only elements <reg>
 * and <xi:include> count here, with their attributes in double or single quotes.
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

/* Where in a `g` packet the registers lie: from the target description. */
struct rsp_layout {
	struct rsp_place gpr[GPR_COUNT], rip, rflags, cs, ss, fs_base, gs_base, kernel_gs, cr0, cr2,
		cr3, cr4, cr8, efer;
	uint32_t size; /* bytes of all registers */
};

/*
 * Read a description (the files one behind the other, in the order of their inclusion).
 * -ENOTSUP: it is not of an x86-64, or lacks what the page tables need.
 */
int rsp_layout_parse(struct rsp_layout *out, const char *xml, size_t len, struct err *e);
/* Names of the files that a description includes, in order; n of them. */
unsigned int rsp_includes(const char *xml, size_t len, char name[RSP_MAX_INCLUDES][64]);
/* The data of a `g` reply. *kernel_gs is 0 when it is not known. */
int rsp_regs_parse(const struct rsp_layout *l, const char *hex, size_t len, struct sample_regs *out,
		   uint64_t *kernel_gs);

#endif
