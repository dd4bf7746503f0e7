/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grubcfg_words: commands of a GRUB script as expanded words, its variables, and `test`.
 * For grubcfg.c; its limits are in grubcfg.h.
 *
 * Source: GNU GRUB manual 2.06, "Writing full configuration files directly" (quoting,
 * parameter expansion, simple commands), "test".
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
	bool quoted; /* a part of it was: it is no word of the language */
};

struct grub_words {
	struct grub_word *at; /* owned */
	unsigned int n;
	bool block; /* "{" ended it */
};

struct grub_var {
	char *name, *value;
};

struct grub_vars {
	struct grub_var *at; /* owned */
	unsigned int n;
};

/*
 * The next command into *w, whose old words go: up to a newline, ";" or "{". Words that
 * begin or end a block are commands of their own: if, then, else, elif, fi, do, done, }.
 * No words: an empty command, or nothing is left. -EINVAL, -ENOMEM.
 */
int grubcfg_words_read(struct grub_reader *r, const struct grub_vars *vars, struct grub_words *w,
		       struct err *e);
bool grubcfg_words_at_end(const struct grub_reader *r);
void grubcfg_words_deinit(struct grub_words *w);

/* A name that is none is ignored. -EINVAL: too many, or too long; -ENOMEM. */
int grubcfg_vars_set(struct grub_vars *v, const char *name, size_t name_len, const char *value,
		     size_t len, struct err *e);
const char *grubcfg_vars_get(const struct grub_vars *v, const char *name, size_t len);
void grubcfg_vars_deinit(struct grub_vars *v);

/* "[ ... ]": have_env: the one file that is there is grubenv. What is unknown is false. */
bool grubcfg_words_test(const struct grub_words *w, bool have_env);

#endif
