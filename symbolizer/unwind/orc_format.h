/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orc_format: determines the form of a table's entries from their contents. Pure functions; any
 * thread.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_ORC_FORMAT_H
#define KVMPROF_SYMBOLIZER_UNWIND_ORC_FORMAT_H

#include "symbolizer/unwind/orc.h"

/*
 * Determines the form of t's entries. Returns false if they are invalid in every form; *out is
 * then unspecified.
 */
bool orc_format_find(struct orc_format *out, const struct orc_tables *t);
/*
 * Returns the first kernel with these register numbers ("4.14", "7.1"), or "found in the code";
 * static text.
 */
const char *orc_format_registers(const struct orc_format *f);
/*
 * Returns whether an entry can have its CFA relative to sp and rbp relative to bp (both enum
 * orc_reg).
 */
bool orc_format_good_regs(unsigned int sp, unsigned int bp);

#endif
