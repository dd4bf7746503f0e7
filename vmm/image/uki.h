/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uki: a unified kernel image, as places in its file.
 *
 * It is an EFI program (PE32+) that carries a kernel, its initial RAM disk, its command line
 * and what they are in sections of their own. Its own code, the stub, is not run: what it
 * would hand to the kernel is found here instead.
 *
 *	file     := "MZ" ... PE header, COFF header, optional header, sections[n]
 *	sections := base { ".profile" profile }
 *
 * Of a file with profiles it is the first profile that a stub takes when nobody asks for
 * another: its sections go before those of the same name in the base.
 *
 * Sources: UAPI.5 Unified Kernel Image (sections, "Multi-Profile UKIs"); Microsoft PE Format
 * (headers). Pure functions over bytes.
 */
#ifndef KVMPROF_VMM_IMAGE_UKI_H
#define KVMPROF_VMM_IMAGE_UKI_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UKI_HEAD (64u << 10)	 /* bytes from the beginning that have all headers */
#define UKI_MAX_SECTIONS 256u	 /* of the file */
#define UKI_MAX_TEXT (64u << 10) /* bytes of .cmdline, .osrel and .uname each */

enum uki_section {
	UKI_LINUX,
	UKI_INITRD,
	UKI_UCODE, /* an uncompressed cpio archive; stands before the initrd */
	UKI_CMDLINE,
	UKI_OSREL,
	UKI_UNAME,
	UKI_SECTIONS,
};

struct uki {
	struct {
		uint64_t off, len; /* bytes in the file, inside of it; len 0: there is none */
	} at[UKI_SECTIONS];
	unsigned int profiles;
};

/* An EFI program that is no bzImage (which is one, too). head: as much as there is of it. */
bool uki_probe(const uint8_t *head, size_t len);

/*
 * head: the first UKI_HEAD bytes of file_len in all, or all of a shorter file; what is more of
 * it is not looked at. name: for messages. -ENOENT, without a message: no EFI program, or one
 * without a kernel; -EINVAL: damaged, a section twice or with too much in it; -ENOTSUP: its
 * kernel is for another machine.
 */
int uki_parse(struct uki *u, const char *name, const uint8_t *head, size_t len, uint64_t file_len,
	      struct err *e);

/*
 * .cmdline or .uname as one line, terminated: up to a NUL, without blanks at its ends, and with
 * blanks for control characters, as the stub passes it on.
 */
void uki_text(const uint8_t *data, size_t len, struct buf *out);

#endif
