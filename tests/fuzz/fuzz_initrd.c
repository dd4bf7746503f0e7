/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A RAM disk: cpio archives and zstd frames. The corpus is by make-corpus-initrd.py. */
#include "tests/fuzz/fuzz.h"

#include "vmm/image/initrd.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out;
	int ret;

	buf_init(&out);
	ret = initrd_unpack(data, size, &out);
	if ((ret == 1) != (out.len > 0))
		abort();
	buf_deinit(&out);
	return 0;
}
