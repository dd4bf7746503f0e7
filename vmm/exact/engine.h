/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine: which QEMU and which plugin of ours an exact run uses.
 */
#ifndef KVMPROF_VMM_EXACT_ENGINE_H
#define KVMPROF_VMM_EXACT_ENGINE_H

#include "base/err.h"

#include <limits.h>

/* The first release whose plugin interface reads registers at the start of blocks as we need it. */
#define ENGINE_LEAST_MAJOR 9u
#define ENGINE_LEAST_MINOR 1u

struct engine {
	char qemu[PATH_MAX]; /* the program */
	char plugin[PATH_MAX];
	unsigned int major, minor, micro;
	char version[128]; /* as QEMU says it: "10.0.2 (Debian 1:10.0.2+ds-2)" */
	char sought[512];  /* where else it was looked for, and what was there */
};

/*
 * QEMU: $KVMPROF_QEMU; that in $PATH; that which scripts/fetch-qemu.sh has put into the cache. The
 * first that is new enough; one that was named and is not is an error. Runs them with --version.
 * The plugin: $KVMPROF_PLUGIN, beside this program, or where `make install` puts it. -ENOENT,
 * -ENOTSUP: the message says what to do.
 */
int engine_find(struct engine *out, struct err *e);

#endif
