/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: what a run boots, goes on with or looks at, as one value, however it came: a kernel,
 * perhaps with its RAM disk and command line in the same file; a disk with one on it; a snapshot; a
 * machine that runs already. Options say what was asked for, and stay as they are.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SOURCE_H
#define KVMPROF_PROFILE_RECORD_RUN_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "profile/record/run/disks.h"
#include "profile/record/run/kernel.h"
#include "vmm/image/image.h"
#include "vmm/image/uki.h"
#include "vmm/bootdisk/bootdisk.h"
#include "vmm/bootdisk/image_kind.h"
#include "vmm/bootdisk/osrel.h"
#include "vmm/image/way.h"

/* Names of files are borrowed; NULL: not given. Without image and kernel it is the demo guest. */
struct source_request {
	const char *image, *kernel, *initrd, *root, *symbols;
	bool writable;	  /* an image that is a disk may be changed */
	const char *disk; /* the first one's name in the guest; NULL: /dev/vda */
};

/* All zero is nothing. It stays where it is: its parts borrow from each other. */
struct run_source {
	struct boot_image image; /* of a kernel that boots, until it runs */
	struct target target;
	struct file_map initrd;
	struct run_disks disks;
	struct disk *disk;	/* the guest's first, of disks; NULL: what boots is no disk */
	struct diskboot boot;	/* what is on it */
	struct buf kernel_name; /* "debian.img:/boot/vmlinuz-6.1", or "" */
	struct buf map_name;	/* of a System.map on it, the same way */
	struct buf cmdline;	/* of the disk's entry or the unified kernel image; "" none */
	struct buf note;	/* what was changed in it */
	struct buf why;		/* what chose the kernel */
	bool is_uki;		/* the kernel, on a disk or not, is in a unified kernel image */
	struct uki uki;		/* then: where things are in it */
	/* Then, terminated: its .cmdline and .uname; the name in .osrel. "": there is none. */
	struct buf uki_cmdline, uki_release;
	char uki_os[OSREL_MAX_VALUE];
	/* Of the machine. */
	uint64_t mem_size; /* bytes */
	unsigned int vcpus;
	enum boot_way way;	  /* BOOT_WAY_AUTO until run_source_choose_way() */
	bool moves;		  /* the kernel may choose its place */
	bool placed;		  /* where it runs is known, by ... */
	uint64_t slide, pa_slide; /* ... these */
	const char *guest_root;	  /* directory with the guest's programs; borrowed, NULL none */
};

/* The first bytes of a file that may become a guest, and what they say. -EISDIR and the like. */
int run_source_look(const char *path, struct image_what *what, struct err *e);

/*
 * A kernel or a disk, with its RAM disk. A disk becomes the first of s->disks. After a failure,
 * too, run_source_close() is due; what was found on a disk is still there.
 */
int run_source_of_image(struct run_source *s, const struct source_request *q, struct err *e);
/* A machine that runs: called `name` where there is no image of its kernel. */
int run_source_of_running(struct run_source *s, const struct source_request *q, const char *name,
			  struct err *e);
/* How the kernel is entered: asked, or what fits it. -EINVAL: it has no such entry. */
int run_source_choose_way(struct run_source *s, enum boot_way asked, struct err *e);
/*
 * The RAM disk with its zstd parts unpacked (vmm/image/initrd.h), which takes an interpreted kernel
 * minutes. None, or nothing to unpack: left alone. -ENOMEM.
 */
int run_source_unpack_initrd(struct run_source *s, struct err *e);
/* -errno with e: something that the guest wrote to a disk is lost. After vm_destroy(). */
int run_source_close(struct run_source *s, struct err *e);

#endif
