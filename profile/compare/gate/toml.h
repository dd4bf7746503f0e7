/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toml: parses a TOML 1.0 document into a tree of C structures.
 *
 * The parser is toml++ (Debian's libtomlplusplus-dev); toml_shim.cc converts its tree, so that no
 * other file uses C++. Tables keep their keys in the order of the document. Dates and times are
 * TOML_OTHER. No I/O; one thread uses a document at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_TOML_H
#define KVMPROF_PROFILE_COMPARE_GATE_TOML_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOML_MAX_TEXT (1u << 20) /* bytes of a document */
#define TOML_MAX_NODES 65536u
#define TOML_MAX_LEVELS 32u /* deepest nesting of tables and arrays */

enum toml_kind {
	TOML_TABLE,
	TOML_ARRAY,
	TOML_STRING,
	TOML_INTEGER,
	TOML_REAL,
	TOML_BOOLEAN,
	TOML_OTHER,
};

struct toml_node {
	enum toml_kind kind;
	unsigned int line, column; /* position of the value, from 1; 0: not known */
	unsigned int key_line, key_column;
	char *key;    /* "" for items of arrays and for the document itself */
	char *string; /* TOML_STRING: as UTF-8, never with a NUL inside; else NULL */
	int64_t integer;
	double real; /* valid for TOML_INTEGER, too */
	bool boolean;
	struct toml_node *child, *next; /* first member of a table or array; next sibling */
};

/*
 * Parses `len` bytes; the caller frees *out with toml_free(). Messages are "NAME:LINE:COLUMN:
 * what". Returns 0; -EINVAL if the text is not TOML or has a string with a NUL; -E2BIG if it
 * exceeds a limit above; or -ENOMEM.
 */
int toml_parse(struct toml_node **out, const char *name, const char *text, size_t len,
	       struct err *e);
/* Frees the document with all nodes; NULL does nothing. */
void toml_free(struct toml_node *document);

/* Returns "table", "string" and so on, a constant. */
const char *toml_kind_name(enum toml_kind kind);

#endif
