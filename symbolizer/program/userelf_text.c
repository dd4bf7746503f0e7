/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/userelf_text.h"

#include "base/cursor.h"

#include <elf.h>

/* Is va in a section of code that has no bytes in the file? */
static bool has_no_bytes(const struct userelf *u, const uint8_t *data, size_t len, uint64_t va)
{
	struct cursor c;

	cursor_init(&c, data, len);
	cursor_seek(&c, u->shoff);
	for (uint32_t i = 0; u->shoff && i < u->shnum && cursor_left(&c) >= sizeof(Elf64_Shdr);
	     i++) {
		uint64_t flags, addr, size;
		uint32_t type;

		cursor_u32(&c); /* sh_name */
		type = cursor_u32(&c);
		flags = cursor_u64(&c);
		addr = cursor_u64(&c);
		cursor_u64(&c); /* sh_offset */
		size = cursor_u64(&c);
		cursor_skip(&c, sizeof(Elf64_Shdr) - 40);
		if (flags & SHF_EXECINSTR && va >= addr && va - addr < size)
			return type == SHT_NOBITS;
	}
	return false;
}

size_t elf_text_at(const struct userelf *u, const uint8_t *data, size_t data_len, uint64_t va,
		   size_t len, const uint8_t **out)
{
	if (has_no_bytes(u, data, data_len, va))
		return 0;
	for (unsigned int i = 0; i < u->nseg; i++) {
		const struct userelf_segment *s = &u->seg[i];
		uint64_t in = va - s->va, off;

		if (!(s->flags & PF_X) || va < s->va || in >= s->file_len ||
		    __builtin_add_overflow(s->file_off, in, &off) || off >= data_len)
			continue;
		if (len > s->file_len - in)
			len = (size_t)(s->file_len - in);
		if (len > data_len - off)
			len = (size_t)(data_len - off);
		*out = data + off;
		return len;
	}
	return 0;
}
