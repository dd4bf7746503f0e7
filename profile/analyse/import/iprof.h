/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * import_iprof: parser of counts by image and offset, as `kvmprof export --format iprof` writes
 * them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_IMPORT_IPROF_H
#define KVMPROF_PROFILE_ANALYSE_IMPORT_IPROF_H

#include "profile/analyse/import/parse.h"

/*
 * The format of one file of such a directory, and of its kernel.syms:
 *
 *	file     = *line		NAME-IMAGEID.prof or NAME-IMAGEID-PID.prof
 *	line     = "# " key ": " value NL		image, mode, pid, comm, function; others are skipped
 *	         / "0x" offset SP count NL
 *	function = "0x" offset SP "0x" size SP name
 *	syms     = *( "0x" offset SP "0x" size SP name SP image NL )	blanks of names are coded (coded.h)
 *
 * A file without a header is of the image that its name says. It is the kernel's if its mode says so, if kernel.syms has
 * the image, or if it is called "kernel". Each count becomes a sample of one frame.
 */
#define IMPORT_IPROF_SYMBOLS "kernel.syms"

struct import_iprof;

/*
 * Creates a parser; the caller frees it with import_iprof_destroy(). symbols is the text of
 * kernel.syms, which may be empty and must outlive the parser. *ignored becomes the number of its
 * lines that have another form. Returns 0 or -ENOMEM.
 */
int import_iprof_create(struct import_iprof **out, struct import_text symbols, uint64_t *ignored,
			struct err *e);
void import_iprof_destroy(struct import_iprof *p);

/*
 * Parses one file, whose name without its directory is `file`, and adds to *stats. Returns 0,
 * -ENOMEM, or the error of fn.
 */
int import_iprof(struct import_iprof *p, const char *file, struct import_text text, import_fn fn,
		 void *ctx, struct import_stats *stats);

#endif
