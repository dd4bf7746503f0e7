/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uki: finds the parts of a unified kernel image in its file.
 *
 * It is an EFI program (PE32+) that contains a kernel, its initial RAM disk, its command line and
 * their descriptions in separate sections. Its own code, the stub, is not executed: this module
 * finds what the stub would pass to the kernel.
 *
 *	file     := "MZ" ... PE header, COFF header, optional header, sections[n]
 *	sections := base { ".profile" profile }
 *
 * If a file has profiles, the first one is used, as a stub does by default: its sections override
 * those of the same name in the base.
 *
 * Sources: UAPI.5 Unified Kernel Image (sections, "Multi-Profile UKIs"); Microsoft PE Format
 * (headers). Pure functions over bytes; any thread.
 */
#ifndef KVMPROF_VMM_IMAGE_UKI_H
#define KVMPROF_VMM_IMAGE_UKI_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UKI_HEAD (64u << 10)	 /* bytes from the beginning that contain all headers */
#define UKI_MAX_SECTIONS 256u	 /* in the file */
#define UKI_MAX_TEXT (64u << 10) /* bytes each of .cmdline, .osrel and .uname */

enum uki_section {
	UKI_LINUX,
	UKI_INITRD,
	UKI_UCODE, /* an uncompressed cpio archive, loaded before the initrd */
	UKI_CMDLINE,
	UKI_OSREL,
	UKI_UNAME,
	UKI_SECTIONS,
};

struct uki {
	struct {
		uint64_t off, len; /* position in the file, validated; len 0: absent */
	} at[UKI_SECTIONS];
	unsigned int profiles;
};

/*
 * Returns whether this is an EFI program but not a bzImage, which is an EFI program too. head: as
 * many bytes of the file as are available.
 */
bool uki_probe(const uint8_t *head, size_t len);

/*
 * Finds the sections. head: the first UKI_HEAD bytes of a file of file_len, or all of a shorter
 * file; further bytes are ignored. name is for messages. Returns 0; -ENOENT, without a message, if
 * it is not an EFI program or has no kernel; -EINVAL if it is damaged, or has a section twice or
 * one that is too long; -ENOTSUP if its kernel is for another machine. *u is written only on
 * success.
 */
int uki_parse(struct uki *u, const char *name, const uint8_t *head, size_t len, uint64_t file_len,
	      struct err *e);

/*
 * Appends .cmdline or .uname to *out as one line with a NUL: up to the first NUL, without blanks
 * at its ends, and with control characters replaced by blanks, as the stub does.
 */
void uki_text(const uint8_t *data, size_t len, struct buf *out);

#endif
