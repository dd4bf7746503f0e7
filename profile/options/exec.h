/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options_exec: the options of `kvmprof run` about a command to run in the guest and the
 * files that it finds there. run_options.c has them in its table.
 */
#ifndef KVMPROF_PROFILE_OPTIONS_EXEC_H
#define KVMPROF_PROFILE_OPTIONS_EXEC_H

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
};

/* Is there a command to run? */
static inline bool exec_wanted(const struct exec_options *o)
{
	return o->command || o->nwords;
}

/* Anything of this at all? */
static inline bool exec_any(const struct exec_options *o)
{
	return exec_wanted(o) || o->rootfs || o->modules || o->modprobe || o->nshare || o->nenv ||
	       o->cwd;
}

/* Values of getopt, for a table of struct option. */
enum {
	RUN_OPT_EXEC = 0x800,
	RUN_OPT_ROOTFS,
	RUN_OPT_ROOTFS_AS,
	RUN_OPT_ENV,
	RUN_OPT_CWD,
	RUN_OPT_MODULES,
	RUN_OPT_MODPROBE,
	RUN_OPT_SHARE,
	RUN_OPT_EXEC_END
};

#define RUN_OPTIONS_EXEC_TABLE                                               \
	{ "exec", required_argument, NULL, RUN_OPT_EXEC },                   \
		{ "rootfs", required_argument, NULL, RUN_OPT_ROOTFS },       \
		{ "rootfs-as", required_argument, NULL, RUN_OPT_ROOTFS_AS }, \
		{ "env", required_argument, NULL, RUN_OPT_ENV },             \
		{ "cwd", required_argument, NULL, RUN_OPT_CWD },             \
		{ "modules", required_argument, NULL, RUN_OPT_MODULES },     \
		{ "modprobe", required_argument, NULL, RUN_OPT_MODPROBE },   \
	{                                                                    \
		"share", required_argument, NULL, RUN_OPT_SHARE              \
	}

#define RUN_OPTIONS_EXEC_USAGE                                                                     \
	"A command to run in it, on a Linux kernel; kvmprof ends with its exit status:\n"          \
	"      --exec COMMAND      run it by /bin/sh -c, or as words where there is no shell\n"    \
	"      -- COMMAND ARG...   the same, as words\n"                                           \
	"      --rootfs PATH       its files: a directory or an archive (tar, cpio), packed "      \
	"into\n"                                                                                   \
	"                          an initramfs; without it COMMAND is a program of this host,\n"  \
	"                          and comes with the libraries that it needs\n"                   \
	"      --rootfs-as WAY     initramfs (default), or ext4: a directory becomes a disk\n"     \
	"      --env NAME=VALUE    for COMMAND; may be repeated\n"                                 \
	"      --cwd DIR           where COMMAND starts (default /; a program of this host:\n"     \
	"                          the current directory)\n"                                       \
	"      --modules DIR       kernel modules: lib/modules/VERSION, or a directory of *.ko\n"  \
	"      --modprobe NAMES    load these and what they depend on, before COMMAND\n"           \
	"      --share DIR[:PLACE][,ro]\n"                                                         \
	"                          a directory of this host in the guest, through 9p: at PLACE,\n" \
	"                          an absolute path, or /mnt/PLACE; may be repeated\n"             \
	"\n"

/* One option; NULL when it is good, else what was expected, for a message behind its name. */
const char *run_options_exec_take(struct exec_options *o, int opt, const char *arg);
/* Do they fit one another? NULL, or a message of one line. */
const char *run_options_exec_check(const struct exec_options *o, bool have_initrd, bool have_image);

#endif
