/* SPDX-License-Identifier: GPL-2.0-or-later */
/* orc_format: the form of a table's entries, found by what they say. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_ORC_FORMAT_H
#define KVMPROF_SYMBOLIZER_UNWIND_ORC_FORMAT_H

#include "symbolizer/unwind/orc.h"

/* false: the entries make no sense in any form. */
bool orc_format_find(struct orc_format *out, const struct orc_tables *t);
/* "4.14", "7.1": the first kernel with these numbers; "found in the code". */
const char *orc_format_registers(const struct orc_format *f);
/* May an entry count from sp, and have rbp by bp (both enum orc_reg)? */
bool orc_format_good_regs(unsigned int sp, unsigned int bp);

#endif
