/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_id: reads the GNU build id of a file, through libdw, from its note sections, or from its note
 * segments if it has no sections. Nothing else of the file is read. An id whose length is not a
 * multiple of 4 is found only if other notes follow. Any thread may call the functions.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_ELF_ID_H
#define KVMPROF_PROFILE_FORMAT_FILES_ELF_ID_H

#include <stdint.h>

#define ELF_ID_MAX 20u /* bytes; perf does not support longer ids either */

/*
 * Stores the build id of the open file and returns its length in bytes. Returns 0 for a 64-bit ELF
 * file that has none or ends before it, -EINVAL if libdw finds its tables invalid, -ENOEXEC for
 * anything that is not a 64-bit little-endian ELF file. fd stays open.
 */
int elf_id_read(int fd, uint8_t id[ELF_ID_MAX]);

/*
 * Does the same for the regular file at path. Returns -errno if it cannot be opened, -ENOEXEC if it
 * is not a regular file.
 */
int elf_id_of_path(const char *path, uint8_t id[ELF_ID_MAX]);

#endif
