/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf_text: code bytes of a program's file.
 *
 * Files of symbols alone (elfsynth.h, objcopy --only-keep-debug) have segments and
 * sections of the right sizes without bytes; sections of type SHT_NOBITS tell.
 * Source of the format: System V ABI, "Sections".
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_TEXT_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_TEXT_H

#include "symbolizer/program/userelf.h"

/*
 * Bytes at the file's address va, at most len: how many there are from *out on.
 * 0: none, or the file has no bytes of its code. data is what u was opened on.
 */
size_t elf_text_at(const struct userelf *u, const uint8_t *data, size_t data_len, uint64_t va,
		   size_t len, const uint8_t **out);

#endif
