/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * function: finds the functions of a symbol table that a text selects.
 *
 *	NAME            the functions of this name, also those that clang's ThinLTO calls NAME.llvm.NUMBER
 *	NAME@FILE       those of them that FILE was compiled to: a path, or the last components of one
 *	...#NUMBER      the one with this number; all functions of the name are counted by address, from 1 on
 *	...#all         all of them
 *
 * Every command that takes one function resolves it here, so that a text has the same meaning for
 * each of them. Commands that select samples by a name compare names instead, and select all
 * functions of the name.
 *
 * A function's file is that of its compilation unit, from debug information; without that, the one
 * in the symbol table (STT_FILE), which has no directory. Not thread-safe where debug information
 * is read: the caller serialises calls on one table.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_FUNCTION_H
#define KVMPROF_PROFILE_FORMAT_NAMES_FUNCTION_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/program/lines.h"

/* The parts of a text. */
struct function_name {
	char name[SYMTAB_MAX_NAME + 1];
	char file[SYMTAB_MAX_NAME + 1]; /* "": any file */
	unsigned int number;		/* 0: no number is given */
	bool all;
};

struct function {
	const struct symbol *symbol;
	unsigned int number; /* position among the functions of this name, by address, from 1 on */
	/* the file of its compilation unit, or of STT_FILE; NULL: unknown; borrowed */
	const char *file;
	const char *
		/*
		 * the file that contains its first line, which may be a header; NULL: unknown;
		 * borrowed
		 */
		source;
};

struct functions {
	struct function *at; /* sorted by address; owned */
	size_t n;
};

enum function_search {
	FUNCTION_AT_HAND, /* use only debug information that is open already */
	FUNCTION_WANTED,  /* search for debug information: the user named a file */
};

struct function_table {
	const struct symtab *symbols; /* frozen (symtab.h); borrowed */
	const char *name;	      /* the image's name, for messages */
	/*
	 * Returns the debug information of the code at *addr and converts *addr to the address in
	 * it. Returns NULL if there is none. May be NULL.
	 */
	struct lines *(*lines)(void *ctx, enum function_search how, uint64_t *addr);
	void *ctx;
};

enum function_many {
	FUNCTION_ONE,  /* a name of several functions is an error, unless #all follows */
	FUNCTION_EACH, /* a name selects all its functions */
};

/*
 * Resolves text. On success *out has at least one function; the caller frees it with
 * function_deinit(). Symbols that are not code are found only if no code has the name. On failure
 * *out is not written. Returns 0 or
 *
 *   -ENOENT   no symbol has the name, or none with this file or number
 *   -EINVAL   the name is several functions: the message lists them, with what selects each
 *   -ENOMEM
 */
int function_resolve(const struct function_table *t, const char *text, enum function_many many,
		     struct functions *out, struct err *e);
/* Frees f->at and leaves an empty list. */
void function_deinit(struct functions *f);

/* -- the parts of that, for commands whose functions are those of samples --------------------- */

/* Splits text into name, file and number. Any text is accepted. */
void function_name_parse(struct function_name *out, const char *text);
/*
 * Does the same as function_resolve() for a parsed text. want->name must be spelled as in the
 * symbol table.
 */
int function_select(const struct function_table *t, const struct function_name *want,
		    enum function_many many, struct functions *out, struct err *e);
/*
 * Writes the name that selects a function: the symbol's, without the .llvm.NUMBER of clang's
 * ThinLTO.
 */
void function_base_name(char out[SYMTAB_MAX_NAME + 1], const struct symbol *s);
/* Returns the function's number (from 1 on) and stores in *of how many functions have its name. */
unsigned int function_number(const struct symtab *t, const struct symbol *s, unsigned int *of);
/*
 * Sets f->file and f->source for f->symbol. The strings belong to the symbol table or to the struct
 * lines.
 */
void function_locate(const struct function_table *t, enum function_search how, struct function *f);
/* Returns the end of path that fits a message, cut at a '/'; a pointer into path. */
const char *function_short_file(const char *path);

#endif
