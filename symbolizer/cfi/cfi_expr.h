/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_expr: evaluates DWARF expressions, as far as call frame information uses them (DWARF 5,
 * 2.5.1 and 6.4.2). Operations that need a file or a thread are rejected. Only for files in this
 * folder. No allocation; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_EXPR_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_EXPR_H

#include "symbolizer/cfi/cfi.h"

#include <stddef.h>

#define CFI_EXPR_STEPS 256u /* maximum number of executed operations: an expression may loop */
#define CFI_EXPR_DEPTH 32u

struct cfi_expr {
	const uint8_t *bytes;
	size_t len;
	const uint64_t *first; /* initial value on the stack; NULL: none */
};

/*
 * Evaluates an expression with registers g and the stack's memory. Returns CFI_STEP_ON with *out
 * set; CFI_STEP_MISSING with stack->missing set if bytes are not available; or CFI_STEP_UNKNOWN if
 * a register is unknown or the expression is invalid.
 */
enum cfi_step cfi_expr_eval(const struct cfi_expr *x, const struct cfi_regs *g,
			    struct cfi_stack *stack, uint64_t *out);

#endif
