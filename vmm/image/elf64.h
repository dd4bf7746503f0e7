/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf64: what the program headers of an ELF64 kernel say. */
#ifndef KVMPROF_VMM_IMAGE_ELF64_H
#define KVMPROF_VMM_IMAGE_ELF64_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct boot_image;

/* Fills entry, low, high, seg, nseg, pvh_entry, is_linux from img->elf. */
int image_elf64_parse(struct boot_image *img, const char *name, struct err *e);
/* Returns true if a segment has a byte at this guest-physical address. */
bool image_elf64_holds(const struct boot_image *img, uint64_t gpa);
/* Returns the guest-physical address of the linked address va, or 0 if no segment is linked there. */
uint64_t image_elf64_physical(const struct boot_image *img, uint64_t va);

#endif
