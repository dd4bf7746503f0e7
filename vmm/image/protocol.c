/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Determines how an image is entered: by the method that it prefers or that the user has
 * requested.
 */
#include "vmm/image/protocol.h"

#include "vmm/image/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *const names[] = {
	[BOOT_PROTOCOL_VMLINUX] = "vmlinux",	   [BOOT_PROTOCOL_BZIMAGE] = "bzimage",
	[BOOT_PROTOCOL_LINUX32] = "linux32",	   [BOOT_PROTOCOL_LINUX16] = "linux16",
	[BOOT_PROTOCOL_MULTIBOOT] = "multiboot",   [BOOT_PROTOCOL_PVH] = "pvh",
	[BOOT_PROTOCOL_MULTIBOOT2] = "multiboot2", [BOOT_PROTOCOL_AUTO] = "auto",
};

/* Requirements, for messages such as "--boot=multiboot needs ...". */
static const char *const needs[] = {
	[BOOT_PROTOCOL_VMLINUX] = "an ELF64 kernel, or a bzImage with one inside",
	[BOOT_PROTOCOL_BZIMAGE] = "a bzImage with a 64-bit entry",
	[BOOT_PROTOCOL_LINUX32] = "an ELF32 kernel, or a bzImage with a 32-bit entry",
	[BOOT_PROTOCOL_LINUX16] = "a bzImage",
	[BOOT_PROTOCOL_MULTIBOOT] = "a kernel with a multiboot 1 header",
	[BOOT_PROTOCOL_PVH] = "an ELF kernel with a PVH note",
	[BOOT_PROTOCOL_MULTIBOOT2] = "a kernel with a multiboot2 header",
};

#define WAYS (sizeof(names) / sizeof(names[0]))

const char *protocol_name(enum boot_protocol way)
{
	return names[way];
}

int protocol_parse(const char *name, enum boot_protocol *out)
{
	for (unsigned int i = 0; i < WAYS; i++) {
		if (!strcmp(name, names[i])) {
			*out = (enum boot_protocol)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool protocol_image_has(const struct boot_image *img, enum boot_protocol way)
{
	bool bzimage = img->kind == BOOT_BZIMAGE || img->kind == BOOT_LINUXLIKE;

	/* A decompressor has its own load address for the kernel. */
	if (img->unloaded.code && (!bzimage || way == BOOT_PROTOCOL_VMLINUX))
		return false;
	switch (way) {
	case BOOT_PROTOCOL_VMLINUX:
		return (img->kind == BOOT_ELF64 || img->kind == BOOT_BZIMAGE) && img->entry;
	case BOOT_PROTOCOL_BZIMAGE:
		return bzimage && parse_setup_field(img, SETUP_XLOADFLAGS, 2) & XLF_KERNEL_64;
	case BOOT_PROTOCOL_LINUX32:
		return (img->kind == BOOT_ELF32 && img->entry) ||
		       (bzimage && parse_setup_field(img, SETUP_CODE32_START, 4));
	case BOOT_PROTOCOL_LINUX16:
		return bzimage;
	case BOOT_PROTOCOL_MULTIBOOT:
		return img->multiboot;
	case BOOT_PROTOCOL_PVH:
		return img->pvh_entry != 0;
	case BOOT_PROTOCOL_MULTIBOOT2:
		return img->mb2_entry != 0;
	case BOOT_PROTOCOL_AUTO:
		break;
	}
	return false;
}

/*
 * Returns the most direct method that the image is made for, or BOOT_PROTOCOL_AUTO if it has none. An
 * ELF64 with a note or a header for a 32-bit method expects nothing that we could pass at its own
 * entry; a Linux kernel, which has that note too, does.
 */
static enum boot_protocol protocol_choose(const struct boot_image *img)
{
	static const enum boot_protocol order[] = {
		BOOT_PROTOCOL_MULTIBOOT, BOOT_PROTOCOL_MULTIBOOT2, BOOT_PROTOCOL_PVH,
		BOOT_PROTOCOL_VMLINUX,	 BOOT_PROTOCOL_BZIMAGE,	   BOOT_PROTOCOL_LINUX32,
		BOOT_PROTOCOL_LINUX16,
	};

	if (img->is_linux && protocol_image_has(img, BOOT_PROTOCOL_VMLINUX))
		return BOOT_PROTOCOL_VMLINUX;
	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (protocol_image_has(img, order[i]))
			return order[i];
	return BOOT_PROTOCOL_AUTO;
}

int protocol_of_image(const struct boot_image *img, const char *name, enum boot_protocol asked,
		      enum boot_protocol *out, struct err *e)
{
	char has[128] = "";

	if (asked == BOOT_PROTOCOL_AUTO)
		asked = protocol_choose(img);
	if (protocol_image_has(img, asked)) {
		*out = asked;
		return 0;
	}
	if (img->unloaded.code)
		return err_set(e, img->unloaded.code, "%s", img->unloaded.text);
	if (asked == BOOT_PROTOCOL_AUTO)
		return err_set(e, EINVAL,
			       "%s: ELF entry 0x%" PRIx64 " lies in no segment, neither by "
			       "physical nor by linked address (physical: 0x%" PRIx64 "..0x%" PRIx64
			       "), and it has no multiboot header and no PVH note",
			       name, img->elf_entry, img->low, img->high);
	for (unsigned int i = 0; i < BOOT_PROTOCOL_AUTO; i++) {
		if (protocol_image_has(img, (enum boot_protocol)i)) {
			strcat(has, *has ? ", " : "");
			strcat(has, names[i]);
		}
	}
	return err_set(e, EINVAL, "--boot=%s needs %s; %s can be entered by %s", names[asked],
		       needs[asked], name, has);
}
