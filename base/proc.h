/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc: what /proc tells of a thread (proc(5)). task is its directory, such as
 * "/proc/12/task/13" or "/proc/12". Any thread; no state.
 */
#ifndef KVMPROF_BASE_PROC_H
#define KVMPROF_BASE_PROC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file of /proc, to be read to its end whatever signals come; for fclose(). NULL: it can't be opened. */
FILE *proc_open(const char *path);

/* Bytes that proc_stat() wants. */
#define PROC_STAT_MAX 1024u

/*
 * Its line `stat`, read into text, from the third field on ("R 1 ..."): the name before it may
 * hold any character. NULL: it has gone.
 */
const char *proc_stat(const char *task, char text[PROC_STAT_MAX]);
/* Reads a file that is open already, as proc_stat() does; a negative fd returns NULL. */
const char *proc_stat_of(int fd, char text[PROC_STAT_MAX]);

/* The field of that number (proc(5) counts from 1) in what proc_stat() returned; 3 is the first. NULL:
 * there are not so many. */
const char *proc_stat_field(const char *stat, unsigned int number);

/* Its name, cut at cap with its NUL. False, and "": it has gone. */
bool proc_comm(const char *task, char *comm, size_t cap);

/* Its line "NAME:\tVALUE" of `status`; the value, cut at cap with its NUL. False: there is none. */
bool proc_status(const char *task, const char *name, char *value, size_t cap);

/*
 * Returns whether the process runs a program whose file has this name: also if the file was replaced meanwhile, or if the
 * loader of a release's archive runs it (proc_program()).
 */
bool proc_runs(const char *task, const char *program);

/*
 * Returns what execv() starts this program with: "/proc/self/exe", which also works when the file was replaced
 * meanwhile. A release's archive starts the program by the loader that lies beside it (scripts/package.sh), so that
 * the link leads to the loader: then out gets the path of the script that did so, and is returned. Async-signal-safe.
 */
const char *proc_program(char out[PATH_MAX]);

#endif
