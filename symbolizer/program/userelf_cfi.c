/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/userelf_cfi.h"

#include "symbolizer/cfi/sframe.h"
#include "symbolizer/program/gopclntab.h"
#include "symbolizer/program/userelf_syms.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SECTIONS 65536u
#define MAX_NAMES (1u << 20)

struct userelf_cfi {
	struct userelf u; /* its name is not used */
	uint64_t off;	  /* file offset of a .debug_frame, to which its addresses are relative */
	struct cfi_table table;
	bool have_table, have_go, have_sframe;
	struct gopclntab go;  /* for addresses that the table does not describe */
	struct sframe sframe; /* for addresses that neither describes */
};

/* Reads bytes at a file offset, across pages. */
static size_t read_at(const struct userelf *u, uint64_t off, void *dst, size_t len)
{
	return u->src.read(u->src.ctx, off, dst, len);
}

static size_t read_mapped(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct userelf_cfi *c = ctx;
	size_t done = 0;

	while (done < len) {
		uint64_t off, page = (va + done) | (FILEPIECE_PAGE - 1);
		size_t want = len - done, n;

		if (!userelf_off_of(&c->u, va + done, &off))
			break;
		if (want > page - (va + done) + 1)
			want = (size_t)(page - (va + done) + 1);
		n = read_at(&c->u, off, (uint8_t *)dst + done, want);
		done += n;
		if (n < want)
			break;
	}
	return done;
}

static size_t read_section(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct userelf_cfi *c = ctx;

	return read_at(&c->u, c->off + va, dst, len);
}

struct userelf_cfi_sections {
	struct filepiece headers, names;
};

static bool cfi_section(const struct userelf_cfi_sections *s, const char *name, Elf64_Shdr *out)
{
	for (size_t at = 0; at + sizeof(*out) <= s->headers.len; at += sizeof(*out)) {
		const char *is;

		if (!filepiece_has(&s->headers, at, sizeof(*out)))
			continue;
		memcpy(out, s->headers.data + at, sizeof(*out));
		is = filepiece_str(&s->names, out->sh_name, 32);
		if (is && !strcmp(is, name) && out->sh_type != SHT_NOBITS &&
		    !(out->sh_flags & SHF_COMPRESSED))
			return true;
	}
	return false;
}

static enum cfi_found open_section(struct userelf_cfi *c, const struct userelf_cfi_sections *s)
{
	struct cfi_section x;
	Elf64_Shdr h;

	if (cfi_section(s, ".eh_frame", &h))
		x = (struct cfi_section){ { read_mapped, c }, CFI_EH_FRAME, h.sh_addr, h.sh_size };
	else if (cfi_section(s, ".debug_frame", &h))
		x = (struct cfi_section){ { read_section, c }, CFI_DEBUG_FRAME, 0, h.sh_size };
	else
		return s->headers.nmissing || s->names.nmissing ? CFI_HOLE : CFI_NONE;
	c->off = h.sh_offset;
	return cfi_table_by_section(&c->table, &x);
}

/* Opens a Go program's own table; in a position-independent one it is in .data.rel.ro. */
static enum cfi_found open_go(struct userelf_cfi *c, const struct userelf_cfi_sections *s)
{
	Elf64_Shdr h, text;

	if (!cfi_section(s, ".gopclntab", &h) && !cfi_section(s, ".data.rel.ro.gopclntab", &h))
		return s->headers.nmissing || s->names.nmissing ? CFI_HOLE : CFI_NONE;
	return gopclntab_open(&c->go, &c->u.src, h.sh_offset, h.sh_size,
			      cfi_section(s, ".text", &text) ? text.sh_addr : 0);
}

/*
 * Opens .sframe. If it cannot be read, it counts as absent: other tables may exist, also in a
 * debug file.
 */
static enum cfi_found open_sframe(struct userelf_cfi *c, uint64_t va, uint64_t len)
{
	enum cfi_found found =
		sframe_open(&c->sframe, &(struct cfi_source){ read_mapped, c }, va, len);

	c->have_sframe = found == CFI_FOUND;
	return found == CFI_BAD ? CFI_NONE : found;
}

static enum cfi_found open_more(struct userelf_cfi *c, const struct userelf_cfi_sections *s)
{
	enum cfi_found go = open_go(c, s), sframe = CFI_NONE;
	Elf64_Shdr h;

	c->have_go = go == CFI_FOUND;
	if (!c->have_sframe && cfi_section(s, ".sframe", &h) && h.sh_flags & SHF_ALLOC)
		sframe = open_sframe(c, h.sh_addr, h.sh_size);
	return c->have_go || sframe == CFI_NONE ? go : sframe;
}

static enum cfi_found open_sections(struct userelf_cfi *c)
{
	const struct userelf *u = &c->u;
	struct userelf_cfi_sections s = { 0 };
	enum cfi_found found = CFI_NONE, more;
	Elf64_Shdr h;

