/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/lines.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/program/lines_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_UNITS (1u << 20)
/*
 * Limits for an unpacked section: its length, and its ratio to the packed length (deflate's
 * maximum is 1032).
 */
#define MAX_UNPACKED (4ull << 30)
#define MAX_RATIO 1040u

/* One file opened by libdw. */
struct dwarf_file {
	const uint8_t *data; /* borrowed, or `copy` */
	size_t len;
	uint8_t *copy; /* libelf unpacks sections in place, so it gets bytes of its own then */
	Elf *elf;
	Dwarf *dw;
	const uint8_t *info, *info_end; /* .debug_info as libdw has it */
};

struct lines {
	char *name;
	struct dwarf_file file, alt;
	char *alt_path; /* "" if the file refers to no other one */
	uint8_t alt_id[LINES_MAX_ALT_ID];
	unsigned int alt_id_len;
	bool indexed;
	struct err why; /* code 0: the index is valid */
	bool cut;	/* units after the last known one are damaged */
	struct line_unit *unit;
	size_t nunit, unit_cap;
	struct line_ranges ranges; /* address ranges of the units */
};

/* -- checks of sections, before libdw reads them ----------------------------------------------- */

struct lines_sections {
	bool info, line, packed;
};

static bool is_debug(const char *name)
{
	return !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8);
}

/*
 * Returns the unpacked length of a packed section; 0 if it is not packed, or damaged, which libelf
 * detects.
 */
static uint64_t unpacked_len(const struct cursor *body, const Elf64_Shdr *s, const char *name)
{
	struct cursor c = *body;
	uint64_t len = 0;

	if (s->sh_flags & SHF_COMPRESSED) {
		cursor_skip(&c, 8); /* Elf64_Chdr: ch_type, ch_reserved */
		return cursor_u64(&c);
	}
	/* GNU's older format: "ZLIB" and the length in big endian. */
	if (!strncmp(name, ".zdebug_", 8) && cursor_u32(&c) == 0x42494c5a)
		for (int i = 0; i < 8; i++)
			len = len << 8 | cursor_u8(&c);
	return len;
}

static void read_alt_link(struct lines *l, const struct cursor *body)
{
	const char *path = cursor_str_at(body, 0);
	struct cursor c = *body;
	const uint8_t *id;

	if (!path)
		return;
	cursor_skip(&c, strlen(path) + 1);
	l->alt_id_len = (unsigned int)(cursor_left(&c) < sizeof(l->alt_id) ? cursor_left(&c)
									   : sizeof(l->alt_id));
	id = cursor_bytes(&c, l->alt_id_len);
	if (id)
		memcpy(l->alt_id, id, l->alt_id_len);
	free(l->alt_path);
	l->alt_path = strdup(path);
}

static int check_sections(struct lines *l, const struct dwarf_file *file, const char *name,
			  struct lines_sections *have, struct err *e)
{
	struct elf64 f;
	int ret = elf64_open(&f, name, file->data, file->len, e);

	if (ret < 0)
		return ret;
	/* A file made by dwz has that type and needs no addresses. */
	if (f.type == ET_REL && l)
		return err_set(e, EINVAL,
			       "%s: a relocatable file: its debug information has no addresses yet",
			       name);
	for (uint32_t i = 0; i < f.shnum; i++) {
		Elf64_Shdr s = elf64_shdr(&f, i);
		const char *sn = elf64_section_name(&f, &s);
		struct cursor body = cursor_window(&f.file, s.sh_offset, s.sh_size);
		uint64_t unpacked;

		if (!strcmp(sn, ".gnu_debugaltlink") && !body.bad && l)
			read_alt_link(l, &body);
		if (!is_debug(sn) || s.sh_type == SHT_NOBITS || s.sh_size == 0)
			continue;
		if (body.bad)
			return err_set(e, EINVAL, "%s: section %s is not inside the file", name,
				       sn);
		unpacked = unpacked_len(&body, &s, sn);
		if (unpacked > MAX_UNPACKED || unpacked / MAX_RATIO > s.sh_size)
			return err_set(e, EINVAL,
				       "%s: section %s claims to unpack from %" PRIu64
				       " to %" PRIu64 " bytes",
				       name, sn, (uint64_t)s.sh_size, unpacked);
		have->packed |= unpacked || (s.sh_flags & SHF_COMPRESSED);
		sn += sn[1] == 'z' ? 8 : 7;
		have->info |= !strcmp(sn, "info");
		have->line |= !strcmp(sn, "line");
	}
	return 0;
}

