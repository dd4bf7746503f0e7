/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/image.h"

#include "vmm/image/parse.h"
#include "vmm/image/uki.h"

#include "base/cursor.h"
#include "vmm/image/bzimage.h"
#include "vmm/image/elf64.h"
#include "vmm/image/multiboot.h"
#include "vmm/image/unpack.h"
#include "vmm/image/widen.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a file that are examined to distinguish text from binary. */
#define TEXT_PROBE 512u
/* Limit for unpacking a compressed file that may turn out not to be a kernel. */
#define BOOT_MAX_PACKED (256u << 20)

struct foreign {
	uint32_t off;
	uint8_t len;
	char magic[9];
	const char *what; /* "NAME: <what>; <advice>" */
	const char *advice;
};

#define GIVE_KERNEL "give a vmlinux or bzImage"
#define DISK_ADVICE "only `kvmprof run` boots from disks; here " GIVE_KERNEL

/* Files that users pass by mistake. More specific magics come first. */
static const struct foreign foreigns[] = {
	{ 0x38, 4, "ARM\x64", "an arm64 kernel Image", "only x86-64 kernels can be booted" },
	{ 0x38, 4, "RSC\x05", "a RISC-V kernel Image", "only x86-64 kernels can be booted" },
	{ 4, 4, "zimg", "an EFI zboot kernel of another architecture",
	  "only x86-64 kernels can be booted" },
	{ 0x24, 4, "\x18\x28\x6f\x01", "a 32-bit ARM zImage", "only x86-64 kernels can be booted" },
	{ 0, 8, "ANDROID!", "an Android boot image", "unpack the kernel out of it" },
	{ 0, 4, "\x27\x05\x19\x56", "a U-Boot uImage", "unpack the kernel out of it" },
	{ 0, 4, "\xd0\x0d\xfe\xed", "a device tree or FIT image", "unpack the kernel out of it" },
	{ 0, 6, "070701", "a cpio archive, so probably an initrd", "give it as the initrd" },
	{ 0, 6, "070702", "a cpio archive, so probably an initrd", "give it as the initrd" },
	{ 0, 8, "!<arch>\n", "an ar archive or Debian package", "unpack the kernel out of it" },
	{ 0, 4, "\xed\xab\xee\xdb", "an RPM package", "unpack the kernel out of it" },
	{ 0, 4, "PK\x03\x04", "a zip archive", "unpack the kernel out of it" },
	{ 257, 5, "ustar", "a tar archive", "unpack the kernel out of it" },
	{ 0, 4, "QFI\xfb", "a qcow2 disk image", DISK_ADVICE },
	{ 0, 4, "KDMV", "a VMDK disk image", DISK_ADVICE },
	{ 0, 8, "vhdxfile", "a VHDX disk image", DISK_ADVICE },
	{ 0, 4, "hsqs", "a squashfs file system", DISK_ADVICE },
	{ 512, 8, "EFI PART", "a GPT disk image", DISK_ADVICE },
	{ 0x438, 2, "\x53\xef", "an ext2/3/4 file system", DISK_ADVICE },
	{ 0x8001, 5, "CD001", "an ISO 9660 CD image", DISK_ADVICE },
	{ 0x10040, 8, "_BHRfS_M", "a btrfs file system", DISK_ADVICE },
	{ 0, 2, "MZ", "an EFI or Windows program without a Linux kernel in it",
	  "give a vmlinux, a bzImage or a unified kernel image" },
	{ 0, 2, "#!", "a script", GIVE_KERNEL },
	{ 510, 2, "\x55\xaa", "a disk image (or boot sector)", DISK_ADVICE },
};

static bool looks_like_text(const uint8_t *file, size_t len)
{
	size_t n = len < TEXT_PROBE ? len : TEXT_PROBE;

	for (size_t i = 0; i < n; i++) {
		if (file[i] < 0x20 && file[i] != '\n' && file[i] != '\t' && file[i] != '\r')
			return false;
		if (file[i] == 0x7f)
			return false;
	}
	return n > 0;
}

static bool all_zero(const uint8_t *file, size_t len)
{
	return len && !file[0] && (len == 1 || !memcmp(file, file + 1, len - 1));
}

