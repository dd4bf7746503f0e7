/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of the file's parts:
 *
 *	Ehdr | Phdr: PT_LOAD... PT_NOTE | note | symbols | their names |
 *	section names | Shdr: null, note, text..., .symtab, .strtab, .shstrtab
 */
#include "symbolizer/program/elfsynth.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static const char shstr[] = "\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab";

/* Offsets of the names in shstr. */
enum { NAME_NOTE = 1, NAME_TEXT = 20, NAME_SYMTAB = 26, NAME_STRTAB = 34, NAME_SHSTRTAB = 42 };

struct elfsynth_layout {
	struct buf *out;
	const struct userelf *u;
	unsigned int text[USERELF_MAX_SEGMENTS]; /* segment of each text section */
	unsigned int ntext;
	uint64_t note_off, note_len, sym_off, sym_len, str_off, str_len, shstr_off;
	uint32_t locals; /* symbols before the first global one, including the null symbol */
};

static void put_phdr(struct buf *b, uint32_t type, const struct userelf_segment *s)
{
	buf_u32(b, type);
	buf_u32(b, s->flags);
	buf_u64(b, s->file_off);
	buf_u64(b, s->va);
	buf_u64(b, s->va);
	buf_u64(b, s->file_len);
	buf_u64(b, s->mem_len);
	buf_u64(b, s->align);
}

static void put_headers(struct elfsynth_layout *l, unsigned int id_len)
{
	static const uint8_t ident[EI_NIDENT] = { 0x7f,	      'E',	   'L',	      'F',
						  ELFCLASS64, ELFDATA2LSB, EV_CURRENT };
	struct buf *b = l->out;
	unsigned int phnum = l->u->nseg + 1;
	struct userelf_segment note;

	l->note_off = sizeof(Elf64_Ehdr) + phnum * sizeof(Elf64_Phdr);
	l->note_len = 16 + ((id_len + 3) & ~3u);
	buf_add(b, ident, sizeof(ident));
	buf_u16(b, l->u->type);
	buf_u16(b, EM_X86_64);
	buf_u32(b, EV_CURRENT);
	buf_u64(b, l->u->entry);
	buf_u64(b, sizeof(Elf64_Ehdr)); /* e_phoff */
	buf_u64(b, 0);			/* e_shoff, set at the end */
	buf_u32(b, 0);
	buf_u16(b, sizeof(Elf64_Ehdr));
	buf_u16(b, sizeof(Elf64_Phdr));
	buf_u16(b, (uint16_t)phnum);
	buf_u16(b, sizeof(Elf64_Shdr));
	buf_u16(b, (uint16_t)(l->ntext + 5));
	buf_u16(b, (uint16_t)(l->ntext + 4));
	for (unsigned int i = 0; i < l->u->nseg; i++)
		put_phdr(b, PT_LOAD, &l->u->seg[i]);
	note = (struct userelf_segment){
		.flags = PF_R,
		.file_off = l->note_off,
		.file_len = l->note_len,
		.align = 4,
	};
	put_phdr(b, PT_NOTE, &note);
}

/* Returns the number of the text section that contains va, or 0. */
static uint16_t section_of(const struct elfsynth_layout *l, uint64_t va)
{
	for (unsigned int i = 0; i < l->ntext; i++) {
		const struct userelf_segment *s = &l->u->seg[l->text[i]];

		if (va >= s->va && va - s->va < s->mem_len)
			return (uint16_t)(i + 2);
	}
	return 0;
}

static bool is_code(const struct symbol *s)
{
	return s->type == 't' || s->type == 'T' || s->type == 'w' || s->type == 'W';
}

/*
 * Writes local or global symbols. Global ones come after all local ones (System V ABI, "Sections",
 * sh_info).
 */
static void put_symbols(struct elfsynth_layout *l, const struct symtab *t, bool local,
			struct buf *names)
{
	for (size_t i = 0; i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);
		uint16_t section = section_of(l, s->addr);
		unsigned int bind = s->type == 't'   ? STB_LOCAL
				    : s->type == 'T' ? STB_GLOBAL
						     : STB_WEAK;

		if (!is_code(s) || !s->size || !section || (bind == STB_LOCAL) != local)
			continue;
		/* Among several names for one address, write the one that we print ourselves. */
		if (symtab_lookup(t, s->addr, NULL) != s)
			continue;
		buf_u32(l->out, (uint32_t)names->len);
		buf_u8(l->out, ELF64_ST_INFO(bind, STT_FUNC));
		buf_u8(l->out, STV_DEFAULT);
		buf_u16(l->out, section);
		buf_u64(l->out, s->addr);
		buf_u64(l->out, s->size);
		buf_add(names, s->name, strlen(s->name) + 1);
	}
}