/* -- libdw -------------------------------------------------------------------------------------- */

static void file_close(struct dwarf_file *f)
{
	if (f->dw)
		dwarf_end(f->dw);
	if (f->elf)
		elf_end(f->elf);
	free(f->copy);
	*f = (struct dwarf_file){ 0 };
}

static bool is_section(const char *name, const char *what)
{
	return is_debug(name) && !strcmp(name + (name[1] == 'z' ? 8 : 7), what);
}

/* Finds the sections as libdw has them, since it returns strings without checking for their end. */
static int find_sections(struct dwarf_file *f, const char *file, struct err *e)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(f->elf, &strings) != 0)
		return 0;
	while ((scn = elf_nextscn(f->elf, scn))) {
		const char *name = NULL;
		GElf_Shdr s;
		Elf_Data *d;

		/* gelf_getshdr() copies: the table need not be aligned. */
		if (gelf_getshdr(scn, &s))
			name = elf_strptr(f->elf, strings, s.sh_name);
		if (!name || !is_debug(name))
			continue;
		d = elf_getdata(scn, NULL);
		if (!d || !d->d_buf || !d->d_size)
			continue;
		if (is_section(name, "info") && !f->info) {
			f->info = d->d_buf;
			f->info_end = f->info + d->d_size;
		}
		if ((is_section(name, "str") || is_section(name, "line_str")) &&
		    ((const char *)d->d_buf)[d->d_size - 1])
			return err_set(e, EINVAL,
				       "%s: section %s is damaged: its last string has no end",
				       file, name);
	}
	return 0;
}

static int file_begin(struct dwarf_file *f, const char *name, struct err *e)
{
	elf_version(EV_CURRENT);
	/* The bytes are only read: libelf's interface has no const. */
	f->elf = elf_memory((char *)(uintptr_t)f->data, f->len);
	if (!f->elf)
		return err_set(e, EINVAL, "%s: libelf refuses it: %s", name, elf_errmsg(-1));
	f->dw = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
	if (!f->dw)
		return err_set(e, EINVAL, "%s: no usable debug information: %s", name,
			       dwarf_errmsg(-1));
	return find_sections(f, name, e);
}

static int file_take(struct dwarf_file *f, const uint8_t *data, size_t len, bool packed)
{
	f->data = data;
	f->len = len;
	if (!packed)
		return 0;
	f->copy = malloc(len);
	if (!f->copy)
		return -ENOMEM;
	memcpy(f->copy, data, len);
	f->data = f->copy;
	return 0;
}

/*
 * If a file refers to a second one that it was not given, libdw would look for it on the disk, at
 * a path that the file names. It gets this one without contents instead, in which nothing can be
 * found: a header, .shstrtab and a .debug_line of one zero byte.
 */
static const struct empty_elf {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[3];
	char names[24];
	char nothing[8];
} empty_elf = {
	.eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shoff = offsetof(struct empty_elf, sh),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 1 },
	.sh = { { 0 },
		{ .sh_name = 1,
		  .sh_type = SHT_STRTAB,
		  .sh_offset = offsetof(struct empty_elf, names),
		  .sh_size = sizeof(((struct empty_elf *)0)->names),
		  .sh_addralign = 1 },
		{ .sh_name = 11,
		  .sh_type = SHT_PROGBITS,
		  .sh_offset = offsetof(struct empty_elf, nothing),
		  .sh_size = 1,
		  .sh_addralign = 1 } },
	.names = "\0.shstrtab\0.debug_line",
};

static int lines_begin(struct lines *l, struct err *e)
{
	int ret = file_begin(&l->file, l->name, e);

	if (ret || !*l->alt_path)
		return ret;
	if (!l->alt.data) {
		l->alt.data = (const uint8_t *)&empty_elf;
		l->alt.len = sizeof(empty_elf);
	}
	ret = file_begin(&l->alt, "alternate debug file", e);
	if (ret == 0)
		dwarf_setalt(l->file.dw, l->alt.dw);
	return ret;
}

/* -- attributes --------------------------------------------------------------------------------- */

/* Returns whether a string in .debug_info has an end, which libdw does not check. */
static bool ends_inside(const struct dwarf_file *f, const uint8_t *p)
{
	return p >= f->info && p < f->info_end && memchr(p, 0, (size_t)(f->info_end - p));
}

