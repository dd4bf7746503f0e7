/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The init that `kvmprof run --exec` boots: what its files share. No libc.
 */
#ifndef GUEST_EXEC_H
#define GUEST_EXEC_H

#include "../syscall.h"

#define NULL ((void *)0)

/*
 * What kvmprof has put beside us: strings, each ended by a NUL, whose first byte says
 * what they are (profile/record/rootfs/exec_files.h). Terminated by an empty one.
 */
struct plan {
	char text[65536 + 2];
	ulong_t len;
	const char *nonce; /* of the message on the console */
	int interactive;   /* the command reads the console */
};

extern struct plan plan;

/* The string after s, or NULL; s NULL: the first. */
const char *plan_next(const char *s);

/* text.c */
ulong_t text_length(const char *s);
int text_same(const char *a, const char *b);
/* Cut at the first occurrence of c: what is behind it, or NULL. */
char *text_cut(char *s, char c);

/* A line on the console, in one write: up to four parts. */
struct line {
	char text[512];
	ulong_t n;
};
void line_add(struct line *l, const char *s);
void line_number(struct line *l, ulong_t v);
void line_write(struct line *l);

/* end.c: tell kvmprof, and end the machine. */
void end_with_status(unsigned int status) __attribute__((noreturn));
/* What we could not do, where, and the error (negative errno, 0: none); no command ran. */
void end_failed(const char *what, const char *where, long error) __attribute__((noreturn));

/* mount.c */
void mount_basics(void);
void open_console(void);
void load_module(const char *path);
void switch_root(const char *device, const char *type);
void mount_share(const char *tag, const char *where, const char *options);
void raise_loopback(void);

#endif
