/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/disk_header.h"

#include "vmm/image/disk_extent.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD 4096u

static void put32(uint8_t *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, sizeof(v));
}

static void put64(uint8_t *at, uint64_t v)
{
	v = htobe64(v);
	memcpy(at, &v, sizeof(v));
}

/* A qcow2 image of version 3 with clusters of 512 bytes and one L2 table, as QEMU lays it out. */
static void make_qcow2(uint8_t head[HEAD])
{
	memset(head, 0, HEAD);
	memcpy(head, "QFI\xfb\0\0\0\3", 8);
	put32(head + 20, 9);
	put32(head + 36, 1);
	put64(head + 40, 512);
	put32(head + 100, 104);
	put64(head + 512, 1024);
	put64(head + 1024, 1536);
}

static void add_backing(uint8_t head[HEAD], const char *name, const char *format)
{
	size_t len = strlen(format);

	put32(head + 104, 0xe2792aca);
	put32(head + 108, (uint32_t)len);
	memcpy(head + 112, format, len);
	put64(head + 8, 300);
	put32(head + 16, (uint32_t)strlen(name));
	memcpy(head + 300, name, strlen(name));
}

static int parse(struct disk_header *h, const char *format, const uint8_t *head, size_t len)
{
	struct err e = { 0 };
	int ret = disk_header_parse(h, "x.img", format, head, len, &e);

	if (ret)
		assert_non_null(strstr(e.text, "x.img: "));
	return ret;
}

static void other_files_are_named(void **state)
{
	uint8_t head[HEAD];
	struct disk_header h;

	(void)state;
	make_qcow2(head);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_true(!*h.backing && !*h.data && !h.encryption && !h.part_of);
	add_backing(head, "/etc/shadow", "raw");
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_string_equal(h.backing, "/etc/shadow");
	assert_string_equal(h.backing_format, "raw");
	/* The external data file counts only with its feature bit. */
	put32(head + 104, 0x44415441);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_string_equal(h.data, "");
	put64(head + 72, 4);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_string_equal(h.data, "raw");
	put32(head + 104, 0);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_non_null(h.part_of);

	memset(head, 0, HEAD);
	memcpy(head, "QED", 4);
	head[16] = 1;
	head[56] = 200;
	head[60] = 4;
	memcpy(head + 200, "base", 4);
	assert_int_equal(parse(&h, "qed", head, HEAD), 0);
	assert_string_equal(h.backing, "base");
}

static void encryption_is_seen(void **state)
{
	uint8_t head[HEAD];
	struct disk_header h;

	(void)state;
	make_qcow2(head);
	head[35] = 2;
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_string_equal(h.encryption, "LUKS");
	head[35] = 1;
	assert_int_equal(parse(&h, "qcow2", head, HEAD), 0);
	assert_string_equal(h.encryption, "AES");
	memset(head, 0, HEAD);
	memcpy(head, "KDMV", 4);
	head[28] = 1; /* the descriptor is in sector 1, two sectors long */
	head[36] = 2;
	strcpy((char *)head + 512, "# Disk DescriptorFile\nencryption.keySafe = \"vmware:key\"\n");
	assert_int_equal(parse(&h, "vmdk", head, HEAD), 0);
	assert_string_equal(h.encryption, "VMware's");
}

static void parts_are_seen(void **state)
{
	uint8_t head[HEAD] = "# Disk DescriptorFile\ncreateType=\"twoGbMaxExtentSparse\"\n";
	struct disk_header h;

	(void)state;
	assert_int_equal(parse(&h, "vmdk", head, HEAD), 0);
	assert_non_null(strstr(h.part_of, "other files"));
	strcpy((char *)head, "# Disk DescriptorFile\nparentFileNameHint=\"a.vmdk\"\n");
	assert_int_equal(parse(&h, "vmdk", head, HEAD), 0);
	assert_non_null(strstr(h.part_of, "parent"));
	memset(head, 0, HEAD);
	memcpy(head, "KDMV", 4);
	assert_int_equal(parse(&h, "vmdk", head, HEAD), 0);
	assert_non_null(strstr(h.part_of, "several files"));
	memcpy(head, "COWD", 4);
	assert_int_equal(parse(&h, "vmdk", head, HEAD), 0);
	assert_null(h.part_of);
	head[76] = 4;
	assert_int_equal(parse(&h, "vdi", head, HEAD), 0);
	assert_non_null(strstr(h.part_of, "parent"));
	head[63] = 4;
	assert_int_equal(parse(&h, "vpc", head, HEAD), 0);
	assert_non_null(strstr(h.part_of, "parent"));
}

