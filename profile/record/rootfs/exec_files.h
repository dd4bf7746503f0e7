/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_files: the initramfs of `kvmprof run --rootfs/--exec`: the files, our init, and the plan
 * that it carries out.
 *
 * The plan is the file /.kvmprof-plan: strings, each terminated by a NUL, of which the first byte
 * is the kind; an empty one is the end. guest/exec/exec.c reads it.
 *
 *   x NONCE                     of the message on the console (exec_console.h)
 *   i                           the command reads the console
 *   m PATH                      load this module, in the order of the plan
 *   r TYPE                      the root file system is on /dev/vda
 *   s TAG \n PLACE \n OPTIONS   mount this share, OPTIONS ro or rw
 *   c TEXT                      the command, for /bin/sh -c
 *   a WORD                      the command, one word each; in place of c if there is no shell
 *   e NAME=VALUE                its environment
 *   d DIR                       its working directory
 *
 * All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_FILES_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_FILES_H

#include "base/buf.h"
#include "base/file.h"
#include "profile/record/rootfs/exec_console.h"
#include "profile/record/rootfs/exec_options.h"

#include <limits.h>

#define EXEC_TAG_MAX 31u     /* Linux's virtio-9p: a word in /proc/mounts */
#define EXEC_PLAN_MAX 65536u /* guest/exec/exec.h, struct plan */
#define EXEC_INIT "/.kvmprof-init"
#define EXEC_PLAN "/.kvmprof-plan"

/* A parsed `--share DIR[:PLACE][,ro]`. */
struct exec_share {
	char dir[PATH_MAX]; /* path on this host, absolute */
	char tag[EXEC_TAG_MAX + 1];
	char place[PATH_MAX]; /* path in the guest, absolute */
	bool read_only;
};

/*
 * Parses the option. `index` is used for the tag if PLACE is none. Returns 0, -ENOTDIR or another
 * -errno with the reason in *e.
 */
int exec_share_parse(struct exec_share *s, const char *text, unsigned int index, struct err *e);

struct exec_files {
	struct file_map initrd; /* the initramfs, freed by exec_files_close() */
	char nonce[EXEC_NONCE_LEN + 1];
	/* a directory on this host that looks like the guest's root, borrowed; or NULL */
	const char *guest_root;
	char disk[PATH_MAX]; /* a disk image, which the caller attaches; "": none */
	const char *init;    /* for rdinit=, a static string; NULL: the kernel's own choice */
	/* number of files packed, and of those that were not */
	uint64_t files, left_out;
	char first_left[256];
};

/* Whether a person types at the guest's console, which is then a terminal. */
enum exec_input { EXEC_INPUT_NONE, EXEC_INPUT_TERMINAL };

/*
 * Packs the files that *o requests. osrelease is the release of the kernel that will run, "" if
 * unknown. Returns 0 or -errno with the reason in *e. The caller frees *x with exec_files_close()
 * in either case; strings in *x are borrowed from *o.
 */
int exec_files_make(struct exec_files *x, const struct exec_options *o,
		    const struct exec_share *share, const char *osrelease, enum exec_input input,
		    struct err *e);
/* Frees the initramfs and removes the disk image. */
void exec_files_close(struct exec_files *x);
/* Removes the disk image's name, if there is one; an open descriptor stays usable. */
void exec_files_close_disk(struct exec_files *x);

/*
 * Splits a text into words as a shell does: blanks, '...', "..." and \. Appends each word with its
 * NUL. *needs_shell is set if the text contains operators, patterns or variables. Returns 0,
 * -EINVAL for an unterminated quotation, or -ENOMEM.
 */
int exec_split(const char *text, struct buf *words, unsigned int *n, bool *needs_shell,
	       struct err *e);

#endif
