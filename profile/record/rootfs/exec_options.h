/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_options: the values of --exec, --rootfs and similar options: the command to run in the guest
 * and the files that it finds there. All strings are borrowed from the command line; NULL: not
 * given. All zero: none is given. The functions are pure.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_OPTIONS_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_OPTIONS_H

#include <stdbool.h>

#define EXEC_ENV_MAX 256u
#define EXEC_SHARES_MAX 8u

struct exec_options {
	const char *rootfs;  /* directory or archive */
	bool rootfs_disk;    /* as an ext4 image on a disk, not as an initramfs */
	const char *command; /* --exec, for a shell */
	char *const *words;  /* the words after "--", as an alternative */
	unsigned int nwords;
	const char *env[EXEC_ENV_MAX]; /* K=V */
	unsigned int nenv;
	const char *cwd;
	const char *modules;  /* directory */
	const char *modprobe; /* names, separated by commas */
	const char *share[EXEC_SHARES_MAX];
	unsigned int nshare;
	bool repeats; /* the run must be reproducible: nothing random goes into the guest */
};

/* Returns whether there is a command to run. */
static inline bool exec_wanted(const struct exec_options *o)
{
	return o->command || o->nwords;
}

/*
 * Returns whether an option needs our init in a Linux guest. A share is a device, which any guest
 * can use.
 */
static inline bool exec_for_linux(const struct exec_options *o)
{
	return exec_wanted(o) || o->rootfs || o->modules || o->modprobe || o->nenv || o->cwd;
}

/* Returns whether any of these options is given. */
static inline bool exec_any(const struct exec_options *o)
{
	return exec_for_linux(o) || o->nshare;
}

#endif
