/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coverage: counts how often each line and each function of a kernel was executed, from the exact
 * counts of its instructions (`run --engine exact --call-counts`) and the lines of its debug
 * information.
 *
 * A line's count is that of its most often executed instruction; for a line inlined in several
 * places it is the greatest of these. A function's count is that of its first instruction. Lines
 * and functions with code in the kernel's image that were not executed have the count 0. Code that
 * ran before the kernel's page tables, at its physical addresses, counts, too. Modules and programs
 * are not included. Not thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_COVERAGE_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_COVERAGE_H

#include "base/err.h"
#include "profile/format/files/debuginfo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coverage_line {
	uint32_t file; /* index into coverage.file */
	uint32_t line;
	uint64_t count;
};

struct coverage_function {
	uint32_t file, line;
	const char *name;
	uint64_t count;
};

struct coverage {
	const char **file;
	/* Sorted by file, then by line. */
	struct coverage_line *line;
	struct coverage_function *function;
	size_t nfiles, nlines, nfunctions;
	/* instructions executed in the kernel's image, and outside it */
	uint64_t inside, elsewhere;
	uint64_t left_out; /* units of debug information that cannot be read */
	struct coverage_private *priv;
};

struct coverage_options {
	const char *input;	 /* NULL: perf.data */
	const char *buildid_dir; /* NULL: ~/.debug */
	struct debuginfo_places places;
};

/*
 * Loads the counts; the caller frees *out with coverage_destroy(). o is used during the call only.
 * Returns 0; -ENOENT if the profile has no such event or there is no debug information for its
 * kernel; or another -errno if a file cannot be read. e has the file and what to do.
 */
int coverage_load(struct coverage **out, const struct coverage_options *o, struct err *e);
/* Frees c and all its names; does nothing for NULL. */
void coverage_destroy(struct coverage *c);

struct export_out;

/*
 * Writes a tracefile of lcov (geninfo(1), "FILES"), for genhtml and CI tools that read coverage.
 * Errors are kept in o (export.h).
 *
 *   TN:                    no test's name
 *   SF:path                a source file, as the debug information has it
 *   FN:line,name           a function with code of its own, and FNDA:count,name
 *   FNF, FNH               how many, and how many of them were executed
 *   DA:line,count          a line that has code
 *   LF, LH                 the same of lines
 *   end_of_record
 *
 * lcov requires unique function names in a file: a name that occurs again on another line (an
 * #ifdef in a header that is included twice) is written as name@line.
 */
void coverage_write_lcov(struct export_out *o, const struct coverage *c);

#endif
