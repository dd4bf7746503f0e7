/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private: between bootdisk.c and the files that know one source of entries each. */
#ifndef KVMPROF_VMM_BOOTDISK_PRIVATE_H
#define KVMPROF_VMM_BOOTDISK_PRIVATE_H

#include "vmm/bootdisk/bls.h"
#include "vmm/bootdisk/bootdisk.h"

/*
 * Where path is: on file system `fs` first, then on others, there also without /boot, or
 * below it (a file system that is mounted on /boot has its files at its root). Links are
 * followed, also from one file system to another. False: nowhere. out->path is malloc'ed.
 */
bool diskboot_locate(struct diskboot *b, unsigned int fs, const char *path,
		     struct diskboot_file *out);

/*
 * Take an entry over when its kernel and initrds are there: 1; 0: they are not, which is
 * noted; -ENOMEM. `entry` keeps what it has, but for the files that are found.
 */
struct diskboot_wanted {
	enum diskboot_source source;
	bool by_grub;	 /* a menu of GRUB's has it */
	unsigned int fs; /* of the file that names them */
	const char *from, *title, *options, *kernel;
	char *const *initrd;
	unsigned int ninitrd;
	unsigned int kernel_fs; /* where to look first */
};
int diskboot_take(struct diskboot *b, const struct diskboot_wanted *w, struct err *e);

void diskboot_note(struct diskboot *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 1: b->entry is set; 0: none; -ENOMEM. */
int diskboot_find_blscfg(struct diskboot *b, struct err *e);
int diskboot_find_bls(struct diskboot *b, struct err *e);
int diskboot_find_grub(struct diskboot *b, struct err *e);
int diskboot_find_link(struct diskboot *b, struct err *e);
int diskboot_find_newest(struct diskboot *b, struct err *e);

/* Fills b->kernel. */
int diskboot_list_kernels(struct diskboot *b, struct err *e);

#endif
