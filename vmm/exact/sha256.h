/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sha256: computes SHA-256 sums in the form that sha256sum(1) prints, with nettle. The library is
 * loaded only by runs that need it. sha256_load() must have succeeded before any other call;
 * afterwards any thread may use its own context.
 */
#ifndef KVMPROF_VMM_EXACT_SHA256_H
#define KVMPROF_VMM_EXACT_SHA256_H

#include "base/err.h"

#include <nettle/sha2.h>
#include <stddef.h>

/*
 * Loads nettle. Later calls do nothing. The main thread calls it before the sandbox is entered.
 * Returns 0, or -ENOENT with the reason in *e.
 */
int sha256_load(struct err *e);

/* Starts a new sum in *c. A context owns no memory. */
void sha256_begin(struct sha256_ctx *c);
/* Adds len bytes of data to the sum. */
void sha256_add(struct sha256_ctx *c, const void *data, size_t len);
/* Ends the sum and writes it as 64 hexadecimal digits and a NUL. */
void sha256_hex(struct sha256_ctx *c, char hex[65]);

#endif
