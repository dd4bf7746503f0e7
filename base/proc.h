/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proc: reads the facts that /proc has about a thread (proc(5)). `task` is its directory, such as
 * "/proc/12/task/13" or "/proc/12". Any thread may call these functions; they keep no state.
 */
#ifndef KVMPROF_BASE_PROC_H
#define KVMPROF_BASE_PROC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Opens a file of /proc for reading; reads are repeated after signals. Returns a stream that the
 * caller closes with fclose(), or NULL with errno set.
 */
FILE *proc_open(const char *path);

/* The size of the buffer for proc_stat(), in bytes. */
#define PROC_STAT_MAX 1024u

/*
 * Reads the thread's line `stat` into text. Returns a pointer into text at the third field ("R 1
 * ..."), because the name before it may hold any character. Returns NULL if the thread is gone.
 */
const char *proc_stat(const char *task, char text[PROC_STAT_MAX]);
/* Reads an open `stat` file like proc_stat(). Returns NULL if fd is negative. */
const char *proc_stat_of(int fd, char text[PROC_STAT_MAX]);

/*
 * Returns the field with this number, 3 or above (proc(5) counts from 1), in the result of
 * proc_stat(); the other fields follow it. Returns NULL if there are fewer fields, or if `stat` is
 * NULL.
 */
const char *proc_stat_field(const char *stat, unsigned int number);

/*
 * Stores the thread's name in comm, cut to cap bytes with its NUL. Returns false, with an empty
 * name, if the thread is gone.
 */
bool proc_comm(const char *task, char *comm, size_t cap);

/*
 * Stores the value of the line "NAME:\tVALUE" in `status`, cut to cap bytes with its NUL. Returns
 * false if there is no such line.
 */
bool proc_status(const char *task, const char *name, char *value, size_t cap);

/*
 * Returns whether the process runs a program whose file has this name. Also returns true if the
 * file was replaced meanwhile, or if the loader of a release archive runs the program (see
 * proc_program()).
 */
bool proc_runs(const char *task, const char *program);

/*
 * Returns the path with which execv() starts this program again: "/proc/self/exe", which also works
 * if the file was replaced meanwhile. In a release archive a script starts the program with the
 * loader that lies beside it (scripts/package.sh), so the link points to the loader: then the path
 * of that script is stored in `out` and returned. Async-signal-safe.
 */
const char *proc_program(char out[PATH_MAX]);

#endif
