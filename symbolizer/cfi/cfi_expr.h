/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_expr: DWARF expressions, as far as call frame information uses them (DWARF 5,
 * 2.5.1 and 6.4.2). Operations that need a file or a thread are refused. Inside of the room.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_EXPR_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_EXPR_H

#include "symbolizer/cfi/cfi.h"

#include <stddef.h>

#define CFI_EXPR_STEPS 256u /* operations carried out: an expression may loop */
#define CFI_EXPR_DEPTH 32u

struct cfi_expr {
	const uint8_t *bytes;
	size_t len;
	const uint64_t *first; /* on the stack at its beginning; NULL: nothing */
};

/* CFI_STEP_ON: *out is set. */
enum cfi_step cfi_expr_eval(const struct cfi_expr *x, const struct cfi_regs *g,
			    struct cfi_stack *stack, uint64_t *out);

#endif
