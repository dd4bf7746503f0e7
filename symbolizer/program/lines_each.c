/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/program/lines_each.h"

#include "symbolizer/program/lines_unit.h"

#include <dwarf.h>
#include <errno.h>

struct each {
	struct lines *l;
	const struct lines_visitor *v;
	uint64_t rows;
};

/* A row reaches to the next one of its sequence, which is in order of addresses. */
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
		bad = bad || (v->function && line_unit_walk(&u[i]) != 0);
		for (size_t k = 0; v->function && !bad && !ret && k < u[i].nfunction; k++)
			ret = each_function(&x, &u[i], &u[i].function[k].die);
		*left_out += bad;
	}
	return ret && !e->code
		       ? err_set(e, -ret, "%s",
				 ret == -E2BIG ? "more lines than can be kept" : "out of memory")
		       : ret;
}
