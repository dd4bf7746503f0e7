/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf64: parses the program headers of an ELF64 kernel. Pure functions; any thread. */
#ifndef KVMPROF_VMM_IMAGE_ELF64_H
#define KVMPROF_VMM_IMAGE_ELF64_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct boot_image;

/*
 * Fills entry, low, high, seg, nseg, pvh_entry, is_linux and unloaded from img->elf. Returns 0, or
 * -EINVAL or -ENOTSUP with *e set. name is for messages.
 */
int image_elf64_parse(struct boot_image *img, const char *name, struct err *e);
/* Returns whether a segment contains this guest-physical address. */
bool image_elf64_contains(const struct boot_image *img, uint64_t gpa);
/* Returns the guest-physical address of link address va, or 0 if no segment is linked there. */
uint64_t image_elf64_physical(const struct boot_image *img, uint64_t va);

#endif
