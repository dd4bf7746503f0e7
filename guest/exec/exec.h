/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The init that `kvmprof run --exec` boots: declarations shared by its files. It has no libc. */
#ifndef GUEST_EXEC_H
#define GUEST_EXEC_H

#include "../syscall.h"

#define NULL ((void *)0)

/*
 * The files that kvmprof has stored for this init: NUL-terminated strings whose first byte states
 * their meaning (profile/record/rootfs/exec_files.h), ended by an empty one.
 */
struct plan {
	char text[65536 + 2];
	ulong_t len;
	const char *nonce; /* nonce of the message on the console */
	int interactive;   /* the command reads from the console */
};

extern struct plan plan;

/* Returns the string after s, or the first one if s is NULL; NULL at the end. */
const char *plan_next(const char *s);

/* -- text.c ------------------------------------------------------------------------------------ */

/* Returns the length of s without its NUL. */
ulong_t text_length(const char *s);
/* Returns 1 if both strings are equal, else 0. */
int text_same(const char *a, const char *b);
/* Cuts s at the first c. Returns the rest after it, or NULL if there is none. */
char *text_cut(char *s, char c);

/* One line for the console, written with one write. */
struct line {
	char text[512];
	ulong_t n;
};
/* Appends a string; what does not fit is dropped. */
void line_add(struct line *l, const char *s);
/* Appends a number in decimal. */
void line_number(struct line *l, ulong_t v);
/* Writes the line to standard output. */
void line_write(struct line *l);

/* -- end.c ------------------------------------------------------------------------------------- */

/* Durations in the guest's time, in ns. */
struct spent {
	ulong_t real, user, system;
};
/* Reports the exit status of the command, and its times, to kvmprof and ends the machine. */
void end_with_status(unsigned int status, const struct spent *spent) __attribute__((noreturn));
/* Reports what failed, where, and the error (negative errno, 0: none); no command has run. */
void end_failed(const char *what, const char *where, long error) __attribute__((noreturn));

/* -- mount.c ----------------------------------------------------------------------------------- */

/* Mounts the file systems that programs expect: /dev, /proc, /sys, /run and others. */
void mount_basics(void);
/*
 * Opens the console as descriptors 0 to 2. Unless a user is at the terminal, bytes are passed on
 * unchanged.
 */
void open_console(void);
/*
 * Loads a kernel module; a module that is loaded already is no error. Ends with end_failed() on an
 * error.
 */
void load_module(const char *path);
/* Mounts the device as root file system and changes to it. Ends with end_failed() on an error. */
void switch_root(const char *device, const char *type);
/*
 * Mounts the shared directory `tag` at `where`, which is created; options "ro" makes it read-only.
 * Ends with end_failed() on an error.
 */
void mount_share(const char *tag, const char *where, const char *options);
/* Activates the loopback device, if there is one. */
void raise_loopback(void);

#endif