static const char *text_of(const struct lines *l, Dwarf_Attribute *a)
{
	if (dwarf_whatform(a) == DW_FORM_string && !ends_inside(&l->file, a->valp) &&
	    !ends_inside(&l->alt, a->valp))
		return NULL;
	return dwarf_formstring(a);
}

static const char *name_of(const struct lines *l, Dwarf_Die *die)
{
	static const unsigned int how[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name,
					    DW_AT_name };
	Dwarf_Attribute a;

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		const char *s = dwarf_attr_integrate(die, how[i], &a) ? text_of(l, &a) : NULL;

		if (s && *s)
			return s;
	}
	return NULL;
}

/* Returns DW_AT_name, or NULL if it has none or one without an end. */
static const char *lines_short_name(const struct lines *l, Dwarf_Die *die)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, DW_AT_name, &a) ? text_of(l, &a) : NULL;
}

static unsigned int number_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!dwarf_attr(die, attribute, &a) || dwarf_formudata(&a, &v) != 0 || v > UINT32_MAX)
		return 0;
	return (unsigned int)v;
}

/* -- units -------------------------------------------------------------------------------------- */

/*
 * Returns whether the strings from which libdw makes paths have an end. A string in a missing
 * second file is merely missing.
 */
static bool strings_are_sane(const struct lines *l, Dwarf_Die *die)
{
	static const unsigned int used[] = { DW_AT_comp_dir, DW_AT_name };
	Dwarf_Attribute a;

	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		if (dwarf_attr(die, used[i], &a) && dwarf_whatform(&a) == DW_FORM_string &&
		    !text_of(l, &a))
			return false;
	return true;
}

static int add_unit(struct lines *l, Dwarf_Die *die, unsigned int version)
{
	struct line_unit *u;
	int ret;

	if (!strings_are_sane(l, die))
		return 0;
	if (ARRAY_ROOM(l->unit, l->nunit, l->unit_cap))
		return -ENOMEM;
	ret = lines_unit_ranges_add_die(&l->ranges, die, (uint32_t)l->nunit);
	if (ret)
		return ret;
	u = &l->unit[l->nunit++];
	*u = (struct line_unit){ .die = *die, .version = (uint8_t)version };
	u->split = dwarf_hasattr(die, DW_AT_dwo_name) > 0 ||
		   dwarf_hasattr(die, DW_AT_GNU_dwo_name) > 0;
	return 0;
}

static int index_units(struct lines *l, struct err *e)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	Dwarf_Half version;
	uint8_t type;
	int more, ret = lines_begin(l, e);

	if (ret)
		return ret;
	/* No sub-DIE is requested: libdw would open split files for it. */
	for (unsigned int n = 0;; n++) {
		more = dwarf_get_units(l->file.dw, cu, &cu, &version, &type, &die, NULL);
		if (more != 0 || n == MAX_UNITS)
			break;
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		ret = add_unit(l, &die, version);
		if (ret)
			return err_set(e, -ret, "%s: cannot keep more units than %zu: %s", l->name,
				       l->nunit, strerror(-ret));
	}
	l->cut = more != 1;
	if (l->nunit == 0)
		return err_set(e, EINVAL, "%s: no unit of debug information can be read: %s",
			       l->name, l->cut ? dwarf_errmsg(-1) : "there is none");
	lines_unit_ranges_sort(&l->ranges);
	return 0;
}

/* Returns all units, indexing them first. Returns -EINVAL or -ENOMEM if none can be read. */
static int lines_units(struct lines *l, struct line_unit **units, size_t *n, struct err *e)
{
	if (!l->indexed) {
		l->indexed = true;
		(void)index_units(l, &l->why);
	}
	*units = l->unit;
	*n = l->nunit;
	return l->why.code ? err_set(e, l->why.code, "%s", l->why.text) : 0;
}

static int find_unit(struct lines *l, uint64_t va, struct line_unit **u, struct err *e)
{
	const struct line_range *r;
	size_t n;
	int ret = lines_units(l, u, &n, e);

	if (ret)
		return ret;
	r = lines_unit_ranges_find(&l->ranges, va);
	*u = r ? &l->unit[r->owner] : NULL;
	if (!r && l->cut)
		return err_set(e, EINVAL,
			       "%s: debug information is damaged after %zu units, and none of "
			       "these has 0x%" PRIx64,
			       l->name, l->nunit, va);
	return 0;
}

/* -- lookup ------------------------------------------------------------------------------------- */

