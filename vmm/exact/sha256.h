/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sha256: sums as sha256sum(1) prints them, on top of nettle's. The library is loaded by the runs that need it.
 */
#ifndef KVMPROF_VMM_EXACT_SHA256_H
#define KVMPROF_VMM_EXACT_SHA256_H

#include "base/err.h"

#include <nettle/sha2.h>
#include <stddef.h>

/*
 * Loads the library, before all else. A second call does nothing new. Main thread, before the sandbox binds it. Returns 0, or
 * -ENOENT with e set.
 */
int sha256_load(struct err *e);

void sha256_begin(struct sha256_ctx *c);
void sha256_add(struct sha256_ctx *c, const void *data, size_t len);
/* Ends c, and writes its sum. */
void sha256_hex(struct sha256_ctx *c, char hex[65]);

#endif