static void damage_is_refused(void **state)
{
	uint8_t head[HEAD];
	struct disk_header h;

	(void)state;
	make_qcow2(head);
	assert_int_equal(parse(&h, "qcow2", head, 71), -EINVAL);
	assert_int_equal(parse(&h, "qcow2", head, 103), -EINVAL);
	add_backing(head, "base", "raw");
	put64(head + 8, HEAD - 2);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), -EINVAL);
	put64(head + 8, 300);
	put32(head + 16, DISK_HEADER_NAME);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), -EINVAL);
	put32(head + 16, 4);
	put32(head + 108, 16); /* a format's name has fewer bytes */
	assert_int_equal(parse(&h, "qcow2", head, HEAD), -EINVAL);
	put32(head + 104, 7);
	put32(head + 108, UINT32_MAX);
	assert_int_equal(parse(&h, "qcow2", head, HEAD), -EINVAL);
	assert_int_equal(parse(&h, "vdi", head, 78), -EINVAL);
	assert_int_equal(parse(&h, "vpc", head, 511), -EINVAL);
	assert_int_equal(parse(&h, "qed", head, 63), -EINVAL);
	memcpy(head, "KDMV", 4);
	memset(head + 28, 0xff, 8);
	assert_int_equal(parse(&h, "vmdk", head, HEAD), -EINVAL);
}

struct bytes_file {
	const uint8_t *data;
	uint64_t len;
};

static int read_bytes(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct bytes_file *b = ctx;

	if (off > b->len || len > b->len - off)
		return -EIO;
	memcpy(dst, b->data + off, len);
	return 0;
}

static uint64_t missing(const char *format, const uint8_t *head, uint64_t len)
{
	struct bytes_file b = { head, len };
	const struct disk_extent_file f = { read_bytes, &b, len };

	return disk_extent_missing(&f, format);
}

static void truncation_is_seen(void **state)
{
	uint8_t head[HEAD];

	(void)state;
	make_qcow2(head);
	assert_int_equal(missing("qcow2", head, 2048), 0);
	assert_int_equal(missing("qcow2", head, 1536), 1536);
	assert_int_equal(missing("qcow2", head, 1024), 1024);
	assert_int_equal(missing("qcow2", head, 512), 512);
	/* A compressed cluster begins at any byte; its length stands above the offset. */
	put64(head + 1032, UINT64_C(0x4000000000000000) | 1800);
	assert_int_equal(missing("qcow2", head, 1801), 0);
	assert_int_equal(missing("qcow2", head, 1800), 1800);
	put64(head + 1032, 0);
	put64(head + 72, 16); /* entries of two words: the second is a bitmap */
	put64(head + 1032, UINT64_MAX >> 8);
	assert_int_equal(missing("qcow2", head, 2048), 0);
	put32(head + 20, 63);
	assert_int_equal(missing("qcow2", head, 512), 0);

	memset(head, 0, HEAD);
	memcpy(head, "KDMV", 4);
	head[12] = 8; /* capacity, grain, entries of a table, directory */
	head[20] = 8;
	head[44] = 2;
	head[56] = 1;
	head[512] = 2;
	head[1024] = 3;
	assert_int_equal(missing("vmdk", head, 2048), 0);
	assert_int_equal(missing("vmdk", head, 1536), 1536);
	assert_int_equal(missing("vmdk", head, 1024), 1024);
	head[44] = 0;
	assert_int_equal(missing("vmdk", head, 512), 0);

	memset(head, 0, HEAD);
	head[0x159] = 4;
	head[0x179] = 2;
	head[0x184] = 3;
	assert_int_equal(missing("vdi", head, 1024 + 3 * 512), 0);
	assert_int_equal(missing("vdi", head, 1024 + 3 * 512 - 1), 1024 + 3 * 512 - 1);
	assert_int_equal(missing("vhdx", head, 512), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_files_are_named), cmocka_unit_test(encryption_is_seen),
		cmocka_unit_test(parts_are_seen),	 cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(truncation_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
