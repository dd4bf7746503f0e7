/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_struct: the headers of ELF64 files, as they lie there (System V ABI, "Object Files").
 *
 * Each reads one from where the cursor is and moves on; one that is not all there is
 * zero, and the cursor is bad. What they say is checked by who asks.
 */
#ifndef KVMPROF_BASE_ELF_STRUCT_H
#define KVMPROF_BASE_ELF_STRUCT_H

#include "base/cursor.h"

#include <elf.h>

CURSOR_READ(ehdr, Elf64_Ehdr)
CURSOR_READ(phdr, Elf64_Phdr)
CURSOR_READ(shdr, Elf64_Shdr)

#endif
