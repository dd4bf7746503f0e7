/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bls: parses one entry of a boot menu that is a file of its own: a text (type 1), or a unified
 * kernel image (type 2, vmm/image/uki.h), of which this module reads the texts.
 *
 * Sources: UAPI.1 Boot Loader Specification, "Type #1 Boot Loader Specification Entries", "Type #2
 * EFI Unified Kernel Images", "Boot counting" and "Sorting"; src/fundamental/bootspec.c of systemd
 * for the meaning of an os-release's fields; UAPI.10 Version Format Specification (comparison of
 * versions).
 *
 *	file  := { line "\n" }
 *	line  := "#" text | key blanks value
 *	key   := title version machine-id sort-key linux uki initrd options architecture efi ...
 *
 * initrd and options may occur more than once. Pure functions over text, no I/O; any thread.
 */
#ifndef KVMPROF_VMM_BOOTDISK_BLS_H
#define KVMPROF_VMM_BOOTDISK_BLS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define BLS_MAX_FILE 65536u /* bytes of a text entry */
#define BLS_MAX_INITRDS 8u
#define BLS_MAX_NAME 255u

/* One entry. Its strings are owned by it; NULL: the key is absent. */
struct bls_entry {
	bool uki;		     /* a unified kernel image (type 2) */
	char name[BLS_MAX_NAME + 1]; /* file name without .conf or .efi and boot counters */
	char *title, *version, *machine_id, *sort_key, *architecture;
	/* Value of "linux" or "uki"; NULL: the entry starts another EFI program. */
	char *linux_path;
	char *initrd[BLS_MAX_INITRDS];
	unsigned int ninitrd;
	char *options; /* all options, joined with blanks; never NULL */
	bool failed;   /* its boot counter has no tries left */
};

/*
 * Parses a text entry. file_name must end with ".conf". Returns 0; -EINVAL if the name is invalid,
 * or the text contains NUL bytes, is too long or has too many initrds; or -ENOMEM. After an error
 * *b holds nothing. The caller frees *b with bls_deinit().
 */
int bls_parse(struct bls_entry *b, const char *file_name, const char *text, size_t len,
	      struct err *e);
/*
 * Creates the entry of a unified kernel image at `path`, whose file_name ends with ".efi", from
 * its os-release (len 0: absent) and command line. Returns and ownership as for bls_parse().
 */
int bls_from_uki(struct bls_entry *b, const char *file_name, const char *path, struct bytes osrel,
		 const char *cmdline, struct err *e);
/* Frees the entry's strings and clears it. */
void bls_deinit(struct bls_entry *b);

/*
 * Returns whether the entry can be booted on x86-64: it has a kernel and is not for another
 * architecture.
 */
bool bls_usable(const struct bls_entry *b);

/*
 * Returns whether a pattern of loader.conf's "default" matches the entry. It is compared, ignoring
 * case, with the name including .conf or .efi; for type 1 also with the name alone.
 */
bool bls_matches(const struct bls_entry *b, const char *pattern);

/*
 * Returns less than 0 if a precedes b in the menu, more than 0 if it follows, else 0. The first
 * entry is the default.
 */
int bls_compare(const struct bls_entry *a, const struct bls_entry *b);

/*
 * Returns less than 0 if version a is older than b, more than 0 if newer, else 0. NULL is the same
 * as "".
 */
int bls_version_compare(const char *a, const char *b);

#endif
