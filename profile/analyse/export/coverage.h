/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coverage: how often each line and each function of a kernel was executed, by the exact counts of
 * its instructions (`run --engine exact --call-counts`) and the lines of its debug information.
 *
 * A line counts as often as that of its instructions that was executed most often: in all places where
 * the line was inlined to, the greatest. A function counts as often as its first instruction. Lines
 * and functions that have code in the kernel's image and were not executed are there, with 0. Code that ran
 * before the kernel's page tables, at its physical addresses, counts, too. Modules and programs are not
 * in it. One thread.
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
	/* In order of files, and in each of lines. Of one file they are together. */
	struct coverage_line *line;
	struct coverage_function *function;
	size_t nfiles, nlines, nfunctions;
	uint64_t inside, elsewhere; /* instructions executed in the kernel's image, and elsewhere */
	uint64_t left_out;	    /* units of debug information that can't be read */
	struct coverage_private *priv;
};

struct coverage_options {
	const char *input;	 /* NULL: perf.data */
	const char *buildid_dir; /* NULL: ~/.debug */
	struct debuginfo_places places;
};

/*
 * -ENOENT: there is no such event in the profile, or no debug information for its kernel; -EINVAL and others:
 * a file can't be read. e says which, and what to do.
 */
int coverage_load(struct coverage **out, const struct coverage_options *o, struct err *e);
void coverage_destroy(struct coverage *c);

struct export_out;

/*
 * Writes a tracefile of lcov (geninfo(1), "FILES"), for genhtml and what reads coverage in CI.
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
void coverage_write_lcov(struct export_out *o, const struct coverage *c);

#endif
