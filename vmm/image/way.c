/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an image is entered: what it asks for, and whether it has what the user asks for. */
#include "vmm/image/image.h"

#include "vmm/image/parse.h"
#include "vmm/boot/tables.h"

#include <errno.h>
#include <string.h>

static const char *const names[] = {
	[BOOT_WAY_VMLINUX] = "vmlinux",	    [BOOT_WAY_BZIMAGE] = "bzimage",
	[BOOT_WAY_LINUX32] = "linux32",	    [BOOT_WAY_LINUX16] = "linux16",
	[BOOT_WAY_MULTIBOOT] = "multiboot", [BOOT_WAY_PVH] = "pvh",
	[BOOT_WAY_AUTO] = "auto",
};

/* "--boot=multiboot needs ..." */
static const char *const needs[] = {
	[BOOT_WAY_VMLINUX] = "an ELF64 kernel, or a bzImage with one inside",
	[BOOT_WAY_BZIMAGE] = "a bzImage with a 64-bit entry",
	[BOOT_WAY_LINUX32] = "an ELF32 kernel, or a bzImage with a 32-bit entry",
	[BOOT_WAY_LINUX16] = "a bzImage",
	[BOOT_WAY_MULTIBOOT] = "a kernel with a multiboot header",
	[BOOT_WAY_PVH] = "an ELF kernel with a PVH note",
};

#define WAYS (sizeof(names) / sizeof(names[0]))

const char *boot_way_name(enum boot_way way)
{
	return names[way];
}

int boot_way_parse(const char *name, enum boot_way *out)
{
	for (unsigned int i = 0; i < WAYS; i++) {
		if (!strcmp(name, names[i])) {
			*out = (enum boot_way)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool boot_image_has_way(const struct boot_image *img, enum boot_way way)
{
	bool bzimage = img->kind == BOOT_BZIMAGE || img->kind == BOOT_LINUXLIKE;

	switch (way) {
	case BOOT_WAY_VMLINUX:
		return img->kind == BOOT_ELF64 || img->kind == BOOT_BZIMAGE;
	case BOOT_WAY_BZIMAGE:
		return bzimage && boot_setup_field(img, SETUP_XLOADFLAGS, 2) & XLF_KERNEL_64;
	case BOOT_WAY_LINUX32:
		return img->kind == BOOT_ELF32 ||
		       (bzimage && boot_setup_field(img, SETUP_CODE32_START, 4));
	case BOOT_WAY_LINUX16:
		return bzimage;
	case BOOT_WAY_MULTIBOOT:
		return img->multiboot;
	case BOOT_WAY_PVH:
		return img->pvh_entry != 0;
	case BOOT_WAY_AUTO:
		break;
	}
	return false;
}

/*
 * The most direct way that the image means for itself. An ELF64 with a note or a
 * header for one of the 32-bit ways expects nothing that we could pass at its own
 * entry; a Linux, which has that note too, does.
 */
static enum boot_way way_choose(const struct boot_image *img)
{
	static const enum boot_way order[] = { BOOT_WAY_MULTIBOOT, BOOT_WAY_PVH, BOOT_WAY_VMLINUX,
					       BOOT_WAY_BZIMAGE, BOOT_WAY_LINUX32 };

	if (img->is_linux)
		return BOOT_WAY_VMLINUX;
	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (boot_image_has_way(img, order[i]))
			return order[i];
	return BOOT_WAY_LINUX16;
}

int boot_image_way(const struct boot_image *img, const char *name, enum boot_way asked,
		   enum boot_way *out, struct err *e)
{
	char has[128] = "";

	if (asked == BOOT_WAY_AUTO) {
		*out = way_choose(img);
		return 0;
	}
	if (boot_image_has_way(img, asked)) {
		*out = asked;
		return 0;
	}
	for (unsigned int i = 0; i < BOOT_WAY_AUTO; i++) {
		if (boot_image_has_way(img, (enum boot_way)i)) {
			strcat(has, *has ? ", " : "");
			strcat(has, names[i]);
		}
	}
	return err_set(e, EINVAL, "--boot=%s needs %s; %s can be entered by %s", names[asked],
		       needs[asked], name, has);
}
