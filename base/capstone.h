/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capstone: the functions of libcapstone that decode instructions. The library is loaded when it is
 * first needed, because its tables take 3 MiB of memory and most runs do not need them.
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
 * Returns the functions, which stay valid for the life of the process. Returns NULL with *e
 * recorded (e may be NULL) if the library cannot be loaded. Any thread may call it. A thread that
 * the sandbox has confined may call it only after another call has loaded the library.
 */
const struct capstone *capstone_get(struct err *e);

#endif
