/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Build-id maps as text, and the ids of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/format/files/buildid_map.h"
#include "tests/unit/tiny_elf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void parse(struct buildid_map *m, const char *text)
{
	struct err e = { 0 };

	if (buildid_map_parse(m, "map", (const uint8_t *)text, strlen(text), &e) < 0)
		fail_msg("%s", e.text);
}

static void finds_every_path(void **state)
{
	static const uint8_t a[] = { 0xab, 0xcd }, b[] = { 0xab }, none[] = { 0xab, 0xce };
	struct buildid_map m;

	(void)state;
	parse(&m, "# ours\nabcd /z\n\nABCD /with a blank\nab /short\nabcd /z\n00 /first");
	assert_int_equal(m.n, 4);
	assert_string_equal(m.at[0].path, "/first");
	assert_string_equal(buildid_map_find(&m, a, 2, 0), "/with a blank");
	assert_string_equal(buildid_map_find(&m, a, 2, 1), "/z");
	assert_null(buildid_map_find(&m, a, 2, 2));
	assert_string_equal(buildid_map_find(&m, b, 1, 0), "/short");
	assert_null(buildid_map_find(&m, b, 1, 1));
	assert_null(buildid_map_find(&m, none, 2, 0));
	buildid_map_deinit(&m);
	parse(&m, "");
	assert_null(buildid_map_find(&m, a, 2, 0));
	buildid_map_deinit(&m);
}

static void names_the_bad_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "ab /x\nabc /y\n", "map:2: expected" },
		{ "\n\nxyz\n", "map:3: expected" },
		{ "ab\n", "map:1: expected" },
		{ "ab \n", "map:1: there is no path" },
		{ "ab\t/x\n", "map:1: expected" },
		{ " ab /x\n", "map:1: expected" },
		{ "000102030405060708090a0b0c0d0e0f1011121314 /long\n", "map:1: expected" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = { 0 };
		struct buildid_map m;

		assert_int_equal(buildid_map_parse(&m, "map", (const uint8_t *)bad[i].text,
						   strlen(bad[i].text), &e),
				 -EINVAL);
		if (strncmp(e.text, bad[i].says, strlen(bad[i].says)) != 0)
			fail_msg("%s, expected %s", e.text, bad[i].says);
	}
}

static int id_of(const void *data, size_t len, uint8_t id[ELF_ID_MAX])
{
	char path[] = "/tmp/kvmprof-test-XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	ret = elf_id_of_path(path, id);
	assert_int_equal(elf_id_read(fd, id), ret);
	close(fd);
	unlink(path);
	return ret;
}

static void reads_ids_of_files(void **state)
{
	struct tiny_elf with = { .id = 0x5a, .no_sections = true }, without = { .no_note = true };
	uint8_t bytes[TINY_SIZE], id[ELF_ID_MAX];
	Elf64_Ehdr *eh = (Elf64_Ehdr *)bytes;

	(void)state;
	tiny_build(&with, bytes);
	assert_int_equal(id_of(bytes, sizeof(bytes), id), 20);
	assert_int_equal(id[0], 0x5a);
	/* Its section table is beyond the end, but the id is found before that is needed. */
	assert_int_equal(id_of(bytes, TINY_OFF_SHDRS, id), 20);
	assert_int_equal(id_of(bytes, 100, id), 0);
	assert_int_equal(id_of(bytes, 10, id), -ENOEXEC);
	assert_int_equal(id_of("#!/bin/sh\n", 10, id), -ENOEXEC);
	eh->e_phoff = UINT64_MAX - 10;
	assert_int_equal(id_of(bytes, sizeof(bytes), id), -EINVAL);
	tiny_build(&without, bytes);
	assert_int_equal(id_of(bytes, sizeof(bytes), id), 0);
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(id_of(bytes, sizeof(bytes), id), -ENOEXEC);
	assert_int_equal(elf_id_of_path("/nowhere", id), -ENOENT);
	assert_int_equal(elf_id_of_path("/tmp", id), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_path),
		cmocka_unit_test(names_the_bad_line),
		cmocka_unit_test(reads_ids_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
