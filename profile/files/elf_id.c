/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/files/elf_id.h"

#include "base/cleanup.h"
#include "symbolizer/core/elf64.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_NOTE 65536u /* bytes read of one note section */
#define MAX_NOTES 64u	/* note sections and segments looked at */
#define CHUNK 64u	/* table entries read at once */

static int read_at(int fd, void *dst, size_t len, uint64_t off)
{
	uint8_t *p = dst;

	if (off > INT64_MAX - len)
		return -EINVAL;
	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EINVAL;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* The id's length, 0 when these notes have none; a place outside the file has none either. */
static int id_in_notes(int fd, uint64_t off, uint64_t len, uint8_t id[ELF_ID_MAX])
{
	cleanup_free uint8_t *notes = NULL;
	struct elf64 f = { .name = "notes" };

	if (len > MAX_NOTE)
		len = MAX_NOTE;
	notes = malloc(len ? len : 1);
	if (!notes)
		return -ENOMEM;
	if (read_at(fd, notes, len, off) < 0)
		return 0;
	cursor_init(&f.file, notes, len);
	return (int)elf64_build_id(&f, 0, len, id, ELF_ID_MAX);
}

static int id_in_segments(int fd, const Elf64_Ehdr *eh, uint8_t id[ELF_ID_MAX])
{
	Elf64_Phdr ph[CHUNK];
	unsigned int notes = 0;
	int ret = 0;

	if (eh->e_phentsize != sizeof(*ph))
		return 0;
	for (uint32_t i = 0; i < eh->e_phnum && !ret; i += CHUNK) {
		uint32_t n = eh->e_phnum - i < CHUNK ? eh->e_phnum - i : CHUNK;

		ret = read_at(fd, ph, n * sizeof(*ph), eh->e_phoff + i * sizeof(*ph));
		for (uint32_t k = 0; k < n && !ret && notes < MAX_NOTES; k++)
			if (ph[k].p_type == PT_NOTE && ++notes)
				ret = id_in_notes(fd, ph[k].p_offset, ph[k].p_filesz, id);
	}
	return ret;
}

static int id_in_sections(int fd, const Elf64_Ehdr *eh, uint8_t id[ELF_ID_MAX])
{
	Elf64_Shdr sh[CHUNK];
	uint64_t count = eh->e_shnum;
	unsigned int notes = 0;
	int ret = 0;

	if (eh->e_shentsize != sizeof(*sh) || eh->e_shoff == 0)
		return 0;
	if (count == 0) {
		/* More than 16 bits hold: the number is in section 0. */
		ret = read_at(fd, sh, sizeof(*sh), eh->e_shoff);
		count = sh[0].sh_size;
		if (ret || count > ELF64_MAX_SHDRS)
			return ret ? ret : -EINVAL;
	}
	for (uint64_t i = 0; i < count && !ret; i += CHUNK) {
		uint64_t n = count - i < CHUNK ? count - i : CHUNK;

		ret = read_at(fd, sh, n * sizeof(*sh), eh->e_shoff + i * sizeof(*sh));
		for (uint64_t k = 0; k < n && !ret && notes < MAX_NOTES; k++)
			if (sh[k].sh_type == SHT_NOTE && ++notes)
				ret = id_in_notes(fd, sh[k].sh_offset, sh[k].sh_size, id);
	}
	return ret;
}

int elf_id_read(int fd, uint8_t id[ELF_ID_MAX])
{
	Elf64_Ehdr eh;
	int ret = read_at(fd, &eh, sizeof(eh), 0);

	if (ret == -EINVAL)
		return -ENOEXEC; /* shorter than a header */
	if (ret)
		return ret;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (eh.e_phoff > INT64_MAX / 2 || eh.e_shoff > INT64_MAX / 2)
		return -EINVAL;
	ret = id_in_segments(fd, &eh, id);
	/* A separate debug file may have program headers that point at nothing. */
	if (ret == 0 || ret == -EINVAL)
		ret = id_in_sections(fd, &eh, id);
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
