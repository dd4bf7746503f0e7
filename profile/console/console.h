/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console: the guest's serial console on our stdin and stdout, and what is kept of it
 * for somebody who looks for words in it.
 */
#ifndef KVMPROF_PROFILE_CONSOLE_CONSOLE_H
#define KVMPROF_PROFILE_CONSOLE_CONSOLE_H

#include "base/buf.h"
#include "profile/console/status_line.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct console {
	pthread_mutex_t lock;
	int fd; /* where output goes; -1: nowhere */
	uint8_t buf[1024];
	size_t n;
	uint64_t bytes;
	bool broken;		   /* the reader of our output has gone */
	bool apart;		   /* output goes to no terminal */
	bool mid_line;		   /* the last byte written did not end a line */
	struct status_line status; /* below it, on the same terminal or another */
	/* With console_watch(): */
	int wake_fd;	  /* eventfd to be told of each line, borrowed; -1: nobody watches */
	bool told;	  /* ... since it was taken last */
	struct buf kept;  /* bytes since then */
	struct buf times; /* a u64 for each LF and CR of them, CLOCK_MONOTONIC */
	uint64_t last_ns; /* of the last byte */
	uint64_t missed;  /* bytes that found no room: nobody took them in time */
};

#define CONSOLE_KEPT_MAX (1u << 20)

/* What console_take() gives; all zero is nothing. */
struct console_bytes {
	struct buf bytes, times; /* as above; owned */
	uint64_t last_ns;
};

void console_init(struct console *c, int fd);
/* Write what is buffered. Call it now and then, so that prompts without a newline show. */
void console_flush(struct console *c);
void console_deinit(struct console *c);

/* Before the guest runs: have a status line on standard error, if that is a terminal. */
void console_add_status(struct console *c);
/* Draw it anew, unless a line of the guest's is not finished. Any thread. */
void console_status(struct console *c, const char *text);
/* Whoever writes to standard error himself hides it before. */
void console_hide_status(struct console *c);

/* Before the guest runs: keep what comes, and write to wake_fd at the end of a line. */
void console_watch(struct console *c, int wake_fd);
/* What came since the last time; out's buffers are emptied first, and used again. */
void console_take(struct console *c, struct console_bytes *out);

/* vm_config.console; writes through at each newline. Any thread. */
void console_put(void *console, uint8_t byte);

#endif