/* Reports what a file that cannot be booted is. */
static int image_refuse(const char *name, const uint8_t *file, size_t len, struct err *e)
{
	const char *compression = unpack_detect(file, len);
	struct cursor c;

	cursor_init(&c, file, len);
	for (size_t i = 0; i < sizeof(foreigns) / sizeof(foreigns[0]); i++) {
		const struct foreign *f = &foreigns[i];
		struct cursor w = cursor_window(&c, f->off, f->len);
		const uint8_t *p = cursor_bytes(&w, f->len);

		if (p && !memcmp(p, f->magic, f->len))
			return err_set(e, EINVAL, "%s: this is %s; %s", name, f->what, f->advice);
	}
	if (compression)
		return err_set(
			e, EINVAL,
			"%s: this is a file compressed with %s, not a kernel; if a vmlinux is "
			"inside decompress it first, if it is an initrd give it as one",
			name, compression);
	if (looks_like_text(file, len))
		return err_set(e, EINVAL, "%s: this is a text file, not a kernel; " GIVE_KERNEL,
			       name);
	if (all_zero(file, len))
		return err_set(e, EINVAL,
			       "%s: %zu bytes, all zero: an unfinished copy or an empty "
			       "disk; " GIVE_KERNEL,
			       name, len);
	return err_set(e, EINVAL,
		       "%s: not a kernel that we know (%zu bytes, begins with %02x %02x %02x %02x; "
		       "expected ELF or a bzImage with \"HdrS\" at offset 0x202); " GIVE_KERNEL,
		       name, len, file[0], len > 1 ? file[1] : 0, len > 2 ? file[2] : 0,
		       len > 3 ? file[3] : 0);
}

static bool is_elf(const uint8_t *file, size_t len)
{
	return len >= SELFMAG && !memcmp(file, ELFMAG, SELFMAG);
}

/*
 * Returns the entry of an ELF. If a segment is linked there, the entry is a link address, as in
 * GRUB.
 */
static uint64_t elf_entry(const struct boot_image *img)
{
	uint64_t entry = image_elf64_physical(img, img->elf_entry);

	return entry ? entry : img->entry;
}

static int take_multiboot(struct boot_image *img, const char *name, const struct boot_multiboot *h,
			  struct err *e)
{
	bool own = h->entry || (h->flat && h->version == 1);
	uint64_t entry = own ? h->entry : elf_entry(img);
	int r = multiboot_check(name, h, e);

	if (r)
		return r;
	if (h->relocatable && (img->low < h->least || img->high - 1 > h->most))
		return err_set(e, ENOTSUP,
			       "%s: its multiboot2 header wants it within 0x%x..0x%x, but it is "
			       "linked at 0x%llx, and kernels are not moved here; link it there",
			       name, h->least, h->most, (unsigned long long)img->low);
	/*
	 * The ELF's headers define the load addresses; the header's address fields may add an
	 * entry.
	 */
	if (!image_elf64_contains(img, entry))
		return err_set(e, EINVAL,
			       "%s: the multiboot entry 0x%llx lies in no segment of the kernel",
			       name, (unsigned long long)entry);
	if (h->version == 2) {
		img->mb2_entry = (uint32_t)entry;
		return 0;
	}
	img->multiboot = true;
	img->mb_pages = h->flags & 1;
	img->mb_entry = (uint32_t)entry;
	return 0;
}

/* Parses an ELF32 or ELF64; file may be img->unpacked. */
static int parse_elf(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		     struct err *e)
{
	struct boot_multiboot h, h2;
	bool multiboot = multiboot_find(file, len, &h);
	bool multiboot2 = multiboot_find2(file, len, &h2);
	int r;

	img->kind = BOOT_ELF64;
	img->elf = file;
	img->elf_len = len;
	if (len > EI_CLASS && file[EI_CLASS] == ELFCLASS32) {
		img->kind = BOOT_ELF32;
		r = widen_elf32(img, name, file, len, e);
		if (r)
			return r;
	}
	r = image_elf64_parse(img, name, e);
	if (!r && multiboot && !img->unloaded.code)
		r = take_multiboot(img, name, &h, e);
	if (!r && multiboot2 && !img->unloaded.code) {
		struct err why = { 0 };

		r = take_multiboot(img, name, &h2, &why);
		/* A header that is not used may contain anything. */
		if (r && (img->multiboot || img->pvh_entry || img->is_linux))
			return 0;
		if (r && e)
			*e = why;
	}
	return r;
}

