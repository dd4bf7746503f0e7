/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private: shared by bootdisk.c and the files that each know one source of entries. */
#ifndef KVMPROF_VMM_BOOTDISK_PRIVATE_H
#define KVMPROF_VMM_BOOTDISK_PRIVATE_H

#include "vmm/bootdisk/bls.h"
#include "vmm/bootdisk/bootdisk.h"

/*
 * Finds the file at path: on file system `fs` first, then on the others, there also with "/boot"
 * removed or prepended (a file system that is mounted on /boot has its files at its root). Follows
 * links, also from one file system to another. Returns false if it does not exist. The caller
 * frees out->path.
 */
bool diskboot_locate(struct diskboot *b, unsigned int fs, const char *path,
		     struct diskboot_file *out);

/* The entry that diskboot_use_entry() is to use. Everything is borrowed. */
struct diskboot_wanted {
	enum diskboot_source source;
	bool by_grub;	 /* the entry is in a GRUB menu */
	unsigned int fs; /* file system of the file that names the entry */
	const char *from, *title, *options, *kernel;
	char *const *initrd;
	unsigned int ninitrd;
	unsigned int kernel_fs; /* file system where its files are looked for first */
};
/*
 * Makes *w the entry to boot if its kernel and initrds exist. Returns 1 then; 0, with a note, if
 * they do not; or -ENOMEM with *e set. Strings are copied.
 */
int diskboot_use_entry(struct diskboot *b, const struct diskboot_wanted *w, struct err *e);

/* Adds a message to b->note; without room it is dropped. */
void diskboot_note(struct diskboot *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Searches one source of entries, like each of the four functions below. Returns 1 if b->entry is
 * set, 0 if the source has no usable entry, or -ENOMEM with *e set.
 */
int diskboot_find_blscfg(struct diskboot *b, struct err *e);
int diskboot_find_bls(struct diskboot *b, struct err *e);
int diskboot_find_grub(struct diskboot *b, struct err *e);
int diskboot_find_link(struct diskboot *b, struct err *e);
int diskboot_find_newest(struct diskboot *b, struct err *e);

/* Fills b->kernel with the kernels in /boot, newest first. Returns 0, or -ENOMEM with *e set. */
int diskboot_list_kernels(struct diskboot *b, struct err *e);

#endif
