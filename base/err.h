/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * err: what failed, where, and what to do about it.
 *
 * A function that can fail takes a `struct err *` as its last parameter and
 * returns 0 or -errno. The text is recorded once, at the place that first
 * knows the facts; callers pass it up untouched and only profile/cmd prints it.
 *
 * Threads: a struct err belongs to one thread at a time.
 */
#ifndef KVMPROF_BASE_ERR_H
#define KVMPROF_BASE_ERR_H

struct err {
	int code;	/* positive errno value, 0 = nothing recorded */
	char text[480]; /* one line, always terminated; control characters are '?' */
};

/*
 * Record the failure unless one is recorded already (the first is the cause).
 * e may be NULL. code is a positive errno value. Returns -code, so that a
 * function can end with `return err_set(e, EINVAL, ...)`.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Records "out of memory" in the same way. Returns -ENOMEM. */
int err_nomem(struct err *e);

/* Forget what was recorded, to use the struct again. */
void err_clear(struct err *e);

#endif
