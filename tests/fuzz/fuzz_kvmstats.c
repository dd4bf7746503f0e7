/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM's statistics file. The corpus: vm and vcpu are such files of a real KVM, made by
 * tests/fuzz/make-corpus-kvmstats.py; the others are changed from them there.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/kvmstats.h"

#include <stdlib.h>
#include <string.h>

static void require(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kvmstats s = { .fd = -1 };
	struct err e = { 0 };
	uint8_t *values;

	if (kvmstats_parse(&s, data, size, &e)) {
		require(e.code != 0 && !s.desc);
		return 0;
	}
	require(s.n > 0 && s.n <= KVMSTATS_MAX_DESC && s.data_len <= KVMSTATS_MAX_FILE);
	/* Just as many bytes as it says: each value must lie in them. */
	values = calloc(1, s.data_len);
	require(values != NULL);
	for (unsigned int i = 0; i < s.n; i++) {
		require(strlen(s.desc[i].name) < KVMSTATS_MAX_NAME);
		require(kvmstats_value(&s.desc[i], values) == 0);
		require(kvmstats_find(&s, s.desc[i].name) != NULL);
	}
	free(values);
	kvmstats_close(&s);
	return 0;
}
