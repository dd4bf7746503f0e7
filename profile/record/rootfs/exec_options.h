/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_options: what was asked for with --exec, --rootfs and their like: the command to run in
 * the guest and the files that it finds there. Strings are the command line's.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_OPTIONS_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_OPTIONS_H

#include <stdbool.h>

#define EXEC_ENV_MAX 256u
#define EXEC_SHARES_MAX 8u

struct exec_options {
	const char *rootfs;  /* directory or archive; NULL: none */
	bool rootfs_disk;    /* as an ext4 image on a disk, not an initramfs */
	const char *command; /* --exec, for a shell; NULL: none */
	char *const *words;  /* what stands behind "--", in its place */
	unsigned int nwords;
	const char *env[EXEC_ENV_MAX]; /* K=V */
	unsigned int nenv;
	const char *cwd;
	const char *modules;  /* directory */
	const char *modprobe; /* names, with commas */
	const char *share[EXEC_SHARES_MAX];
	unsigned int nshare;
	bool repeats; /* each run is to be the same: nothing random goes into the guest */
};

/* Is there a command to run? */
static inline bool exec_wanted(const struct exec_options *o)
{
	return o->command || o->nwords;
}

/* What only our init in a Linux guest can do. A share is a device, whatever guest finds it. */
static inline bool exec_for_linux(const struct exec_options *o)
{
	return exec_wanted(o) || o->rootfs || o->modules || o->modprobe || o->nenv || o->cwd;
}

/* Anything of this at all? */
static inline bool exec_any(const struct exec_options *o)
{
	return exec_for_linux(o) || o->nshare;
}

#endif
