/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/image_kind.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "vmm/image/uki.h"
#include "vmm/image/disk_format.h"

#include <errno.h>
#include <string.h>

struct mark {
	uint32_t off;
	uint8_t len;
	char magic[9];
	enum image_kind kind;
	const char *name, *advice;
};

#define ISO_ADVICE                                                          \
	"take its kernel and initrd out (`xorriso -osirrox on -indev FILE " \
	"-extract / DIR`, or 7z x) and give the one as IMAGE, the other as --initrd"
#define INITRD_ADVICE "give it as --initrd, and a kernel as IMAGE"

/*
 * More specific marks come first. The Linux setup header (boot.rst) precedes the boot sector's
 * mark, which a bzImage has as well; so does the mark of a CD, which may have both.
 */
static const struct mark marks[] = {
	{ 0, 4,
	  "\x7f"
	  "ELF",
	  IMAGE_KERNEL, "an ELF file", NULL },
	{ 0x202, 4, "HdrS", IMAGE_KERNEL, "a Linux bzImage", NULL },
	{ 0x8001, 5, "CD001", IMAGE_ISO, "an ISO 9660 CD image", ISO_ADVICE },
	{ 0, 6, "070701", IMAGE_INITRD, "a cpio archive, as initrds are", INITRD_ADVICE },
	{ 0, 6, "070702", IMAGE_INITRD, "a cpio archive, as initrds are", INITRD_ADVICE },
	{ 512, 8, "EFI PART", IMAGE_DISK, "a disk with a GUID partition table", NULL },
	{ 4096, 8, "EFI PART", IMAGE_DISK, "a disk with a GUID partition table", NULL },
	{ 0x438, 2, "\x53\xef", IMAGE_DISK, "an ext2, ext3 or ext4 file system", NULL },
	{ 0x10040, 8, "_BHRfS_M", IMAGE_DISK, "a btrfs file system", NULL },
	{ 0, 4, "XFSB", IMAGE_DISK, "an XFS file system", NULL },
	{ 0, 4, "hsqs", IMAGE_DISK, "a squashfs file system", NULL },
	{ 0x400, 4, "\xe2\xe1\xf5\xe0", IMAGE_DISK, "an EROFS file system", NULL },
	{ 0x52, 5, "FAT32", IMAGE_DISK, "a FAT file system", NULL },
	{ 0x36, 3, "FAT", IMAGE_DISK, "a FAT file system", NULL },
	{ 0x218, 8, "LVM2 001", IMAGE_DISK, "an LVM physical volume", NULL },
	{ 0, 6, "LUKS\xba\xbe", IMAGE_DISK, "an encrypted volume (LUKS)", NULL },
};

/*
 * Returns whether the sector has an MBR: four entries whose first byte is 0 or 0x80, at least one
 * of them in use, and the mark at the end.
 */
static bool has_mbr(const uint8_t *head, size_t n)
{
	unsigned int used = 0;

	if (n < 512 || head[510] != 0x55 || head[511] != 0xaa)
		return false;
	for (unsigned int i = 0; i < 4; i++) {
		const uint8_t *p = head + 446 + 16 * i;

		if (p[0] & 0x7f)
			return false;
		used += p[4] != 0;
	}
	return used > 0;
}

/*
 * Returns the name of a kind of EFI program. This is checked before marks[], because an EFI
 * program may have any bytes at the places of other marks.
 */
static const char *efi_name(const uint8_t *head, size_t n)
{
	struct uki u;

	/* Whether all its sections are complete is checked later. */
	return uki_parse(&u, "", head, n, UINT64_MAX, NULL) == -ENOENT ? "an EFI program"
								       : "a unified kernel image";
}

struct image_what image_kind(const uint8_t *head, size_t n)
{
	struct cursor c;

	if (uki_probe(head, n))
		return (struct image_what){ IMAGE_KERNEL, efi_name(head, n), NULL };
	if (disk_format_name(head, n))
		return (struct image_what){ IMAGE_FORMAT, "a disk image that is not raw", NULL };
	cursor_init(&c, head, n);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const struct mark *m = &marks[i];
		struct cursor w = cursor_window(&c, m->off, m->len);
		const uint8_t *p = cursor_bytes(&w, m->len);

		if (p && !memcmp(p, m->magic, m->len))
			return (struct image_what){ m->kind, m->name, m->advice };
	}
	if (has_mbr(head, n))
		return (struct image_what){ IMAGE_DISK, "a disk with an MBR partition table",
					    NULL };
	return (struct image_what){ IMAGE_KERNEL, "a kernel, if it is anything that boots", NULL };
}
