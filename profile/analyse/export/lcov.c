/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lcov: a tracefile of lcov (geninfo(1), "FILES"), for genhtml and what reads coverage in CI.
 *
 *   TN:                    no test's name
 *   SF:path                a source file, as the debug information has it
 *   FN:line,name           a function with code of its own, and FNDA:count,name
 *   FNF, FNH               how many, and how many of them were executed
 *   DA:line,count          a line that has code
 *   LF, LH                 the same of lines
 *   end_of_record
 *
 * A function name stands once in a file for lcov: one that comes again on another line (an #ifdef in a header
 * that is included twice) is name@line.
 */
#include "profile/analyse/export/coverage.h"
#include "profile/analyse/export/export.h"

#include <inttypes.h>
#include <string.h>

/* A name in a line of text: none has a line's end in it but of a damaged file. */
static void lcov_text(struct export_out *o, const char *text)
{
	for (; *text; text++)
		out_char(o, *text == '\n' || *text == '\r' ? '?' : *text);
}

static bool lcov_comes_again(const struct coverage *c, size_t from, size_t at)
{
	for (size_t i = from; i < at; i++)
		if (!strcmp(c->function[i].name, c->function[at].name))
			return true;
	return false;
}

static void lcov_function_name(struct export_out *o, const struct coverage *c, size_t from,
			       size_t at)
{
	lcov_text(o, c->function[at].name);
	if (lcov_comes_again(c, from, at))
		out_printf(o, "@%" PRIu32, c->function[at].line);
	out_char(o, '\n');
}

static void lcov_functions(struct export_out *o, const struct coverage *c, size_t from, size_t to)
{
	size_t hit = 0;

	for (size_t i = from; i < to; i++) {
		out_printf(o, "FN:%" PRIu32 ",", c->function[i].line);
		lcov_function_name(o, c, from, i);
	}
	for (size_t i = from; i < to; i++) {
		out_printf(o, "FNDA:%" PRIu64 ",", c->function[i].count);
		lcov_function_name(o, c, from, i);
		hit += c->function[i].count != 0;
	}
	out_printf(o, "FNF:%zu\nFNH:%zu\n", to - from, hit);
}

static void lcov_lines(struct export_out *o, const struct coverage *c, size_t from, size_t to)
{
	size_t hit = 0;

	for (size_t i = from; i < to; i++) {
		out_printf(o, "DA:%" PRIu32 ",%" PRIu64 "\n", c->line[i].line, c->line[i].count);
		hit += c->line[i].count != 0;
	}
	out_printf(o, "LF:%zu\nLH:%zu\n", to - from, hit);
}

void export_lcov(struct export_out *o, const struct coverage *c)
{
	size_t line = 0, function = 0;

	for (uint32_t f = 0; f < c->nfiles; f++) {
		size_t first_line = line, first_function = function;

		while (line < c->nlines && c->line[line].file == f)
			line++;
		while (function < c->nfunctions && c->function[function].file == f)
			function++;
		if (line == first_line)
			continue;
		out_text(o, "TN:\nSF:");
		lcov_text(o, c->file[f]);
		out_char(o, '\n');
		lcov_functions(o, c, first_function, function);
		lcov_lines(o, c, first_line, line);
		out_text(o, "end_of_record\n");
	}
}
