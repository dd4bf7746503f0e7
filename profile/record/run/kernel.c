/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/kernel.h"

#include "base/cleanup.h"

#include <string.h>

int kernel_open_bytes(struct boot_image *image, struct target *t, const struct target_image *in,
		      const char *symbols_path, struct err *e)
{
	const uint8_t *bytes = in->file.data ? in->file.data : demo_elf;
	size_t len = in->file.data ? in->file.len : (size_t)(demo_elf_end - demo_elf);
	struct target_image all = *in;
	int ret;

	memset(t, 0, sizeof(*t));
	ret = image_parse(image, in->name, bytes, len, e);
	if (ret) {
		file_map_close(&all.file);
		file_map_close(&all.symbols_file);
		return ret;
	}
	all.is_linux = image->is_linux;
	all.is_elf32 = image->kind == BOOT_ELF32;
	all.elf = image->elf;
	all.elf_len = image->elf_len;
	all.stays = image->elf == demo_elf;
	all.unpacked = take_ptr(image->unpacked);
	ret = target_open(t, &all, symbols_path, e);
	if (ret)
		image_deinit(image);
	return ret;
}

int kernel_open(struct boot_image *image, struct target *t, const char *path,
		const char *symbols_path, struct err *e)
{
	struct target_image in = { .name = path ? path : KERNEL_DEMO_NAME };
	int ret;

	memset(t, 0, sizeof(*t));
	if (!path)
		return kernel_open_bytes(image, t, &in, symbols_path, e);
	ret = file_map_open(&in.file, path, BOOT_MAX_FILE, e);
	return ret ? ret : kernel_open_bytes(image, t, &in, symbols_path, e);
}