/* Unpacks a compressed ELF, such as Xen's, into img->unpacked. Returns false if it is not one. */
static bool unpack_elf(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		       size_t max)
{
	const char *compression = unpack_detect(file, len);

	if (!compression || unpack_image(name, (struct bytes){ file, len },
					 max < BOOT_MAX_PACKED ? max : BOOT_MAX_PACKED,
					 &img->unpacked, &img->elf_len, NULL))
		return false;
	if (is_elf(img->unpacked, img->elf_len)) {
		img->compression = compression;
		return true;
	}
	free(img->unpacked);
	img->unpacked = NULL;
	img->elf_len = 0;
	return false;
}

/* Parses the kernel in a unified kernel image, as if that were the file. */
static int parse_uki(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		     size_t max_kernel, struct err *e)
{
	char inner[256];
	struct uki u;
	int r = uki_parse(&u, name, file, len, len, e);

	if (r)
		return r == -ENOENT ? image_refuse(name, file, len, e) : r;
	snprintf(inner, sizeof(inner), "%.200s: section .linux", name);
	file += u.at[UKI_LINUX].off;
	len = (size_t)u.at[UKI_LINUX].len;
	/* A stub could not start a unified kernel image inside another one. */
	if (uki_probe(file, len))
		return err_set(e, EINVAL, "%s: this is another EFI program, expected a bzImage",
			       inner);
	return parse_image_max(img, inner, file, len, max_kernel, e);
}

uint64_t parse_setup_field(const struct boot_image *img, uint32_t off, unsigned int size)
{
	uint64_t v = 0;

	assert(off >= SETUP_HEADER && size <= sizeof(v));
	off -= SETUP_HEADER;
	if (off + size <= img->setup_header_len)
		memcpy(&v, img->setup_header + off, size);
	return v;
}

int parse_image_max(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		    size_t max_kernel, struct err *e)
{
	struct boot_image tmp = { 0 };
	struct boot_multiboot h;
	int r;

	if (!len)
		return err_set(e, EINVAL, "%s: the file is empty; " GIVE_KERNEL, name);
	if (len > BOOT_MAX_FILE)
		return err_set(e, EINVAL, "%s: %zu bytes are too many for a kernel (at most %llu)",
			       name, len, BOOT_MAX_FILE);

	tmp.compression = "none";
	tmp.cmdline_max = LINUX_CMDLINE_MAX;
	if (is_elf(file, len)) {
		r = parse_elf(&tmp, name, file, len, e);
	} else if (bzimage_probe(file, len)) {
		tmp.kind = BOOT_BZIMAGE;
		r = bzimage_parse(&tmp, name, file, len, max_kernel, e);
	} else if (uki_probe(file, len)) {
		r = parse_uki(&tmp, name, file, len, max_kernel, e);
	} else if (unpack_elf(&tmp, name, file, len, max_kernel)) {
		r = parse_elf(&tmp, name, tmp.unpacked, tmp.elf_len, e);
	} else if ((multiboot_find(file, len, &h) && h.flat) ||
		   (multiboot_find2(file, len, &h) && (h.flat || h.damaged))) {
		tmp.kind = BOOT_FLAT;
		r = multiboot_check(name, &h, e);
		r = r ? r : multiboot_parse(&tmp, name, file, len, &h, e);
		r = r ? r : image_elf64_parse(&tmp, name, e);
		r = r ? r : take_multiboot(&tmp, name, &h, e);
	} else {
		r = image_refuse(name, file, len, e);
	}
	if (r) {
		image_deinit(&tmp);
		return r;
	}
	*img = tmp;
	return 0;
}

int image_parse(struct boot_image *img, const char *name, const uint8_t *file, size_t len,
		struct err *e)
{
	return parse_image_max(img, name, file, len, BOOT_MAX_KERNEL, e);
}

void image_deinit(struct boot_image *img)
{
	if (!img)
		return;
	free(img->unpacked);
	memset(img, 0, sizeof(*img));
}
