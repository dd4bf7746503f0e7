/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * engine: which QEMU and which plugin of ours an exact run uses.
 */
#ifndef KVMPROF_VMM_EXACT_ENGINE_H
#define KVMPROF_VMM_EXACT_ENGINE_H

#include "base/err.h"

#include <limits.h>
#include <stddef.h>

/* The first release whose plugin interface reads registers at the start of blocks as we need it. */
#define ENGINE_LEAST_MAJOR 9u
#define ENGINE_LEAST_MINOR 1u
/* Versions of QEMU's plugin interface that the plugin serves (plugin/qemu_api.h), and what names one to it. */
#define ENGINE_API_LEAST 3
#define ENGINE_API_MOST 7
#define ENGINE_API_VARIABLE "KVMPROF_QEMU_API"
/* A QEMU that does not end within this time is no candidate; also on a busy machine it takes some 100 ms. */
#define ENGINE_ANSWER_MS 20000

struct engine {
	char qemu[PATH_MAX]; /* the program */
	char plugin[PATH_MAX];
	unsigned int major, minor, micro;
	int api; /* the version of the plugin interface that the plugin is to name: plugin/qemu_api.h */
	int api_newest;	   /* the newest one that this QEMU knows */
	char version[128]; /* as QEMU says it: "10.0.2 (Debian 1:10.0.2+ds-2)" */
	char sought[1024]; /* where else it was looked for, and what was there */
};

/*
 * Finds the plugin ($KVMPROF_PLUGIN, beside this program, or where `make install` puts it), and then a QEMU that loads it:
 * $KVMPROF_QEMU, those in $PATH, those that scripts/fetch-qemu.sh has put into the cache, the newest first. It starts each
 * candidate up to six times, each time for at most ENGINE_ANSWER_MS, and takes the first one that answers as it must. A
 * QEMU that was named and does not is an error. Returns 0, -ENOENT or -ENOTSUP: the message says what each candidate
 * answered, and what to do. Changes the environment: while the process has one thread only.
 */
int engine_find(struct engine *out, struct err *e);

/* Room for the argument of QEMU's -plugin: a path, in which each comma is doubled, and options of the plugin. */
#define ENGINE_PLUGIN_ROOM (2u * PATH_MAX + 512u)
/* Writes this argument without options, and returns its length. */
size_t engine_plugin_argument(const struct engine *n, char out[ENGINE_PLUGIN_ROOM]);

#endif
