/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/initrd.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The files of fuzz_initrd's corpus, and how many cpio archives the result is; 0: left alone. */
static void corpus(void **state)
{
	static const struct {
		const char *path;
		unsigned int archives;
	} rows[] = {
		{ "tests/fuzz/corpus/fuzz_initrd/cpio", 0 },
		{ "tests/fuzz/corpus/fuzz_initrd/zstd", 1 },
		{ "tests/fuzz/corpus/fuzz_initrd/early-zstd", 2 },
		{ "tests/fuzz/corpus/fuzz_initrd/zstd-zstd-zeros", 2 },
		{ "tests/fuzz/corpus/fuzz_initrd/zstd-tail", 0 },
		{ "tests/fuzz/corpus/fuzz_initrd/zstd-cut", 0 },
		{ "tests/fuzz/corpus/fuzz_initrd/gzip", 0 },
		{ "tests/fuzz/corpus/fuzz_initrd/cpio-huge", 0 },
		{ "tests/fuzz/corpus/fuzz_initrd/cpio-no-end", 0 },
	};
	struct file_map cpio = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_map_open(&cpio, rows[0].path, 1 << 20, &e), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct file_map f = { 0 };
		struct buf out;

		assert_int_equal(file_map_open(&f, rows[i].path, 1 << 20, &e), 0);
		buf_init(&out);
		assert_int_equal(initrd_unpack(f.data, f.len, &out), rows[i].archives > 0);
		assert_int_equal(out.len, rows[i].archives * cpio.len);
		for (unsigned int k = 0; k < rows[i].archives; k++)
			assert_memory_equal(out.data + k * cpio.len, cpio.data, cpio.len);
		buf_deinit(&out);
		file_map_close(&f);
	}
	file_map_close(&cpio);
}

static void kinds(void **state)
{
	static const char cpio[] = "\0\0\0\000070701", text[] = "root:x:0:0:root:/root:/bin/bash\n";
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd, 0 }, gzip[] = { 0x1f, 0x8b, 8 };
	uint8_t ext[1100] = { [1080] = 0x53, [1081] = 0xef };

	(void)state;
	assert_true(initrd_is_known((const uint8_t *)cpio, sizeof(cpio) - 1));
	assert_true(initrd_is_known(zstd, sizeof(zstd)));
	assert_true(initrd_is_known(gzip, sizeof(gzip)));
	assert_true(initrd_is_known(ext, sizeof(ext)));
	assert_false(initrd_is_known(ext, 1081));
	assert_false(initrd_is_known(gzip, 1));
	assert_false(initrd_is_known((const uint8_t *)text, sizeof(text) - 1));
	assert_false(initrd_is_known(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds), cmocka_unit_test(corpus) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
