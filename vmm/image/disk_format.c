/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/disk_format.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <string.h>

static const struct {
	const char *name; /* name in qemu-img */
	size_t off, len;
	const char *magic;
} formats[] = {
	{ "qcow", 0, 8, "QFI\xfb\0\0\0\1" },
	{ "qcow2", 0, 4, "QFI\xfb" },
	{ "vmdk", 0, 4, "KDMV" }, /* sparse extent */
	{ "vmdk", 0, 4, "COWD" }, /* ESX */
	{ "vmdk", 0, 20, "# Disk DescriptorFil" },
	{ "vdi", 64, 4, "\x7f\x10\xda\xbe" },
	{ "vhdx", 0, 8, "vhdxfile" },
	{ "vpc", 0, 8, "conectix" },
	{ "qed", 0, 4, "QED" },
};

const char *disk_format_name(const uint8_t *head, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].off + formats[i].len <= len &&
		    memcmp(head + formats[i].off, formats[i].magic, formats[i].len) == 0)
			return formats[i].name;
	return NULL;
}

static const struct {
	size_t len;
	const char *magic;
	struct disk_compression how;
} compressions[] = {
	{ 3, "\x1f\x8b\x08", { "gzip", "gzip" } },
	{ 6, "\xfd\x37zXZ\0", { "xz", "xz-utils" } },
	{ 4, "\x28\xb5\x2f\xfd", { "zstd", "zstd" } },
	{ 4, "\x04\x22\x4d\x18", { "lz4", "lz4" } },
	{ 3, "BZh", { "bzip2", "bzip2" } },
};

/* bzip2's first block, or its end if there is none, follows a digit (bzip2 1.0, decompress.c). */
static bool is_bzip2(const uint8_t *head, size_t len)
{
	return len >= 10 && head[3] >= '1' && head[3] <= '9' &&
	       (!memcmp(head + 4, "1AY&SY", 6) || !memcmp(head + 4, "\x17rE8P\x90", 6));
}

const struct disk_compression *disk_format_compression(const uint8_t *head, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(compressions); i++)
		if (compressions[i].len <= len &&
		    memcmp(head, compressions[i].magic, compressions[i].len) == 0 &&
		    (strcmp(compressions[i].how.program, "bzip2") != 0 || is_bzip2(head, len)))
			return &compressions[i].how;
	return NULL;
}

const char *disk_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return formats[i].name;
	return NULL;
}
