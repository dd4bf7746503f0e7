/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bls: one entry of a boot menu, as a file of its own: a text (type 1), or a unified kernel
 * image (type 2, vmm/image/uki.h), of which the texts in it are looked at here.
 *
 * Sources: UAPI.1 Boot Loader Specification, "Type #1 Boot Loader Specification Entries",
 * "Type #2 EFI Unified Kernel Images", "Boot counting" and "Sorting"; which fields of an
 * os-release become what: src/fundamental/bootspec.c of systemd; UAPI.10 Version Format
 * Specification (how versions are compared).
 *
 *	file  := { line "\n" }
 *	line  := "#" text | key blanks value
 *	key   := title version machine-id sort-key linux uki initrd options architecture efi ...
 *
 * initrd and options may come more than once. Pure functions over text, no I/O.
 */
#ifndef KVMPROF_VMM_BOOTDISK_BLS_H
#define KVMPROF_VMM_BOOTDISK_BLS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define BLS_MAX_FILE 65536u /* bytes of an entry */
#define BLS_MAX_INITRDS 8u
#define BLS_MAX_NAME 255u

struct bls_entry {
	bool uki;		     /* type 2 */
	char name[BLS_MAX_NAME + 1]; /* the file's, without .conf or .efi and boot counters */
	char *title, *version, *machine_id, *sort_key, *architecture;
	char *linux_path; /* "linux" or "uki"; NULL: an entry for an EFI program */
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
/*
 * A unified kernel image, path, whose file_name ends with ".efi": its os-release (len 0: it has
 * none) and command line. As above.
 */
int bls_take_uki(struct bls_entry *b, const char *file_name, const char *path, struct bytes osrel,
		 const char *cmdline, struct err *e);
void bls_deinit(struct bls_entry *b);

/* May it be booted on x86-64? It has a kernel, and is for no other architecture. */
bool bls_usable(const struct bls_entry *b);

/*
 * Does a pattern of loader.conf's "default" mean it? Patterns are compared, without case, with
 * the name with .conf or .efi; for type 1 also with the name alone.
 */
bool bls_matches(const struct bls_entry *b, const char *pattern);

/* Less than 0: a stands before b in the menu (the first is the default). */
int bls_compare(const struct bls_entry *a, const struct bls_entry *b);

/* Less than 0: a is the older version. NULL is as "". */
int bls_version_compare(const char *a, const char *b);

#endif
