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
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

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
/* Returns that field as a number that is not negative, or 0 if there is none. */
uint64_t proc_stat_number(const char *stat, unsigned int number);

/* Returns whether the thread is gone, or has ended and waits for its parent. */
bool proc_has_ended(const char *task);

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
/* Returns the value of a line of `status` that holds a thread's number ("Tgid"), or 0. */
pid_t proc_status_pid(const char *task, const char *name);

/*
 * Stores at most cap bytes of the process's arguments in args, each with its NUL; the last one may
 * be cut. Returns the number of bytes: 0 for a process that is gone, and for a thread of the kernel.
 */
size_t proc_arguments(const char *task, char *args, size_t cap);

/* The system call that the thread executes (proc(5), /proc/PID/syscall). */
struct proc_syscall {
	bool runs;   /* it has a processor, or waits for one; the other members are 0 */
	long number; /* its system call; -1: it sleeps outside of one, in a page fault for example */
	uint64_t argument[2]; /* the first two; 0 outside of a call */
};

/* Fills in *out. Returns false if that is not known: the thread is gone, or may not be looked into. */
bool proc_syscall(const char *task, struct proc_syscall *out);
/* Reads an open `syscall` file like proc_syscall(). Returns false if fd is negative. */
bool proc_syscall_of(int fd, struct proc_syscall *out);

/*
 * Returns whether the process runs a program whose file has this name. Also returns true if the
 * file was replaced meanwhile, or if the loader of a release archive runs the program (see
 * proc_program()).
 */
bool proc_runs_program(const char *task, const char *program);

/*
 * Returns the path with which execv() starts this program again: "/proc/self/exe", which also works
 * if the file was replaced meanwhile. In a release archive a script starts the program with the
 * loader that lies beside it (scripts/package.sh), so the link points to the loader: then the path
 * of that script is stored in `out` and returned. Async-signal-safe.
 */
const char *proc_program(char out[PATH_MAX]);

#endif
