/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toml: a TOML 1.0 document as a tree of C structures.
 *
 * The parser is toml++ (Debian's libtomlplusplus-dev); toml_shim.cc turns its tree into
 * this one, so that no other file sees C++. Tables keep their keys in the order of the
 * document. Dates and times are told as TOML_OTHER. Nothing is read but the text given.
 * One thread at a time for each document.
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
	char *key;    /* "" in arrays and of the document itself */
	char *string; /* TOML_STRING: as UTF-8, never with a NUL inside; else NULL */
	int64_t integer;
	double real; /* valid for TOML_INTEGER, too */
	bool boolean;
	struct toml_node *child, *next; /* members of tables and arrays */
};

/*
 * name is what messages call the document: "NAME:LINE:COLUMN: what". -EINVAL: it is no
 * TOML, or has a string with a NUL; -E2BIG: beyond the limits above; -ENOMEM.
 */
int toml_parse(struct toml_node **out, const char *name, const char *text, size_t len,
	       struct err *e);
void toml_free(struct toml_node *document);

/* Returns "table", "string" and so on, a constant. */
const char *toml_kind_name(enum toml_kind kind);

#endif
