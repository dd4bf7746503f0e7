/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskboot: what a disk image would boot: kernel, initrd, command line.
 *
 * In this order:
 *	1. grub.cfg (grubcfg.h) with the command blscfg: the menu's default, among it entries of
 *	   the Boot Loader Specification
 *	2. Boot Loader Specification entries (bls.h), texts and unified kernel images in one
 *	   list: the default of loader.conf, else the first
 *	3. another grub.cfg: the menu's default
 *	4. the links /vmlinuz and /initrd.img, or those in /boot
 *	5. the newest kernel in /boot, with the initrd of its version
 * What an entry names must be there; where its kernel is missing the next one is looked at.
 * One thread.
 */
#ifndef KVMPROF_VMM_BOOTDISK_BOOTDISK_H
#define KVMPROF_VMM_BOOTDISK_BOOTDISK_H

#include "base/buf.h"
#include "base/err.h"
#include "vmm/bootdisk/layout.h"
#include "vmm/bootdisk/fs.h"

#define DISKBOOT_MAX_FS 16u	       /* file systems that are looked into */
#define DISKBOOT_MAX_KERNEL (1u << 30) /* bytes of a kernel file */
#define DISKBOOT_MAX_INITRD (1u << 30) /* bytes of all initrds */
#define DISKBOOT_MAX_INITRDS 8u
#define DISKBOOT_MAX_ENTRIES 256u /* boot entries in files of their own */
#define DISKBOOT_MAX_UKIS 64u	  /* unified kernel images whose headers are read */
#define DISKBOOT_MAX_KERNELS 64u  /* kernels in /boot that are listed */
#define DISKBOOT_MAX_LINKS 8u	  /* from one file system to another */
#define DISKBOOT_MAX_MAP (64u << 20)
#define DISKBOOT_MAX_NOTES 8u

enum diskboot_source {
	DISKBOOT_NONE = 0,
	DISKBOOT_BLS,
	DISKBOOT_UKI, /* the same, of type 2 */
	DISKBOOT_GRUB,
	DISKBOOT_LINK,
	DISKBOOT_NEWEST,
};

struct diskboot_fs {
	const struct disk_part *part;
	struct diskfs *fs; /* NULL: see why */
	struct err why;
	bool init;    /* it has /sbin/init or the like */
	char os[128]; /* PRETTY_NAME of its os-release, or "" */
};

struct diskboot_file {
	unsigned int fs; /* index */
	char *path;
};

/* What would be booted. */
struct diskboot_entry {
	enum diskboot_source source;
	char *from;    /* the file or link that says so */
	char *title;   /* NULL: none */
	char *options; /* as there; never NULL in one that was found */
	bool by_grub;  /* a menu of GRUB's has it */
	unsigned int from_fs;
	struct diskboot_file kernel, initrd[DISKBOOT_MAX_INITRDS];
	unsigned int ninitrd;
};

/* The entry that GRUB would boot by the first menu on the disk. */
struct diskboot_grub {
	char *from; /* the menu; NULL: there is none */
	char *title; /* title of the entry that it would boot, through submenus; NULL: the menu has none */
	char *index;	/* its place: "1>0" */
	const char *by; /* what chooses it: "saved_entry", "next_entry", "default"; static */
	char *name;	/* the value of that variable */
	unsigned int from_fs;
	bool taken;	  /* kvmprof boots it, too */
	struct err other; /* code is not 0: why not */
};

struct diskboot {
	struct disk_layout layout;
	struct diskboot_fs fs[DISKBOOT_MAX_FS];
	unsigned int nfs;
	struct diskboot_file kernel[DISKBOOT_MAX_KERNELS]; /* newest first */
	unsigned int nkernels;
	struct diskboot_entry entry; /* source DISKBOOT_NONE: nothing was found */
	struct diskboot_grub grub;
	unsigned int candidates;	     /* entries of that source in all */
	unsigned int root_fs;		     /* index; nfs: none has an init */
	struct err note[DISKBOOT_MAX_NOTES]; /* what was seen on the way and not used */
	unsigned int nnotes;
};

/*
 * Look into the disk; path is what it is opened by again, for libblkid, and for messages.
 * That nothing bootable is there is no error: source tells. -EINVAL: neither partitions
 * nor a file system, -ENOMEM. The disk is read until diskboot_close().
 */
int diskboot_open(struct diskboot *b, const struct disk_reader *disk, const char *path,
		  struct err *e);
void diskboot_close(struct diskboot *b);

/* Why there is nothing to boot, for DISKBOOT_NONE: into e, returns -ENOENT. */
int diskboot_none(const struct diskboot *b, const char *path, struct err *e);

/* "the default entry of boot/grub/grub.cfg on partition 2". */
void diskboot_why(const struct diskboot *b, struct buf *out);
/*
 * Appends "entry 1>0 \"Debian, with Linux 6.1\" (saved_entry=...) of /boot/grub/grub.cfg on partition 2", or nothing if there is
 * no menu.
 */
void diskboot_grub_says(const struct diskboot *b, struct buf *out);

/*
 * Appended: the bytes of the kernel, or of the unified kernel image that it is in; all initrds,
 * one behind the other as the kernel wants them.
 */
int diskboot_read_kernel(const struct diskboot *b, struct buf *out, struct err *e);
int diskboot_read_initrd(const struct diskboot *b, struct buf *out, struct err *e);
/* System.map of the kernel beside it; -ENOENT. name: of the file, terminated. */
int diskboot_read_map(const struct diskboot *b, struct buf *out, struct buf *name, struct err *e);

#endif
