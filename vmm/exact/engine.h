/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine: finds the QEMU and the plugin that an exact run uses.
 *
 * All functions are called by the main thread. struct engine owns nothing.
 */
#ifndef KVMPROF_VMM_EXACT_ENGINE_H
#define KVMPROF_VMM_EXACT_ENGINE_H

#include "base/err.h"

#include <limits.h>
#include <stddef.h>

/* The first release whose plugin interface can read registers at the start of blocks. */
#define ENGINE_LEAST_MAJOR 9u
#define ENGINE_LEAST_MINOR 1u
/*
 * Versions of QEMU's plugin interface that the plugin supports (plugin/qemu_api.h), and the
 * environment variable that selects one for it.
 */
#define ENGINE_API_LEAST 3
#define ENGINE_API_MOST 7
#define ENGINE_API_VARIABLE "KVMPROF_QEMU_API"
/*
 * Limit for each start of a candidate; a QEMU that has not ended by then is rejected. Even on a
 * busy machine it takes some 100 ms.
 */
#define ENGINE_ANSWER_MS 20000

struct engine {
	char qemu[PATH_MAX]; /* path of the program */
	char plugin[PATH_MAX];
	unsigned int major, minor, micro;
	int api;	   /* version of the plugin interface that the plugin must declare */
	int api_newest;	   /* newest version that this QEMU supports */
	char version[128]; /* as QEMU prints it, for example "10.0.2 (Debian 1:10.0.2+ds-2)" */
	char sought[1024]; /* rejected candidates, with the reason for each */
};

/*
 * Finds the plugin ($KVMPROF_PLUGIN, next to this program, or where `make install` puts it), and
 * then a QEMU that loads it: $KVMPROF_QEMU, those in $PATH, those that scripts/fetch-qemu.sh has
 * stored in the cache, the newest first. It starts each candidate up to six times, each time for
 * at most ENGINE_ANSWER_MS, and chooses the first one that answers correctly. If $KVMPROF_QEMU is
 * set and unusable, that is an error. Returns 0; -ENOENT, -ENOTSUP or another -errno with a
 * message in *e that says what each candidate answered and what to do. It changes the environment,
 * so the process must have only one thread.
 */
int engine_find(struct engine *out, struct err *e);

/*
 * Size of the argument of QEMU's -plugin: a path, in which each comma is doubled, and options of
 * the plugin.
 */
#define ENGINE_PLUGIN_ROOM (2u * PATH_MAX + 512u)
/* Writes this argument without the plugin's options, and returns its length without the NUL. */
size_t engine_plugin_argument(const struct engine *n, char out[ENGINE_PLUGIN_ROOM]);

#endif
