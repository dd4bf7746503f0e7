/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * function: which functions of a symbol table a text means.
 *
 *	NAME            the functions of this name, also those that clang's ThinLTO calls NAME.llvm.NUMBER
 *	NAME@FILE       those of them that FILE was compiled to: a path, or the last components of one
 *	...#NUMBER      the one with this number; all functions of the name are counted by address, from 1 on
 *	...#all         all of them
 *
 * Every command that takes one function resolves it here, so that a text means the same to each of them.
 * Commands that select samples by a name compare names, and mean all functions of the name.
 *
 * A function's file is that of its compilation unit, out of debug information; where there is none, the one
 * that the symbol table has (STT_FILE), which has no directory. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_FUNCTION_H
#define KVMPROF_PROFILE_FORMAT_NAMES_FUNCTION_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/program/lines.h"

/* A text in parts. */
struct function_name {
	char name[SYMTAB_MAX_NAME + 1];
	char file[SYMTAB_MAX_NAME + 1]; /* "": any */
	unsigned int number;		/* 0: none is given */
	bool all;
};

struct function {
	const struct symbol *symbol;
	unsigned int number; /* its place among the functions of the name, by address, from 1 on */
	const char *file;    /* the file of its compilation unit, or of STT_FILE; NULL: not known */
	const char *
		source; /* the file that its first line is in, which may be a header; NULL: not known */
};

struct functions {
	struct function *at; /* by address; owned */
	size_t n;
};

enum function_search {
	FUNCTION_AT_HAND, /* only what costs no search */
	FUNCTION_WANTED,  /* the user gives a file */
};

struct function_table {
	const struct symtab *symbols; /* frozen */
	const char *name;	      /* the image's name, for messages */
	/*
	 * Returns the debug information of the code at *addr, and sets *addr to the address there; NULL: there is
	 * none. May be NULL.
	 */
	struct lines *(*lines)(void *ctx, enum function_search how, uint64_t *addr);
	void *ctx;
};

enum function_many {
	FUNCTION_ONE,  /* a name of several functions is an error, but with #all */
	FUNCTION_EACH, /* it means all of them */
};

/*
 * Resolves text. *out is the caller's, for function_deinit(), and has at least one function. Symbols that are
 * no code are found only where no code has the name.
 *
 *   -ENOENT   no symbol has the name, or none with this file or number
 *   -EINVAL   the name is several functions: the message lists them, with what selects each
 *   -ENOMEM
 */
int function_resolve(const struct function_table *t, const char *text, enum function_many many,
		     struct functions *out, struct err *e);
void function_deinit(struct functions *f);

/* -- the parts of that, for commands whose functions are those of samples --------------------- */

void function_name_parse(struct function_name *out, const char *text);
/* function_resolve() of a text in parts; the name is one of the symbol table. */
int function_select(const struct function_table *t, const struct function_name *want,
		    enum function_many many, struct functions *out, struct err *e);
/* Writes the name that a function is found by: the symbol's, without the .llvm.NUMBER of clang's ThinLTO. */
void function_base_name(char out[SYMTAB_MAX_NAME + 1], const struct symbol *s);
/* Returns the function's number, and in *of how many have its name. */
unsigned int function_number(const struct symtab *t, const struct symbol *s, unsigned int *of);
/* Sets f->file and f->source. Strings belong to the symbol table or to the struct lines. */
void function_locate(const struct function_table *t, enum function_search how, struct function *f);
/* Returns the last components of a path that fit a message, at least one. */
const char *function_short_file(const char *path);

#endif
