/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sha256: sums as sha256sum(1) prints them, on top of nettle's.
 */
#ifndef KVMPROF_VMM_EXACT_SHA256_H
#define KVMPROF_VMM_EXACT_SHA256_H

#include <nettle/sha2.h>
#include <stdio.h>

/* Ends c. */
static inline void sha256_hex(struct sha256_ctx *c, char hex[65])
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_digest(c, sizeof(digest), digest);
	for (unsigned int i = 0; i < sizeof(digest); i++)
		snprintf(hex + (size_t)2 * i, 3, "%02x", digest[i]);
}

#endif
