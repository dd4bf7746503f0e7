/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unified kernel images on a disk: their headers and texts, without the kernels in them. */
#include "vmm/bootdisk/private.h"

#include "vmm/image/uki.h"

#include <errno.h>

/* len is UKI_MAX_TEXT at most: uki_parse() has seen to that. */
static int read_section(struct diskfs *fs, const char *path, const struct uki *u,
			enum uki_section kind, struct buf *out, struct err *e)
{
	const struct diskfs_part part = { u->at[kind].off, (size_t)u->at[kind].len };
	uint64_t size;

	return part.len ? diskfs_read_part(fs, path, part, out, &size, e) : 0;
}

int diskboot_read_uki(struct diskboot *b, unsigned int fs, const char *path, const char *name,
		      struct bls_entry *out, struct err *e)
{
	struct diskfs *disk = b->fs[fs].fs;
	struct buf head, osrel, text, cmdline;
	uint64_t size = 0;
	struct uki u;
	int ret;

	buf_init(&head);
	buf_init(&osrel);
	buf_init(&text);
	buf_init(&cmdline);
	ret = diskfs_read_part(disk, path, (struct diskfs_part){ 0, UKI_HEAD }, &head, &size, e);
	if (!ret && size > DISKBOOT_MAX_KERNEL)
		ret = err_set(e, EFBIG, "%s: %llu bytes, more than the limit of %u", path,
			      (unsigned long long)size, DISKBOOT_MAX_KERNEL);
	ret = ret ? ret : uki_parse(&u, path, head.data, head.len, size, e);
	if (ret == -ENOENT && !e->code)
		err_set(e, ENOENT, "%s: no unified kernel image", path);
	ret = ret ? ret : read_section(disk, path, &u, UKI_OSREL, &osrel, e);
	ret = ret ? ret : read_section(disk, path, &u, UKI_CMDLINE, &text, e);
	if (!ret)
		uki_text(text.data, text.len, &cmdline);
	if (!ret && (head.failed || osrel.failed || text.failed || cmdline.failed))
		ret = err_set(e, ENOMEM, "out of memory");
	if (!ret)
		ret = bls_take_uki(out, name, path, (struct bytes){ osrel.data, osrel.len },
				   (const char *)cmdline.data, e);
	buf_deinit(&head);
	buf_deinit(&osrel);
	buf_deinit(&text);
	buf_deinit(&cmdline);
	return ret;
}
