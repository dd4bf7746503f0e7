/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_console: a filter of the guest's console that removes the messages of our init.
 *
 * guest/exec/end.c writes the times of the command to its console, in ns. If the guest's kernel gives
 * programs no access to the debug-exit port, it then writes one of the other two:
 *
 *	ESC _ kvmprof ; NONCE ; time ; REAL ; USER ; SYSTEM ESC \
 *	ESC _ kvmprof ; NONCE ; exit ; STATUS ESC \
 *	ESC _ kvmprof ; NONCE ; fail ; ERRNO ; TEXT ESC \
 *
 * This is an application program command (ECMA-48, 8.3.2), which no terminal shows. NONCE is a
 * random number of 128 bits that only our init gets, in a file that is removed before the command
 * runs: no output of the command can be mistaken for the message. Any thread may call
 * exec_console_put(); the other functions and the results are for one thread while the machine does
 * not run.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_CONSOLE_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_CONSOLE_H

#include "base/buf.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXEC_NONCE_LEN 32u /* hexadecimal digits */
/* The longest message, in bytes. */
#define EXEC_MESSAGE_MAX 512u

typedef void exec_console_put_fn(void *ctx, uint8_t byte);
typedef void exec_console_found_fn(void *ctx);

struct exec_console {
	pthread_mutex_t lock;
	char prefix[64]; /* start of the message; "": there is none */
	size_t prefix_len;
	exec_console_put_fn *put; /* receives all bytes that are not part of the message */
	void *put_ctx;
	exec_console_found_fn *found; /* called when a message is complete */
	void *found_ctx;
	size_t matched; /* bytes of the prefix that were received and are held back */
	char body[EXEC_MESSAGE_MAX + 1];
	size_t body_len;
	bool after_escape;
	/* The message: */
	bool have_status, failed, have_time;
	unsigned int status;
	uint64_t real_ns, user_ns, system_ns; /* valid if have_time */
	int error;			      /* errno of the guest; 0: none */
	char text[EXEC_MESSAGE_MAX + 1];      /* text of a failure, printable */
};

/*
 * Initializes the filter. nonce NULL: all bytes are passed on. `put` and `found` are called by the
 * thread that calls exec_console_put(), with the lock held. Nothing has to be freed.
 */
void exec_console_init(struct exec_console *c, const char *nonce, exec_console_put_fn *put,
		       void *put_ctx, exec_console_found_fn *found, void *found_ctx);
/* Takes one byte of the console; exec_console is a struct exec_console. */
void exec_console_put(void *exec_console, uint8_t byte);
/*
 * Appends the bytes that are held back, terminated, for a snapshot: if they are given to
 * exec_console_put() of another filter, that one continues with the message. No other thread may
 * write meanwhile.
 */
void exec_console_pending(const struct exec_console *c, struct buf *out);
/* Passes on the bytes that are held back, unless they are the beginning of a message. */
void exec_console_end(struct exec_console *c);

#endif
