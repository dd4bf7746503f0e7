/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grubcfg_words: reads commands of a GRUB script as expanded words, stores its variables, and
 * evaluates `test`. For grubcfg.c; the limits are in grubcfg.h. Pure functions; one thread per
 * object.
 *
 * Source: GNU GRUB manual 2.06, "Writing full configuration files directly" (quoting, parameter
 * expansion, simple commands), "test".
 */
#ifndef KVMPROF_VMM_BOOTDISK_GRUBCFG_WORDS_H
#define KVMPROF_VMM_BOOTDISK_GRUBCFG_WORDS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct grub_reader {
	const char *name; /* for messages */
	const char *s, *end;
	unsigned int line;
};

struct grub_word {
	char *text;  /* owned */
	bool quoted; /* a part of it was quoted, so it is not a keyword */
};

struct grub_words {
	struct grub_word *at; /* owned */
	unsigned int n;
	bool block; /* the command ended with "{" */
};

struct grub_var {
	char *name, *value;
};

struct grub_vars {
	struct grub_var *at; /* owned */
	unsigned int n;
};

/*
 * Reads the next command into *w, replacing its old words: up to a newline, ";" or "{". Words that
 * begin or end a block are commands of their own: if, then, else, elif, fi, do, done, }. No words:
 * an empty command, or the end. Returns 0, -EINVAL if a limit is exceeded or a quote is not
 * closed, or -ENOMEM, with *e set. The caller frees *w with grubcfg_words_deinit().
 */
int grubcfg_words_read(struct grub_reader *r, const struct grub_vars *vars, struct grub_words *w,
		       struct err *e);
/* Returns whether everything has been read. */
bool grubcfg_words_at_end(const struct grub_reader *r);
/* Frees the words. */
void grubcfg_words_deinit(struct grub_words *w);

/*
 * Sets a variable to a copy of value. An invalid name is ignored. Returns 0, -EINVAL if there are
 * too many variables or the value is too long, or -ENOMEM, with *e set.
 */
int grubcfg_vars_set(struct grub_vars *v, const char *name, size_t name_len, const char *value,
		     size_t len, struct err *e);
/* Returns a variable's value, which belongs to v, or NULL if it is not set. */
const char *grubcfg_vars_get(const struct grub_vars *v, const char *name, size_t len);
/* Frees all variables. */
void grubcfg_vars_deinit(struct grub_vars *v);

/*
 * Evaluates "[ ... ]" and returns the result. have_env: grubenv exists; it is the only file that is
 * known. Unknown conditions are false.
 */
bool grubcfg_words_test(const struct grub_words *w, bool have_env);

#endif
