/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_struct: readers of the headers of ELF64 files (System V ABI, "Object Files").
 *
 * cursor_ehdr(), cursor_phdr() and cursor_shdr() each return the header at the cursor and advance
 * past it. If the file ends before, they return zeros and the cursor is bad. The caller checks the
 * contents.
 */
#ifndef KVMPROF_BASE_ELF_STRUCT_H
#define KVMPROF_BASE_ELF_STRUCT_H

#include "base/cursor.h"

#include <elf.h>

CURSOR_READ(ehdr, Elf64_Ehdr)
CURSOR_READ(phdr, Elf64_Phdr)
CURSOR_READ(shdr, Elf64_Shdr)

#endif
