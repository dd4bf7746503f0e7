/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/exec.h"

#include <string.h>

const char *run_options_exec_take(struct exec_options *o, int opt, const char *arg)
{
	const char *equals = strchr(arg, '=');

	if (!*arg)
		return "expected a value";
	switch (opt) {
	case RUN_OPT_EXEC:
		o->command = arg;
		return NULL;
	case RUN_OPT_ROOTFS:
		o->rootfs = arg;
		return NULL;
	case RUN_OPT_ROOTFS_AS:
		o->rootfs_disk = !strcmp(arg, "ext4");
		return o->rootfs_disk || !strcmp(arg, "initramfs") ? NULL
								   : "expected initramfs or ext4";
	case RUN_OPT_ENV:
		if (!equals || equals == arg)
			return "expected NAME=VALUE";
		if (o->nenv == EXEC_ENV_MAX)
			return "more than 256 variables";
		o->env[o->nenv++] = arg;
		return NULL;
	case RUN_OPT_CWD:
		o->cwd = arg;
		return *arg == '/' ? NULL : "expected an absolute path in the guest";
	case RUN_OPT_MODULES:
		o->modules = arg;
		return NULL;
	case RUN_OPT_MODPROBE:
		o->modprobe = arg;
		return NULL;
	default: /* RUN_OPT_SHARE */
		if (o->nshare == EXEC_SHARES_MAX)
			return "more than 8 shares";
		o->share[o->nshare++] = arg;
		return NULL;
	}
}

const char *run_options_exec_check(const struct exec_options *o, bool have_initrd, bool have_image)
{
	if (!exec_any(o))
		return NULL;
	if (!have_image)
		return "--exec, --rootfs and the like need a Linux kernel as IMAGE: the demo guest "
		       "runs no programs";
	if (o->command && o->nwords)
		return "--exec and words behind -- are two commands: give one of them";
	if (have_initrd)
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
