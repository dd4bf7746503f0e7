/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cleanup: releases local variables at the end of their scope, in place of goto ladders.
 *
 * 	cleanup_close int fd = open(...);
 * 	cleanup_free char *line = NULL;
 *
 * Initialise each such variable. To pass the resource to the caller, return cleanup_take_fd(&fd) or
 * take_ptr(p), which leave -1 or NULL in the variable.
 */
#ifndef KVMPROF_BASE_CLEANUP_H
#define KVMPROF_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_fn(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close_fn(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose_fn(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir_fn(DIR **d)
{
	if (*d)
		closedir(*d);
}

/*
 * Release the variable at the end of its scope: free(), close() unless negative, fclose(),
 * closedir().
 */
#define cleanup_free __attribute__((cleanup(cleanup_free_fn)))
#define cleanup_close __attribute__((cleanup(cleanup_close_fn)))
#define cleanup_fclose __attribute__((cleanup(cleanup_fclose_fn)))
#define cleanup_closedir __attribute__((cleanup(cleanup_closedir_fn)))

/* Returns *fd and sets it to -1. */
static inline int cleanup_take_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

/* Returns the pointer's value and sets it to NULL. */
#define take_ptr(p)                     \
	({                              \
		__typeof__(p) v_ = (p); \
		(p) = NULL;             \
		v_;                     \
	})

/* Returns the number of elements of an array (not of a pointer). */
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
