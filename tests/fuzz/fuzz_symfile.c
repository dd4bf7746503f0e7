/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text and ELF symbol files, each also checked against a small image of fixed content. */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/kernel/symfile.h"

#include <stdlib.h>
#include <string.h>

#define TEXT 0xffffffff81000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t text[512];
	struct kimage k = { .elf = text,
			    .elf_len = sizeof(text),
			    .nseg = 1,
			    .text = TEXT,
			    .etext = TEXT + 256,
			    .end = TEXT + 4096,
			    .banner = "Linux version 6.1.0 (fuzz)" };
	struct err e = { 0 };
	struct symfile f;
	struct kimage self;

	k.seg[0] = (struct kimage_segment){
		.va = TEXT, .file_len = sizeof(text), .mem_len = sizeof(text), .flags = 5
	};
	for (unsigned int i = 0; i + 16 <= 256; i += 16)
		memcpy(text + i, "\x55\x48\x89\xe5\xe8\x07\0\0\0\x5d\xc3\x90\x90\x90\x90\x90", 16);
	memcpy(text + 256, k.banner, strlen(k.banner));
	if (symfile_parse(&f, "fuzz", data, size, &e) < 0) {
		if (!e.text[0])
			abort();
		return 0;
	}
	(void)symfile_verify(&f, "fuzz", &k, "image", &e);
	/* The kernel is not Linux. */
	k.banner[0] = 0;
	(void)symfile_verify(&f, "fuzz", &k, "image", NULL);
	if (f.kind == SYMFILE_ELF) {
		/* A file always belongs to itself, if it has text bytes or a build id. */
		if (kimage_parse(&self, "fuzz", data, size, NULL) < 0)
			abort();
		if (symfile_verify(&f, "fuzz", &self, "self", NULL) < 0 &&
		    (f.build_id_len || f.text_len))
			abort();
	}
	symfile_deinit(&f);
	return 0;
}
