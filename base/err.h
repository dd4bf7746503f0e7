/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * err: a failure: what failed, where, and what to do about it.
 *
 * A function that can fail takes a `struct err *` as its last parameter and returns 0 or -errno.
 * The text is recorded once, at the place that first knows the facts; callers pass it up unchanged,
 * and only commands print it.
 *
 * Not thread-safe: a struct err belongs to one thread at a time. It owns no memory.
 */
#ifndef KVMPROF_BASE_ERR_H
#define KVMPROF_BASE_ERR_H

struct err {
	int code;	/* positive errno value; 0: nothing is recorded */
	char text[480]; /* one line, always terminated; control characters are replaced by '?' */
};

/*
 * Records a failure unless one is recorded already (the first one is the cause). e may be NULL.
 * code is a positive errno value. Returns -code, so that a function can end with `return err_set(e,
 * EINVAL, ...)`.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Records "out of memory" like err_set(). Returns -ENOMEM. */
int err_nomem(struct err *e);

/* Clears the record, so that the struct can be used again. */
void err_clear(struct err *e);

#endif
