/* SPDX-License-Identifier: GPL-2.0-or-later */
/* btf_types: finds the members of structures in opened BTF. */
#ifndef KVMPROF_SYMBOLIZER_TYPES_BTF_TYPES_H
#define KVMPROF_SYMBOLIZER_TYPES_BTF_TYPES_H

#include "symbolizer/types/btf.h"
#include "symbolizer/types/types.h"

/*
 * Returns the interface of symbolizer/types/types.h for b, which must outlive it. Any thread may
 * use it. Among several structures with one name, the first one that has the member is used.
 * pahole, which writes BTF, converts an array of arrays to one array: [n] counts the innermost
 * elements.
 */
struct types btf_types(const struct btf *b);

#endif
