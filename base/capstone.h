/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capstone: the functions of libcapstone that decode instructions, loaded when first needed. Its
 * tables take 3 MiB of memory, which most runs have no use for.
 */
#ifndef KVMPROF_BASE_CAPSTONE_H
#define KVMPROF_BASE_CAPSTONE_H

#include "base/library.h"

#include <capstone/capstone.h>

/* clang-format off */
#define CAPSTONE_FUNCTIONS(X)                                                                  \
	X(cs_open) X(cs_close) X(cs_option) X(cs_malloc) X(cs_free) X(cs_disasm_iter) X(cs_strerror)
/* clang-format on */

struct capstone {
	CAPSTONE_FUNCTIONS(LIBRARY_MEMBER)
};

/*
 * For the life of the process; any thread. NULL: it can't be loaded, and e says why. A thread that
 * the sandbox binds may call it only where it has been called before.
 */
const struct capstone *capstone_get(struct err *e);

#endif