static void put_shdr(struct buf *b, const Elf64_Shdr *s)
{
	buf_u32(b, s->sh_name);
	buf_u32(b, s->sh_type);
	buf_u64(b, s->sh_flags);
	buf_u64(b, s->sh_addr);
	buf_u64(b, s->sh_offset);
	buf_u64(b, s->sh_size);
	buf_u32(b, s->sh_link);
	buf_u32(b, s->sh_info);
	buf_u64(b, s->sh_addralign);
	buf_u64(b, s->sh_entsize);
}

static void put_sections(struct elfsynth_layout *l)
{
	struct buf *b = l->out;
	Elf64_Shdr s = { 0 };

	buf_align(b, 8);
	buf_put64(b, offsetof(Elf64_Ehdr, e_shoff), b->len);
	put_shdr(b, &s);
	s = (Elf64_Shdr){ .sh_name = NAME_NOTE,
			  .sh_type = SHT_NOTE,
			  .sh_offset = l->note_off,
			  .sh_size = l->note_len,
			  .sh_addralign = 4 };
	put_shdr(b, &s);
	for (unsigned int i = 0; i < l->ntext; i++) {
		const struct userelf_segment *seg = &l->u->seg[l->text[i]];

		s = (Elf64_Shdr){ .sh_name = NAME_TEXT,
				  .sh_type = SHT_NOBITS,
				  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				  .sh_addr = seg->va,
				  .sh_offset = seg->file_off,
				  .sh_size = seg->mem_len,
				  .sh_addralign = 1 };
		put_shdr(b, &s);
	}
	s = (Elf64_Shdr){ .sh_name = NAME_SYMTAB,
			  .sh_type = SHT_SYMTAB,
			  .sh_offset = l->sym_off,
			  .sh_size = l->sym_len,
			  .sh_link = l->ntext + 3,
			  .sh_info = l->locals,
			  .sh_addralign = 8,
			  .sh_entsize = sizeof(Elf64_Sym) };
	put_shdr(b, &s);
	s = (Elf64_Shdr){ .sh_name = NAME_STRTAB,
			  .sh_type = SHT_STRTAB,
			  .sh_offset = l->str_off,
			  .sh_size = l->str_len,
			  .sh_addralign = 1 };
	put_shdr(b, &s);
	s = (Elf64_Shdr){ .sh_name = NAME_SHSTRTAB,
			  .sh_type = SHT_STRTAB,
			  .sh_offset = l->shstr_off,
			  .sh_size = sizeof(shstr),
			  .sh_addralign = 1 };
	put_shdr(b, &s);
}

static void put_all(struct elfsynth_layout *l, const uint8_t *id, unsigned int id_len,
		    const struct symtab *t, struct buf *names)
{
	struct buf *b = l->out;

	put_headers(l, id_len);
	buf_u32(b, 4);
	buf_u32(b, id_len);
	buf_u32(b, NT_GNU_BUILD_ID);
	buf_add(b, "GNU", 4);
	buf_add(b, id, id_len);
	buf_align(b, 8);
	l->sym_off = b->len;
	buf_add(b, NULL, sizeof(Elf64_Sym));
	buf_u8(names, 0);
	put_symbols(l, t, true, names);
	l->locals = (uint32_t)((b->len - l->sym_off) / sizeof(Elf64_Sym));
	put_symbols(l, t, false, names);
	l->sym_len = b->len - l->sym_off;
	l->str_off = b->len;
	l->str_len = names->len;
	buf_add(b, names->data, names->len);
	l->shstr_off = b->len;
	buf_add(b, shstr, sizeof(shstr));
	put_sections(l);
}

int elfsynth_write(struct buf *out, const struct userelf *u, const uint8_t *build_id,
		   unsigned int build_id_len, const struct symtab *symbols, struct err *e)
{
	struct elfsynth_layout l = { .out = out, .u = u };
	struct buf names;
	bool failed;

	for (unsigned int i = 0; i < u->nseg; i++)
		if (u->seg[i].flags & PF_X)
			l.text[l.ntext++] = i;
	if (build_id_len == 0 || build_id_len > USERELF_BUILD_ID_MAX)
		return err_set(e, EINVAL, "%s: a build id of %u bytes, expected 1 to %u", u->name,
			       build_id_len, USERELF_BUILD_ID_MAX);
	if (l.ntext == 0)
		return err_set(e, EINVAL, "%s: no executable segment to name", u->name);
	buf_init(&names);
	put_all(&l, build_id, build_id_len, symbols, &names);
	failed = out->failed || names.failed;
	buf_deinit(&names);
	if (failed)
		return err_set(e, ENOMEM, "%s: no memory for a file of its names", u->name);
	if (l.str_len > UINT32_MAX)
		return err_set(e, E2BIG, "%s: names of %llu bytes are too long for one file",
			       u->name, (unsigned long long)l.str_len);
	if (l.sym_len <= sizeof(Elf64_Sym))
		return err_set(e, EINVAL, "%s: none of its %zu symbols is a function in its text",
			       u->name, symtab_count(symbols));
	return 0;
}
