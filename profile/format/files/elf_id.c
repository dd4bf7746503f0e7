/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/elf_id.h"

#include "base/cleanup.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

static int id_of(Elf *elf, uint8_t id[ELF_ID_MAX])
{
	const char *ident = elf_getident(elf, NULL);
	const void *bits;
	ssize_t n;

	if (elf_kind(elf) != ELF_K_ELF || ident[EI_CLASS] != ELFCLASS64 ||
	    ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	n = dwelf_elf_gnu_build_id(elf, &bits);
	if (n < 0)
		return -EINVAL;
	if (n > (ssize_t)ELF_ID_MAX)
		return 0;
	if (n)
		memcpy(id, bits, (size_t)n);
	return (int)n;
}

int elf_id_read(int fd, uint8_t id[ELF_ID_MAX])
{
	Elf *elf;
	int ret;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ret = elf ? id_of(elf, id) : -ENOEXEC;
	elf_end(elf);
	return ret;
}

int elf_id_of_path(const char *path, uint8_t id[ELF_ID_MAX])
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? elf_id_read(fd, id) : -ENOEXEC;
}
