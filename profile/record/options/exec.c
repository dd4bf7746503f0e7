/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/exec.h"

#include "profile/record/options/options.h"

#include <errno.h>
#include <string.h>

#define OPTION_STRUCT struct run_options

static int parse_env(void *at, char *arg, struct err *e)
{
	struct exec_options *o = at;
	const char *equals = strchr(arg, '=');

	if (!equals || equals == arg)
		return -EINVAL;
	if (o->nenv == EXEC_ENV_MAX)
		return err_set(e, E2BIG, "more than %u variables", EXEC_ENV_MAX);
	o->env[o->nenv++] = arg;
	return 0;
}

static int parse_cwd(void *at, char *arg, struct err *e)
{
	struct exec_options *o = at;

	(void)e;
	o->cwd = arg;
	return *arg == '/' ? 0 : -EINVAL;
}

static int parse_share(void *at, char *arg, struct err *e)
{
	struct exec_options *o = at;

	if (!*arg)
		return -EINVAL;
	if (o->nshare == EXEC_SHARES_MAX)
		return err_set(e, E2BIG, "more than %u shares", EXEC_SHARES_MAX);
	o->share[o->nshare++] = arg;
	return 0;
}

static const char *const rootfs_ways[] = { "initramfs", "ext4", NULL };

const struct option_row run_exec_rows[] = {
	OPTION_HEADING("A command to run in it, on a Linux kernel; kvmprof ends with its exit "
		       "status:\n"),
	{ "exec", 0, "COMMAND", "run it by /bin/sh -c, or as words where there is no shell",
	  OPTION_TEXT_OF(exec.command, "a value") },
	OPTION_HEADING("      -- COMMAND ARG...   the same, as words\n"),
	{ "rootfs", 0, "PATH",
	  "its files: a directory or an archive (tar, cpio), packed into\n"
	  "an initramfs; without it COMMAND is a program of this host,\n"
	  "copied with its libraries",
	  OPTION_TEXT_OF(exec.rootfs, "a value") },
	{ "rootfs-as", 0, "WAY", "initramfs (default), or ext4: a directory becomes a disk",
	  OPTION_WORD(exec.rootfs_disk, rootfs_ways) },
	{ "env", 0, "NAME=VALUE", "for COMMAND; may be repeated",
	  OPTION_CALL_AT(parse_env, exec, "NAME=VALUE") },
	{ "cwd", 0, "DIR",
	  "where COMMAND starts (default /; a program of this host:\n"
	  "the current directory)",
	  OPTION_CALL_AT(parse_cwd, exec, "an absolute path in the guest") },
	{ "modules", 0, "DIR", "kernel modules: lib/modules/VERSION, or a directory of *.ko",
	  OPTION_TEXT_OF(exec.modules, "a value") },
	{ "modprobe", 0, "NAMES", "load these and what they depend on, before COMMAND",
	  OPTION_TEXT_OF(exec.modprobe, "a value") },
	{ "share", 0, "DIR[:PLACE][,ro]",
	  "\na directory of this host in the guest, through 9p: at PLACE,\n"
	  "an absolute path, or /mnt/PLACE; may be repeated",
	  OPTION_CALL_AT(parse_share, exec, "a value") },
	OPTION_HEADING("\n"),
	{ 0 },
};

const char *run_options_exec_check(const struct run_options *run)
{
	const struct exec_options *o = &run->exec;

	if (!exec_any(o))
		return NULL;
	if (!run->image)
		return "--exec, --rootfs and the like need a Linux kernel as IMAGE: the demo guest "
		       "runs no programs";
	if (o->command && o->nwords)
		return "--exec and words behind -- are two commands: give one of them";
	if (run->initrd)
		return "--initrd is an initramfs of its own: give the files with --rootfs, which "
		       "takes a cpio archive, too";
	if (!exec_wanted(o) && (o->nenv || o->cwd || o->modprobe))
		return "--env, --cwd and --modprobe are for --exec COMMAND";
	if (!exec_wanted(o) && !o->rootfs && o->modules)
		return "--modules needs --exec or --rootfs";
	if (o->modprobe && !o->modules)
		return "--modprobe needs --modules DIR";
	if (o->rootfs_disk && !o->rootfs)
		return "--rootfs-as needs --rootfs";
	return NULL;
}