static int refuse_split(const struct lines *l, struct line_unit *u, struct err *e)
{
	Dwarf_Attribute a;
	const char *file = NULL;

	if (dwarf_attr(&u->die, DW_AT_dwo_name, &a) || dwarf_attr(&u->die, DW_AT_GNU_dwo_name, &a))
		file = text_of(l, &a);
	return err_set(
		e, EOPNOTSUPP,
		"%s: split DWARF, which is not read: what is known of this address is in %s; "
		"build without -gsplit-dwarf",
		l->name, file ? file : "another file");
}

static void place_instruction(struct line_unit *u, uint64_t va, struct line_frame *f)
{
	Dwarf_Line *line = dwarf_getsrc_die(&u->die, va);
	int n;

	if (!line)
		return;
	f->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &n) == 0 && n > 0)
		f->line = (unsigned int)n;
	if (dwarf_linecol(line, &n) == 0 && n > 0)
		f->column = (unsigned int)n;
}

static void place_call(struct line_unit *u, Dwarf_Die *call, struct line_frame *f)
{
	unsigned int index = number_of(call, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	/* Before DWARF 5, files are counted from 1, and 0 is none. */
	if ((index || (u->version >= 5 && dwarf_hasattr(call, DW_AT_call_file) > 0)) &&
	    dwarf_getsrcfiles(&u->die, &files, &n) == 0 && index < n)
		f->file = dwarf_filesrc(files, index, NULL, NULL);
	f->line = number_of(call, DW_AT_call_line);
	f->column = number_of(call, DW_AT_call_column);
}

int lines_lookup(struct lines *l, uint64_t va, struct line_frame *out, unsigned int max,
		 struct err *e)
{
	struct line_function *f;
	struct line_unit *u = NULL;
	unsigned int n = 0;
	uint32_t call;
	int ret = find_unit(l, va, &u, e);

	if (ret || !u || max == 0)
		return ret;
	if (u->split)
		return refuse_split(l, u, e);
	ret = lines_unit_function(u, va, &f);
	if (ret)
		return err_set(e, -ret, "%s: debug information around 0x%" PRIx64 ": %s", l->name,
			       va, ret == -ENOMEM ? "out of memory" : "damaged, or beyond limits");
	out[0] = (struct line_frame){ 0 };
	place_instruction(u, va, &out[0]);
	call = f ? lines_unit_call(f, va) : LINE_NO_CALL;
	while (call != LINE_NO_CALL) {
		struct line_call *c = &f->call[call];

		out[n].function = name_of(l, &c->die);
		out[n].inlined = true;
		if (++n == max)
			return (int)n;
		out[n] = (struct line_frame){ 0 };
		place_call(u, &c->die, &out[n]);
		call = c->parent;
	}
	if (f)
		out[n].function = name_of(l, &f->die);
	/* In a gap between functions there may be no information at all. */
	return f || out[0].file ? (int)n + 1 : 0;
}

const char *lines_unit_name(struct lines *l, uint64_t va)
{
	struct line_unit *u = NULL;
	const char *name;

	if (find_unit(l, va, &u, NULL) || !u)
		return NULL;
	name = lines_short_name(l, &u->die);
	/* GCC calls a unit of link-time optimisation "<artificial>". */
	return name && *name && *name != '<' ? name : NULL;
}

/* -- interface ---------------------------------------------------------------------------------- */

int lines_open(const uint8_t *data, size_t len, const char *name, struct lines **out, struct err *e)
{
	struct lines *l = calloc(1, sizeof(*l));
	struct lines_sections have = { 0 };
	int ret;

	if (!l || !(l->name = strdup(name)) || !(l->alt_path = strdup(""))) {
		lines_close(l);
		return err_set(e, ENOMEM, "%s: out of memory", name);
	}
	l->file.data = data;
	l->file.len = len;
	ret = check_sections(l, &l->file, name, &have, e);
	if (ret == 0 && (!have.info || !have.line))
		ret = err_set(e, ENOENT, "%s: has no debug information (no %s section)", name,
			      have.info ? ".debug_line" : ".debug_info");
	if (ret == 0 && !l->alt_path)
		ret = err_set(e, ENOMEM, "%s: out of memory", name);
	if (ret == 0 && file_take(&l->file, data, len, have.packed) < 0)
		ret = err_set(e, ENOMEM, "%s: out of memory", name);
	if (ret) {
		lines_close(l);
		return ret;
	}
	*out = l;
	return 0;
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nunit; i++)
		lines_unit_deinit(&l->unit[i]);
	free(l->unit);
	free(l->ranges.at);
	file_close(&l->file);
	file_close(&l->alt);
	free(l->alt_path);
	free(l->name);
	free(l);
}

