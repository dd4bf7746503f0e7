/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diskboot: determines what a disk image would boot: kernel, initrd, command line.
 *
 * It tries these sources in this order:
 *
 *	1. a grub.cfg (grubcfg.h) with the command blscfg: the menu's default, including entries of
 *	   the Boot Loader Specification
 *	2. entries of the Boot Loader Specification (bls.h), texts and unified kernel images in one
 *	   list: the default of loader.conf, else the first
 *	3. another grub.cfg: the menu's default
 *	4. the links /vmlinuz and /initrd.img, or those in /boot
 *	5. the newest kernel in /boot, with the initrd of its version
 *
 * An entry is used only if its files exist; otherwise the next one is tried. All functions are
 * called by one thread, the main thread.
 */
#ifndef KVMPROF_VMM_BOOTDISK_BOOTDISK_H
#define KVMPROF_VMM_BOOTDISK_BOOTDISK_H

#include "base/buf.h"
#include "base/err.h"
#include "vmm/bootdisk/layout.h"
#include "vmm/bootdisk/fs.h"

#define DISKBOOT_MAX_FS 16u	       /* file systems that are read */
#define DISKBOOT_MAX_KERNEL (1u << 30) /* bytes of a kernel file */
#define DISKBOOT_MAX_INITRD (1u << 30) /* bytes of all initrds */
#define DISKBOOT_MAX_INITRDS 8u
#define DISKBOOT_MAX_ENTRIES 256u    /* boot entries that are files of their own */
#define DISKBOOT_MAX_UKIS 64u	     /* unified kernel images whose headers are read */
#define DISKBOOT_MAX_KERNELS 64u     /* kernels in /boot that are listed */
#define DISKBOOT_MAX_LINKS 8u	     /* links followed from one file system to another */
#define DISKBOOT_MAX_MAP (64u << 20) /* bytes of a System.map */
#define DISKBOOT_MAX_NOTES 8u	     /* messages that are kept */

enum diskboot_source {
	DISKBOOT_NONE = 0,
	DISKBOOT_BLS,
	DISKBOOT_UKI, /* a unified kernel image (type 2) */
	DISKBOOT_GRUB,
	DISKBOOT_LINK,
	DISKBOOT_NEWEST,
};

struct diskboot_fs {
	const struct disk_part *part;
	struct diskfs *fs; /* NULL: `why` has the reason */
	struct err why;
	bool init;    /* whether it contains /sbin/init or the like */
	char os[128]; /* PRETTY_NAME of its os-release, or "" */
};

/* A file on one of the file systems. */
struct diskboot_file {
	unsigned int fs; /* index in diskboot.fs */
	char *path;	 /* owned */
};

/* The entry that is booted. Its strings are owned by it. */
struct diskboot_entry {
	enum diskboot_source source;
	char *from;    /* the file or link that names it */
	char *title;   /* NULL: none */
	char *options; /* its command line; never NULL if an entry was found */
	bool by_grub;  /* the entry is in a GRUB menu */
	unsigned int from_fs;
	struct diskboot_file kernel, initrd[DISKBOOT_MAX_INITRDS];
	unsigned int ninitrd;
};

/*
 * The entry that GRUB would boot according to the first menu on the disk. Strings are owned unless
 * they are static.
 */
struct diskboot_grub {
	char *from;  /* the menu's path; NULL: no menu */
	char *title; /* title of the entry, with those of its submenus; NULL: the menu has none */
	char *index; /* its position, such as "1>0" */
	/* The variable that selects it: "saved_entry", "next_entry", "default"; static. */
	const char *by;
	char *name; /* the value of that variable */
	unsigned int from_fs;
	bool taken;	  /* kvmprof boots this entry, too */
	struct err other; /* code is not 0: why kvmprof boots another one */
};

struct diskboot {
	struct disk_layout layout;
	struct diskboot_fs fs[DISKBOOT_MAX_FS];
	unsigned int nfs;
	struct diskboot_file kernel[DISKBOOT_MAX_KERNELS]; /* newest first */
	unsigned int nkernels;				   /* number of file systems */
	struct diskboot_entry entry; /* source DISKBOOT_NONE: nothing was found */
	struct diskboot_grub grub;
	unsigned int candidates; /* number of entries of that source */
	unsigned int root_fs;	 /* index of the root file system; nfs: none found */
	/* Problems that were found but do not prevent booting. */
	struct err note[DISKBOOT_MAX_NOTES];
	unsigned int nnotes;
};

/*
 * Examines the disk. path opens the same disk again, for libblkid, unless disk->size is set, and is
 * named in messages. Returns 0 also
 * if nothing bootable was found (see entry.source); -EINVAL if it has neither partitions nor a
 * file system; -ENOMEM; or another -errno, with *e set. The disk must stay readable until
 * diskboot_close(), which the caller calls after success.
 */
int diskboot_open(struct diskboot *b, const struct disk_reader *disk, const char *path,
		  struct err *e);
/* Closes the file systems and frees everything in *b. */
void diskboot_close(struct diskboot *b);

/* Sets *e to the reason why there is nothing to boot, for DISKBOOT_NONE, and returns -ENOENT. */
int diskboot_explain_none(const struct diskboot *b, const char *path, struct err *e);

/*
 * Appends the origin of the entry, such as "the default entry of boot/grub/grub.cfg on partition
 * 2".
 */
void diskboot_entry_text(const struct diskboot *b, struct buf *out);
/*
 * Appends GRUB's choice, such as "entry 1>0 \"Debian, with Linux 6.1\" (saved_entry=...) of
 * /boot/grub/grub.cfg on partition 2", or nothing if there is no menu.
 */
void diskboot_grub_text(const struct diskboot *b, struct buf *out);

/*
 * Appends the bytes of the kernel, or of the unified kernel image that contains it, to *out.
 * Returns 0, or -errno with *e set (-EFBIG beyond the limits above).
 */
int diskboot_read_kernel(const struct diskboot *b, struct buf *out, struct err *e);
/*
 * Appends all initrds to *out, concatenated as the kernel expects them. Returns as
 * diskboot_read_kernel().
 */
int diskboot_read_initrd(const struct diskboot *b, struct buf *out, struct err *e);
/*
 * Appends the System.map next to the kernel to *out, and its path with a NUL to *name. Returns 0,
 * -ENOENT if there is none, or another -errno.
 */
int diskboot_read_map(const struct diskboot *b, struct buf *out, struct buf *name, struct err *e);

#endif