	if (!u->shoff || !u->shnum || u->shnum > MAX_SECTIONS || u->shstrndx >= u->shnum)
		return CFI_NONE;
	if (filepiece_read(&s.headers, &u->src, u->shoff, u->shnum * sizeof(Elf64_Shdr),
			   MAX_SECTIONS * sizeof(Elf64_Shdr)) < 0)
		return CFI_BAD;
	if (!filepiece_has(&s.headers, u->shstrndx * sizeof(h), sizeof(h))) {
		found = CFI_HOLE;
	} else {
		memcpy(&h, s.headers.data + u->shstrndx * sizeof(h), sizeof(h));
		if (filepiece_read(&s.names, &u->src, h.sh_offset, h.sh_size, MAX_NAMES) < 0)
			found = CFI_BAD;
		else if (!c->have_table)
			found = open_section(c, &s);
	}
	c->have_table |= found == CFI_FOUND;
	more = s.names.len ? open_more(c, &s) : CFI_NONE;
	if (found == CFI_NONE || c->have_table || more == CFI_FOUND)
		found = c->have_table ? CFI_FOUND : more;
	filepiece_deinit(&s.names);
	filepiece_deinit(&s.headers);
	return found;
}

enum cfi_found userelf_cfi_open(struct userelf_cfi **out, const struct userelf *u)
{
	struct userelf_cfi *c = calloc(1, sizeof(*c));
	enum cfi_found found = CFI_NONE, sframe = CFI_NONE;
	uint64_t frame_va;

	if (!c)
		return CFI_BAD;
	c->u = *u;
	c->u.name = "";
	if (u->frames_len)
		found = cfi_table_by_header(&c->table, &(struct cfi_source){ read_mapped, c },
					    u->frames_va, u->frames_len, &frame_va);
	c->have_table = found == CFI_FOUND;
	if (u->sframe_len)
		sframe = open_sframe(c, u->sframe_va, u->sframe_len);
	if (found == CFI_NONE || (found == CFI_FOUND && u->shoff)) {
		enum cfi_found rest = open_sections(c);

		/* Missing section headers do not matter if there are tables. */
		found = c->have_table || c->have_sframe ? CFI_FOUND : rest;
	}
	if (found == CFI_BAD && c->have_sframe)
		found = CFI_FOUND;
	if (found == CFI_NONE)
		found = sframe;
	if (found == CFI_FOUND)
		*out = c;
	else
		userelf_cfi_destroy(c);
	return found;
}

void userelf_cfi_destroy(struct userelf_cfi *c)
{
	if (!c)
		return;
	cfi_table_deinit(&c->table);
	sframe_deinit(&c->sframe);
	free(c);
}

bool userelf_cfi_va(const struct userelf_cfi *c, uint64_t file_off, uint64_t *va)
{
	return userelf_va_of(&c->u, file_off, va);
}

/*
 * Returns how far the CFA is above rsp in an entry of a PLT, which is push and jmp after an
 * endbr64, or a jmp through a slot; 0 if it is neither. GNU's linker writes wrong rows for these
 * entries: for those with endbr64 before binutils 2.44 (its bug 32296), for .plt.got up to at
 * least 2.47.
 */
static int32_t plt_cfa(const struct userelf_cfi *c, uint64_t va)
{
	static const uint8_t endbr[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	void *ctx = (void *)(uintptr_t)c;
	uint8_t b[11];

	if (read_mapped(ctx, va & ~UINT64_C(15), b, sizeof(b)) == sizeof(b) &&
	    !memcmp(b, endbr, sizeof(endbr))) {
		/* Some have the prefix bnd (f2) before each jmp. */
		if (b[4] == 0x68 && (b[9] == 0xe9 || (b[9] == 0xf2 && b[10] == 0xe9)))
			return va % 16 < 9 ? 8 : 16;
		if ((b[4] == 0xff && b[5] == 0x25) ||
		    (b[4] == 0xf2 && b[5] == 0xff && b[6] == 0x25))
			return 8;
	}
	return va % 8 < 6 && read_mapped(ctx, va & ~UINT64_C(7), b, 2) == 2 && b[0] == 0xff &&
			       b[1] == 0x25 && sframe_is_repeated(&c->sframe, va)
		       ? 8
		       : 0;
}

static enum cfi_found row_by_sframe(const struct userelf_cfi *c, uint64_t va, struct cfi_row *row)
{
	enum cfi_found found = sframe_row(&c->sframe, va, row);
	int32_t cfa = found == CFI_FOUND && row->cfa_reg == CFI_RSP ? plt_cfa(c, va) : 0;

	if (cfa)
		row->cfa = cfa;
	return found;
}

enum cfi_found userelf_cfi_end(const struct userelf_cfi *c, uint64_t va, uint64_t *end)
{
	return c->have_table ? cfi_table_end(&c->table, va, end) : CFI_NONE;
}

enum cfi_found userelf_cfi_row(const struct userelf_cfi *c, uint64_t va, struct cfi_row *row)
{
	enum cfi_found found = c->have_table ? cfi_table_row(&c->table, va, row) : CFI_NONE;

	if (found == CFI_NONE && c->have_go)
		found = gopclntab_row(&c->go, va, row);
	return found == CFI_NONE && c->have_sframe ? row_by_sframe(c, va, row) : found;
}
