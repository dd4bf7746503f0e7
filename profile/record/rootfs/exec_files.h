/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_files: the initramfs of `kvmprof run --rootfs/--exec`: the files, our init, and the
 * plan that tells it what to do.
 *
 * The plan is the file /.kvmprof-plan: strings, each ended by a NUL, the first byte of each
 * says what it is, and an empty one is the end. guest/exec/exec.c reads it.
 *
 *	x NONCE                     of the message on the console (exec_console.h)
 *	i                           the command reads the console
 *	m PATH                      load this module, in the order of the plan
 *	r TYPE                      the root file system is on /dev/vda
 *	s TAG \n PLACE \n OPTIONS   mount this share, OPTIONS ro or rw
 *	c TEXT                      the command, for /bin/sh -c
 *	a WORD                      the command, a word each; in place of c where there is no shell
 *	e NAME=VALUE                its environment
 *	d DIR                       where it starts
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_FILES_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_FILES_H

#include "base/buf.h"
#include "base/file.h"
#include "profile/record/rootfs/exec_console.h"
#include "profile/record/rootfs/exec_options.h"

#include <limits.h>

#define EXEC_TAG_MAX 31u     /* of Linux' virtio-9p: a word in /proc/mounts */
#define EXEC_PLAN_MAX 65536u /* guest/exec/exec.h, struct plan */
#define EXEC_INIT "/.kvmprof-init"
#define EXEC_PLAN "/.kvmprof-plan"

/* `--share DIR[:PLACE][,ro]`, taken apart. */
struct exec_share {
	char dir[PATH_MAX]; /* of this host, absolute */
	char tag[EXEC_TAG_MAX + 1];
	char place[PATH_MAX]; /* in the guest, absolute */
	bool read_only;
};

/* Parses the option. The index makes a tag where PLACE is none. -ENOTDIR and the like with e set. */
int exec_share_parse(struct exec_share *s, const char *text, unsigned int index, struct err *e);

struct exec_files {
	struct file_map initrd; /* exec_files_close() */
	char nonce[EXEC_NONCE_LEN + 1];
	const char *guest_root; /* a directory of this host that looks like the guest's; or NULL */
	char disk[PATH_MAX];	/* an image that is the caller's to attach and remove; "" none */
	const char *init;	/* for rdinit=; NULL: the kernel's own choice */
	uint64_t files, left_out;
	char first_left[256];
};

/* Who types at the guest's console: then it is a terminal as ours. */
enum exec_input { EXEC_INPUT_NONE, EXEC_INPUT_TERMINAL };

/*
 * osrelease: of the kernel that will run, "" unknown. -EINVAL and the like with e set.
 */
int exec_files_make(struct exec_files *x, const struct exec_options *o,
		    const struct exec_share *share, const char *osrelease, enum exec_input input,
		    struct err *e);
void exec_files_close(struct exec_files *x);
/* Removes the name of the disk, if there is one. */
void exec_files_close_disk(struct exec_files *x);

/*
 * Split text into words as a shell does: blanks, '...', "..." and \. Appends each with its NUL.
 * needs_shell: it has operators, patterns or variables in it, which are no words. -EINVAL for
 * a quotation that does not end.
 */
int exec_split(const char *text, struct buf *words, unsigned int *n, bool *needs_shell,
	       struct err *e);

#endif
