/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cfi_row: the row that the instructions of an FDE and its CIE lead to. Inside of the room. */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_ROW_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_ROW_H

#include "symbolizer/cfi/cfi_entry.h"

/* va is in [x->start, x->end). CFI_FOUND or CFI_BAD. */
enum cfi_found cfi_entry_row(const struct cfi_entry *x, uint64_t va, struct cfi_row *row);

#endif
