/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes as the RAW field of a sample: what is taken is within its limits, and written
 * again and read again it is the same.
 */
#include "tests/fuzz/fuzz.h"

#include "profile/format/sink/memref.h"

#include <stdlib.h>
#include <string.h>

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mem_refs m, again;
	struct buf b;

	memset(&m, 0, sizeof(m));
	memset(&again, 0, sizeof(again));
	if (!memref_parse(data, size, &m))
		return 0;
	require(m.n <= MEMREF_MAX && m.why < MEMOP_WHY_COUNT);
	for (unsigned int i = 0; i < m.n; i++) {
		require(memref_region_name(m.ref[i].region)[0] != '?');
		require(memref_status_text(m.ref[i].status)[0] != '?');
		require(memref_host_text(m.ref[i].host)[0] != '?');
	}
	memref_data_src(&m);
	buf_init(&b);
	memref_put(&b, &m);
	require(!b.failed && b.len + 4 == memref_raw_size(&m) && memref_raw_size(&m) % 8 == 0);
	require(memref_parse(b.data, b.len, &again));
	require(again.n == m.n && again.why == m.why);
	require(!memcmp(&again.code, &m.code, sizeof(m.code)));
	require(!memcmp(again.ref, m.ref, m.n * sizeof(m.ref[0])));
	buf_deinit(&b);
	return 0;
}
