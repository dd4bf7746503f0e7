/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/uki.h"

#include "base/cursor.h"
#include "vmm/image/bzimage.h"

#include <errno.h>
#include <string.h>

/* PE Format: MS-DOS stub, signature, COFF file header, optional header, section table. */
#define DOS_MAGIC 0x5a4du /* "MZ" */
#define DOS_LFANEW 0x3cu
#define PE_MAGIC 0x00004550u /* "PE\0\0" */
#define COFF_LEN 20u
#define PE32_PLUS 0x20bu
#define SECTION_LEN 40u
#define SECTION_NAME 8u
#define MACHINE_X86_64 0x8664u

static const char names[UKI_SECTIONS][SECTION_NAME + 1] = {
	[UKI_LINUX] = ".linux",	    [UKI_INITRD] = ".initrd", [UKI_UCODE] = ".ucode",
	[UKI_CMDLINE] = ".cmdline", [UKI_OSREL] = ".osrel",   [UKI_UNAME] = ".uname",
};

struct section {
	char name[SECTION_NAME + 1];
	uint32_t mem_len, file_len, off;
};

/* Moves c behind the signature of the PE header. Returns false if there is none. */
static bool find_pe(struct cursor *c)
{
	uint32_t at;

	if (cursor_u16(c) != DOS_MAGIC)
		return false;
	cursor_seek(c, DOS_LFANEW);
	at = cursor_u32(c);
	cursor_seek(c, at);
	return cursor_u32(c) == PE_MAGIC && !c->bad;
}

bool uki_probe(const uint8_t *head, size_t len)
{
	struct cursor c;

	cursor_init(&c, head, len);
	return find_pe(&c) && !bzimage_probe(head, len);
}

static struct section read_section(struct cursor *c)
{
	struct section s = { 0 };
	const uint8_t *name = cursor_bytes(c, SECTION_NAME);

	if (name)
		memcpy(s.name, name, SECTION_NAME);
	s.mem_len = cursor_u32(c);
	cursor_skip(c, 4); /* address in memory */
	s.file_len = cursor_u32(c);
	s.off = cursor_u32(c);
	cursor_skip(c, 16);
	return s;
}

static int uki_add_section(struct uki *u, const char *name, enum uki_section kind,
			   const struct section *s, uint64_t file_len, struct err *e)
{
	/* The length in the file is padded; objcopy may omit the length in memory. */
	uint64_t len = s->mem_len && s->mem_len < s->file_len ? s->mem_len : s->file_len;

	if (s->off > file_len || len > file_len - s->off)
		return err_set(e, EINVAL,
			       "%s: truncated unified kernel image: section %s has the %llu bytes "
			       "from 0x%x on, the file has %llu",
			       name, s->name, (unsigned long long)len, s->off,
			       (unsigned long long)file_len);
	if (kind >= UKI_CMDLINE && len > UKI_MAX_TEXT)
		return err_set(e, EINVAL,
			       "%s: section %s of the unified kernel image has %llu bytes, more "
			       "than the limit of %u",
			       name, s->name, (unsigned long long)len, UKI_MAX_TEXT);
	u->at[kind].off = s->off;
	u->at[kind].len = len;
	return 0;
}

/* Reads n sections; c is at the section table. */
static int read_table(struct uki *u, const char *name, struct cursor *c, unsigned int n,
		      uint64_t file_len, struct err *e)
{
	unsigned int seen = 0; /* sections seen in the base or the current profile, one bit each */
	int ret = 0;

	for (unsigned int i = 0; i < n && !ret; i++) {
		struct section s = read_section(c);

		if (!strcmp(s.name, ".profile")) {
			u->profiles++;
			seen = 0;
		}
		for (unsigned int k = 0; k < UKI_SECTIONS && u->profiles < 2 && !ret; k++) {
			if (strcmp(s.name, names[k]) != 0)
				continue;
			if (seen & 1u << k)
				return err_set(e, EINVAL,
					       "%s: two sections %s where a unified kernel image "
					       "has one",
					       name, s.name);
			seen |= 1u << k;
			ret = uki_add_section(u, name, (enum uki_section)k, &s, file_len, e);
		}
	}
	return ret;
}

int uki_parse(struct uki *u, const char *name, const uint8_t *head, size_t len, uint64_t file_len,
	      struct err *e)
{
	struct uki tmp = { 0 };
	unsigned int machine, n, optional, magic;
	struct cursor c;
	size_t table;
	int ret;

	len = len < UKI_HEAD ? len : UKI_HEAD;
	if (!uki_probe(head, len))
		return -ENOENT;
	cursor_init(&c, head, len);
	find_pe(&c);
	machine = cursor_u16(&c);
	n = cursor_u16(&c);
	cursor_skip(&c, COFF_LEN - 8);
	optional = cursor_u16(&c);
	cursor_skip(&c, 2);
	table = c.pos + optional;
	magic = cursor_u16(&c);
	cursor_seek(&c, table);
	if (n > UKI_MAX_SECTIONS)
		return err_set(e, EINVAL,
			       "%s: an EFI program with %u sections, more than the "
			       "limit of %u",
			       name, n, UKI_MAX_SECTIONS);
	if (c.bad || cursor_left(&c) < (size_t)n * SECTION_LEN)
		return err_set(e, EINVAL,
			       "%s: truncated EFI program: its table of %u sections ends at byte "
			       "%zu, %s has %zu",
			       name, n, table + (size_t)n * SECTION_LEN,
			       len < file_len ? "what may have headers" : "the file", len);
	ret = read_table(&tmp, name, &c, n, file_len, e);
	if (ret)
		return ret;
	if (!tmp.at[UKI_LINUX].len)
		return -ENOENT;
	if (machine != MACHINE_X86_64 || magic != PE32_PLUS)
		return err_set(e, ENOTSUP,
			       "%s: this is a unified kernel image for another machine (%s0x%04x); "
			       "only x86-64 kernels can be booted",
			       name,
			       machine == 0xaa64   ? "arm64, "
			       : machine == 0x014c ? "i386, "
						   : "",
			       machine);
	*u = tmp;
	return 0;
}

void uki_text(const uint8_t *data, size_t len, struct buf *out)
{
	const uint8_t *nul = len ? memchr(data, 0, len) : NULL;
	size_t n = nul ? (size_t)(nul - data) : len, from = 0;

	while (from < n && data[from] <= ' ')
		from++;
	while (n > from && data[n - 1] <= ' ')
		n--;
	for (; from < n; from++)
		buf_u8(out, data[from] < ' ' ? ' ' : data[from]);
	buf_u8(out, 0);
}
