/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image_parse() on any bytes: ends, leaks nothing, and what it accepts
 * keeps the promises of image.h.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/image/parse.h"

#include <stdlib.h>
#include <string.h>

/* Instead of BOOT_MAX_KERNEL: bombs should be found out fast. */
#define FUZZ_MAX_KERNEL (4u << 20)

static void require(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct boot_image img = { .nseg = 99 };
	struct err e = { 0 };
	int inside = 0;
	int r = parse_image_max(&img, "input", data, size, FUZZ_MAX_KERNEL, &e);

	if (r) {
		require(img.nseg == 99 && e.code == -r && e.text[0]);
		require(!strchr(e.text, '\n') && strlen(e.text) < sizeof(e.text) - 1);
		return 0;
	}
	require(!e.code && img.nseg >= 1 && img.nseg <= BOOT_MAX_SEGMENTS);
	require(img.elf_len <= FUZZ_MAX_KERNEL || img.elf == data || !img.unpacked);
	require(img.setup_header_len <= BOOT_SETUP_HEADER_MAX);
	require(memchr(img.version, 0, sizeof(img.version)) != NULL && img.compression);
	for (unsigned int i = 0; i < img.nseg; i++) {
		const struct boot_segment *s = &img.seg[i];

		require(s->mem_len && s->file_len <= s->mem_len);
		require(s->file_off <= img.elf_len && s->file_len <= img.elf_len - s->file_off);
		require(s->gpa + s->mem_len > s->gpa);
		require(img.unloaded.code || !i || s->gpa >= s[-1].gpa + s[-1].mem_len);
		require(img.unloaded.code || s->gpa + s->mem_len <= 4ull << 30);
		inside |= img.entry >= s->gpa && img.entry < s->gpa + s->mem_len;
	}
	require((inside || !img.entry) && img.low == img.seg[0].gpa);
	require(img.high == img.seg[img.nseg - 1].gpa + img.seg[img.nseg - 1].mem_len);
	image_deinit(&img);
	return 0;
}
