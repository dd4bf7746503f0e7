/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/sha256.h"

#include "base/cleanup.h"
#include "base/library.h"

#include <stdio.h>

/* The functions of nettle that are used, by the names that its headers give them. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(nettle_sha256_digest) \
	X(nettle_sha256_init) \
	X(nettle_sha256_update)
/* clang-format on */

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };
static struct {
	FUNCTIONS(LIBRARY_MEMBER)
} nettle;

int sha256_load(struct err *e)
{
	const struct library want = {
		.soname = "libnettle.so.8",
		.what = "no sums of files can be computed",
		.hint = "install libnettle8",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};

	return library_load(&want, (void **)&nettle, e);
}

void sha256_begin(struct sha256_ctx *c)
{
	nettle.nettle_sha256_init(c);
}

void sha256_add(struct sha256_ctx *c, const void *data, size_t len)
{
	nettle.nettle_sha256_update(c, len, data);
}

void sha256_hex(struct sha256_ctx *c, char hex[65])
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	nettle.nettle_sha256_digest(c, sizeof(digest), digest);
	for (unsigned int i = 0; i < sizeof(digest); i++)
		snprintf(hex + (size_t)2 * i, 3, "%02x", digest[i]);
}
