/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_id: the GNU build id of a file, by libdw out of its note sections, or of its note
 * segments where it has no sections. What else is in the file is not read. An id whose length
 * is no multiple of 4 is only found when other notes follow. Any thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_ELF_ID_H
#define KVMPROF_PROFILE_FORMAT_FILES_ELF_ID_H

#include <stdint.h>

#define ELF_ID_MAX 20u /* bytes; longer ids are not known to perf either */

/*
 * Returns the id's length, 0 for an ELF64 file without one or that ends before it, -EINVAL
 * where libdw finds its tables bad, -ENOEXEC for anything that is no 64-bit little-endian ELF.
 */
int elf_id_read(int fd, uint8_t id[ELF_ID_MAX]);

/* The same of the regular file at path; -errno of opening it, -ENOEXEC when it is not regular. */
int elf_id_of_path(const char *path, uint8_t id[ELF_ID_MAX]);

#endif
