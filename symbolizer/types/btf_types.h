/* SPDX-License-Identifier: GPL-2.0-or-later */
/* btf_types: where the members of structures lie, by opened BTF. */
#ifndef KVMPROF_SYMBOLIZER_TYPES_BTF_TYPES_H
#define KVMPROF_SYMBOLIZER_TYPES_BTF_TYPES_H

#include "symbolizer/types/btf.h"
#include "symbolizer/types/types.h"

/*
 * Answers (symbolizer/types/types.h); valid as long as b is. Of several structures with
 * one name, the first one that has the member answers. pahole, which writes it, makes
 * one array of an array of arrays: [n] counts the innermost elements.
 */
struct types btf_types(const struct btf *b);

#endif
