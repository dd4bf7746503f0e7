/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bls: one entry of a boot menu, as a file of its own.
 *
 * Sources: UAPI.1 Boot Loader Specification, "Type #1 Boot Loader Specification Entries"
 * and "Sorting"; UAPI.10 Version Format Specification (how versions are compared).
 *
 *	file  := { line "\n" }
 *	line  := "#" text | key blanks value
 *	key   := title version machine-id sort-key linux initrd options architecture efi ...
 *
 * initrd and options may come more than once. Pure functions over text, no I/O.
 */
#ifndef KVMPROF_PROFILE_BLS_H
#define KVMPROF_PROFILE_BLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define BLS_MAX_FILE 65536u /* bytes of an entry */
#define BLS_MAX_INITRDS 8u
#define BLS_MAX_NAME 255u

struct bls_entry {
	char name[BLS_MAX_NAME + 1]; /* the file's, without .conf and boot counters */
	char *title, *version, *machine_id, *sort_key, *architecture;
	char *linux_path; /* NULL: an entry for an EFI program */
	char *initrd[BLS_MAX_INITRDS];
	unsigned int ninitrd;
	char *options; /* all of them, joined with blanks; never NULL */
	bool failed;   /* its boot counter has come to zero tries left */
};

/*
 * file_name ends with ".conf". The entry owns its strings. -EINVAL: not such a name, NUL
 * bytes, too long, more initrds than fit; -ENOMEM.
 */
int bls_parse(struct bls_entry *b, const char *file_name, const char *text, size_t len,
	      struct err *e);
void bls_deinit(struct bls_entry *b);

/* May it be booted on x86-64? It has a kernel, and is for no other architecture. */
bool bls_usable(const struct bls_entry *b);

/* Less than 0: a stands before b in the menu (the first is the default). */
int bls_compare(const struct bls_entry *a, const struct bls_entry *b);

/* Less than 0: a is the older version. NULL is as "". */
int bls_version_compare(const char *a, const char *b);

#endif
