/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: what a run boots, continues or attaches to, as one value for all kinds: a kernel, perhaps
 * with its RAM disk and command line in the same file; a disk that contains one; a snapshot; a
 * machine that runs already. The options are not modified.
 *
 * All functions are called by the main thread. Those that return int return 0 or -errno with the
 * reason in *e; run_source_close() is necessary even after a failure.
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
#include "vmm/image/protocol.h"

/*
 * The request. Names of files are borrowed; NULL: not given. Without image and kernel it is the
 * demo guest.
 */
struct source_request {
	const char *image, *kernel, *initrd, *root, *symbols;
	bool writable;	  /* an image that is a disk may be modified */
	const char *disk; /* name of the first disk in the guest; NULL: /dev/vda */
};

/* All zero: nothing. The struct must not be moved: its parts borrow from each other. */
struct run_source {
	struct boot_image image; /* the kernel that boots; valid until it runs */
	struct target target;
	struct file_map initrd;
	struct run_disks disks;
	/* the guest's first disk, one of disks; NULL: the image is not a disk */
	struct disk *disk;
	struct diskboot boot;	/* the bootable content of the disk */
	struct buf kernel_name; /* "debian.img:/boot/vmlinuz-6.1", or "" */
	struct buf map_name;	/* name of a System.map on the disk, in the same form */
	/* command line of the disk's boot entry or the unified kernel image; "": none */
	struct buf cmdline;
	struct buf note; /* changes that were made to it */
	struct buf why;	 /* reason for the choice of the kernel */
	bool is_uki;	 /* the kernel, on a disk or not, is in a unified kernel image */
	struct uki uki;	 /* valid then: positions in the image */
	/* Valid then, terminated: its .cmdline and .uname, and the name in .osrel. "": none. */
	struct buf uki_cmdline, uki_release;
	char uki_os[OSREL_MAX_VALUE];
	/* The machine: */
	uint64_t mem_size; /* bytes */
	unsigned int vcpus;
	enum boot_protocol way;	  /* BOOT_PROTOCOL_AUTO until run_source_choose_protocol() */
	bool moves;		  /* the kernel may choose its address */
	bool placed;		  /* its address is known by slide and pa_slide */
	uint64_t slide, pa_slide; /* ... these */
	const char *guest_root;	  /* directory with the guest's programs; borrowed; NULL: none */
};

/*
 * Identifies a file that may become a guest by its first bytes. The first bytes of a compressed file
 * are unpacked by a program, confined as a disk's (disk_config.confine). Fails with -EISDIR, -EINVAL and the
 * errors of open(2) and read(2).
 */
int run_source_identify(const char *path, const struct disk_confine *confine,
			struct image_what *what, struct err *e);

/*
 * Opens a kernel or a disk, with its RAM disk. A disk becomes the first one of s->disks. After a
 * failure *s still has what was found on a disk.
 */
int run_source_of_image(struct run_source *s, const struct source_request *q, struct err *e);
/*
 * Opens a machine that runs already; `name` is its name for messages if there is no image of its
 * kernel.
 */
int run_source_of_running(struct run_source *s, const struct source_request *q, const char *name,
			  struct err *e);
/*
 * Chooses how the kernel is entered: the requested entry, or one that fits. Returns -EINVAL if the
 * kernel has no such entry.
 */
int run_source_choose_protocol(struct run_source *s, enum boot_protocol asked, struct err *e);
/*
 * Unpacks the zstd parts of the RAM disk (vmm/image/initrd.h), for which an interpreted kernel
 * needs minutes. Without a RAM disk or such parts it does nothing. Returns 0 or -ENOMEM.
 */
int run_source_unpack_initrd(struct run_source *s, struct err *e);
/*
 * Closes everything, after vm_destroy(). Returns 0, or -errno with the reason in *e if data that
 * the guest wrote to a disk was lost.
 */
int run_source_close(struct run_source *s, struct err *e);

#endif