unsigned int lines_alt(const struct lines *l, uint8_t id[LINES_MAX_ALT_ID], const char **path)
{
	if (!*l->alt_path)
		return 0;
	memcpy(id, l->alt_id, l->alt_id_len);
	*path = l->alt_path;
	return l->alt_id_len;
}

int lines_set_alt(struct lines *l, const uint8_t *data, size_t len, const char *name, struct err *e)
{
	struct lines_sections have = { 0 };
	struct dwarf_file f = { .data = data, .len = len };
	int ret;

	if (l->indexed)
		return err_set(e, EBUSY, "%s: comes too late", name);
	ret = check_sections(NULL, &f, name, &have, e);
	if (ret)
		return ret;
	if (file_take(&f, data, len, have.packed) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", name);
	file_close(&l->alt);
	l->alt = f;
	return 0;
}

/* -- enumeration ------------------------------------------------------------------------- */

struct each {
	struct lines *l;
	const struct lines_visitor *v;
	uint64_t rows;
};

/* Visits a row, which extends to the next one of its sequence, which is in order of addresses. */
static int each_row(struct each *x, Dwarf_Line *at, Dwarf_Line *next)
{
	struct lines_row row = { 0 };
	Dwarf_Addr lo, hi;
	bool end = true;
	int line;

	if (dwarf_lineendsequence(at, &end) != 0 || end || dwarf_lineaddr(at, &lo) != 0 ||
	    dwarf_lineaddr(next, &hi) != 0 || hi <= lo || dwarf_lineno(at, &line) != 0 || line <= 0)
		return 0;
	row.lo = lo;
	row.hi = hi;
	row.line = (unsigned int)line;
	row.file = dwarf_linesrc(at, NULL, NULL);
	if (x->rows++ >= LINES_MAX_ROWS)
		return -E2BIG;
	return row.file ? x->v->row(x->v->ctx, &row) : 0;
}

static int each_unit_rows(struct each *x, struct line_unit *u, bool *bad)
{
	Dwarf_Lines *lines;
	size_t n;
	int ret = 0;

	if (dwarf_getsrclines(&u->die, &lines, &n) != 0) {
		*bad = true;
		return 0;
	}
	for (size_t i = 0; i + 1 < n && !ret; i++)
		ret = each_row(x, dwarf_onesrcline(lines, i), dwarf_onesrcline(lines, i + 1));
	return ret;
}

static int each_function(struct each *x, struct line_unit *u, Dwarf_Die *die)
{
	struct lines_function f = { .name = lines_short_name(x->l, die) };
	Dwarf_Addr entry;
	Dwarf_Files *files;
	Dwarf_Attribute a;
	Dwarf_Word index;
	size_t n;
	int line;

	if (!f.name || dwarf_entrypc(die, &entry) != 0 || dwarf_decl_line(die, &line) != 0 ||
	    line <= 0 || !dwarf_attr_integrate(die, DW_AT_decl_file, &a) ||
	    dwarf_formudata(&a, &index) != 0 || dwarf_getsrcfiles(&u->die, &files, &n) != 0 ||
	    index >= n)
		return 0;
	f.file = dwarf_filesrc(files, index, NULL, NULL);
	f.line = (unsigned int)line;
	f.entry = entry;
	return f.file ? x->v->function(x->v->ctx, &f) : 0;
}

int lines_each(struct lines *l, const struct lines_visitor *v, uint64_t *left_out, struct err *e)
{
	struct each x = { .l = l, .v = v };
	struct line_unit *u;
	size_t n;
	int ret = lines_units(l, &u, &n, e);

	*left_out = 0;
	for (size_t i = 0; i < n && !ret; i++) {
		bool bad = u[i].split;

		if (!bad)
			ret = each_unit_rows(&x, &u[i], &bad);
		bad = bad || (v->function && lines_unit_walk(&u[i]) != 0);
		for (size_t k = 0; v->function && !bad && !ret && k < u[i].nfunction; k++)
			ret = each_function(&x, &u[i], &u[i].function[k].die);
		*left_out += bad;
	}
	return ret && !e->code
		       ? err_set(e, -ret, "%s",
				 ret == -E2BIG ? "more lines than can be kept" : "out of memory")
		       : ret;
}
