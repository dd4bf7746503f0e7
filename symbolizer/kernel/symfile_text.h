/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symfile_text: parses lists of symbols in text, one per line.
 *
 *	bsd     = address SP [ size SP ] type SP name [ TAB "[" module "]" ]
 *	posix   = name SP type [ SP address [ SP size ] ]
 *	generic = address SP name
 *
 * bsd: System.map, /proc/kallsyms, nm, nm -S, nm -n; posix: nm -P; both also with -C, because names
 * may contain blanks. address, size: 1 to 16 hexadecimal digits, with or without 0x; type: one
 * letter. Undefined symbols have no address and are skipped, as are empty lines; a CR before the
 * newline is ignored. The first lines of the file determine the form of the whole file.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_SYMFILE_TEXT_H
#define KVMPROF_SYMBOLIZER_KERNEL_SYMFILE_TEXT_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Adds the symbols of a text file to t, which must not be frozen. *untyped is set if the form does
 * not distinguish code from data; all types are then 't'. name is for messages. Returns 0; -EINVAL
 * if it is not such a list (the message has line and expectation); -EPERM if all addresses are
 * zero; -E2BIG or -ENOMEM. Any thread.
 */
int symfile_text_parse(struct symtab *t, const char *name, const uint8_t *data, size_t len,
		       bool *untyped, struct err *e);

#endif
