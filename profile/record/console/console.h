/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console: the guest's serial console on our stdin and stdout, and what is kept of it
 * for somebody who looks for words in it.
 *
 * A vCPU only appends to a ring in memory; one thread writes it. Standard output may be a
 * pipe that nobody reads or a terminal that was stopped: the guest and the main thread go on.
 * A full ring makes a vCPU wait while the reader takes something now and then; a reader that
 * takes nothing for CONSOLE_WAIT_NS loses what comes next. That is counted, and a line in the
 * output stands where it would have been.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONSOLE_CONSOLE_H
#define KVMPROF_PROFILE_RECORD_CONSOLE_CONSOLE_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/record/console/status_line.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONSOLE_RING (1u << 20)
/* So long a vCPU waits for a reader that takes nothing. */
#define CONSOLE_WAIT_NS 1000000000ull

struct console {
	int fd;		      /* where output goes; -1: nowhere */
	pthread_mutex_t lock; /* what follows, up to `out`; never held while something is written */
	pthread_cond_t more;  /* the writer: there is something to write */
	pthread_cond_t less;  /* something was written, or will never be */
	uint8_t *ring;	      /* CONSOLE_RING bytes, or NULL before console_start() */
	size_t head, n;	      /* the oldest byte, and how many there are */
	size_t ready;	      /* of these, to be written at once: whole lines, or much */
	uint64_t bytes;	      /* that the guest has put */
	uint64_t written;     /* progress of the writer */
	uint64_t dropped;     /* bytes that found no room, or were not written at the end */
	uint64_t gap;	      /* dropped since the ring was full */
	bool dropping;	      /* until there is room for more than a few bytes */
	bool started, ending, quit;
	int failed; /* errno of a write; EPIPE: the reader has gone */
	pthread_t writer;
	/*
	 * The terminal, when console and status line share it: held while something is written.
	 * Only the writer may wait for it for long.
	 */
	pthread_mutex_t out;
	bool apart;		   /* output goes to no terminal */
	bool mid_line;		   /* the last byte written did not end a line */
	size_t chunk;		   /* bytes of one write */
	struct status_line status; /* below it, on the same terminal or another */
	/* With console_watch(), under lock: */
	uint64_t (*clock)(void *ctx); /* that times are of; NULL: CLOCK_MONOTONIC */
	void *clock_ctx;
	int wake_fd;	  /* eventfd to be told of each line, borrowed; -1: nobody watches */
	bool told;	  /* ... since it was taken last */
	struct buf kept;  /* bytes since then */
	struct buf times; /* a u64 for each LF and CR of them */
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
/* Before the guest runs: the ring and its thread. Without it nothing is written. */
int console_start(struct console *c, struct err *e);
/* The run is ending: nobody waits for a reader any more but console_drain(). */
void console_end(struct console *c);
/* Have what is there written. Call it now and then, so that prompts without a newline show. */
void console_flush(struct console *c);

/* How long the end of a run waits for somebody to read its output. */
enum console_patience {
	CONSOLE_SHORTLY,  /* while it is read, a few seconds at most */
	CONSOLE_FOR_EVER, /* as any program waits for its reader */
};
/*
 * Until all is written, patience ends, or fd (-1: none) becomes readable; the rest is
 * dropped. Main thread, when no vCPU puts anything any more.
 */
void console_drain(struct console *c, enum console_patience patience, int fd);
/* Also ends the thread; what is not written shortly is dropped. */
void console_deinit(struct console *c);

uint64_t console_dropped(struct console *c);
/* 0, or -errno of a write that failed for another reason than that the reader has gone. */
int console_error(struct console *c);

/* Before the guest runs: have a status line on standard error, if that is a terminal. */
void console_add_status(struct console *c);
/* Draw it anew, unless a line of the guest's is not finished or the terminal is stopped. Any thread. */
void console_status(struct console *c, const char *text);
/* Whoever writes to standard error himself hides it before. */
void console_hide_status(struct console *c);

/* Before the guest runs: keep what comes, and write to wake_fd at the end of a line. */
void console_watch(struct console *c, int wake_fd);
/* What came since the last time; out's buffers are emptied first, and used again. */
void console_take(struct console *c, struct console_bytes *out);

/* vm_config.console. Any thread; waits for CONSOLE_WAIT_NS at most. */
void console_put(void *console, uint8_t byte);

#endif
