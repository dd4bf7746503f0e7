/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_row: computes the row to which the instructions of an FDE and its CIE lead. Only for files
 * in this folder. No allocation; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_ROW_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_ROW_H

#include "symbolizer/cfi/cfi_entry.h"

/*
 * Computes the row for address va, which must be in [x->start, x->end). Returns CFI_FOUND, or
 * CFI_BAD with *row unspecified.
 */
enum cfi_found cfi_entry_row(const struct cfi_entry *x, uint64_t va, struct cfi_row *row);

#endif
