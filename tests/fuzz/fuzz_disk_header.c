/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The beginning of a disk image of any format, from anybody: the names in its header end within their
 * arrays, and its tables are followed in bounded time. make-corpus-disk.py makes such of qemu-img's.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/image/disk_extent.h"
#include "vmm/image/disk_format.h"
#include "vmm/image/disk_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One input shall not take seconds: a table may refer to itself many times. */
#define MAX_READS 2000u

struct input {
	const uint8_t *data;
	size_t size;
	unsigned int reads;
};

static int read_input(void *ctx, uint64_t off, void *dst, size_t len)
{
	struct input *in = ctx;

	if (off > in->size || len > in->size - off || in->reads++ > MAX_READS)
		return -EIO;
	memcpy(dst, in->data + off, len);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct disk_header h;
	struct input in = { data, size, 0 };
	const struct disk_extent_file f = { read_input, &in, size };
	const char *format = disk_format_name(data, size);
	struct err e = { 0 };

	(void)disk_format_compression(data, size);
	if (!format)
		return 0;
	if (disk_header_parse(&h, "fuzz", format, data, size, &e) == 0 &&
	    (strlen(h.backing) >= sizeof(h.backing) || strlen(h.data) >= sizeof(h.data) ||
	     strlen(h.backing_format) >= sizeof(h.backing_format)))
		abort();
	(void)disk_extent_missing(&f, format);
	return 0;
}
