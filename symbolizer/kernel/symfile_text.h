/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symfile_text: lists of symbols in text, one per line.
 *
 *	bsd     = address SP [ size SP ] type SP name [ TAB "[" module "]" ]
 *	posix   = name SP type [ SP address [ SP size ] ]
 *	generic = address SP name
 *
 * bsd: System.map, /proc/kallsyms, nm, nm -S, nm -n; posix: nm -P; both with -C as
 * well, as names may hold blanks. address, size: 1 to 16 hexadecimal digits, with
 * or without 0x; type: one letter. Undefined symbols have no address and are
 * skipped, as are empty lines; CR before the newline is dropped. The form is
 * decided by the first lines of the file and then holds for all of it.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_SYMFILE_TEXT_H
#define KVMPROF_SYMBOLIZER_KERNEL_SYMFILE_TEXT_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Adds to t, which is not frozen. *untyped: the form does not tell code from data,
 * all is 't'. -EINVAL: not such a list (message: line, what was expected); -EPERM:
 * all addresses are zero; -E2BIG, -ENOMEM.
 */
int symfile_text_parse(struct symtab *t, const char *name, const uint8_t *data, size_t len,
		       bool *untyped, struct err *e);

#endif
