/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_console: the guest's console, without the message of our init in it.
 *
 * Where the guest's kernel gives no program a way to the debug-exit port, guest/exec/end.c
 * writes to its console
 *
 *	ESC _ kvmprof ; NONCE ; exit ; STATUS ESC \
 *	ESC _ kvmprof ; NONCE ; fail ; ERRNO ; TEXT ESC \
 *
 * an application program command (ECMA-48, 8.3.2), which no terminal shows. NONCE is a random
 * number of 128 bits that only our init was told, in a file that is gone before the command
 * runs: so no output of the command is taken for it. Any thread may write; what was found is
 * there for others when the machine has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_CONSOLE_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_CONSOLE_H

#include "base/buf.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXEC_NONCE_LEN 32u /* hexadecimal digits */
#define EXEC_MESSAGE_MAX 512u

typedef void exec_console_put_fn(void *ctx, uint8_t byte);
typedef void exec_console_found_fn(void *ctx);

struct exec_console {
	pthread_mutex_t lock;
	char prefix[64]; /* what the message begins with; "" : nothing is looked for */
	size_t prefix_len;
	exec_console_put_fn *put; /* what is not the message's goes here */
	void *put_ctx;
	exec_console_found_fn *found; /* a message is complete */
	void *found_ctx;
	size_t matched; /* bytes of the prefix that have come, and are held back */
	char body[EXEC_MESSAGE_MAX + 1];
	size_t body_len;
	bool after_escape;
	/* The message: */
	bool have_status, failed;
	unsigned int status;
	int error;			 /* errno of the guest; 0: none */
	char text[EXEC_MESSAGE_MAX + 1]; /* of failed: printable */
};

/* nonce NULL: nothing is looked for. */
void exec_console_init(struct exec_console *c, const char *nonce, exec_console_put_fn *put,
		       void *put_ctx, exec_console_found_fn *found, void *found_ctx);
void exec_console_put(void *exec_console, uint8_t byte);
/*
 * What is held back so far, terminated, for a snapshot: given to exec_console_put() of
 * another one it goes on with the message. Nothing is written meanwhile.
 */
void exec_console_held(const struct exec_console *c, struct buf *out);
/* What is held back was no message. */
void exec_console_end(struct exec_console *c);

#endif
