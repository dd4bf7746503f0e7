/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A boot entry, and comparisons of what it says with itself and with a fixed one. */
#include "tests/fuzz/fuzz.h"

#include "vmm/bootdisk/bls.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char fixed[] = "linux /k\nsort-key k\nmachine-id 1\nversion 6.1~rc1-2^3.a\n";
	struct bls_entry a, b;

	if (bls_parse(&a, "entry+2-1.conf", (const char *)data, size, NULL))
		return 0;
	if (bls_parse(&b, "entry.conf", fixed, sizeof(fixed) - 1, NULL))
		abort();
	if (bls_compare(&a, &a) != 0 || (bls_compare(&a, &b) < 0) == (bls_compare(&b, &a) < 0))
		abort();
	if (bls_version_compare(a.version, b.version) != -bls_version_compare(b.version, a.version))
		abort();
	(void)bls_usable(&a);
	bls_deinit(&a);
	bls_deinit(&b);
	return 0;
}
