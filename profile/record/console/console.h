/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console: the guest's serial console on our stdout, and a copy of it for readers who search for
 * words in it.
 *
 * A vCPU only appends to a ring in memory; the writer thread writes it. Standard output may be a
 * pipe that is not read, or a terminal that was stopped: the guest and the main thread continue. A
 * full ring makes a vCPU wait as long as the reader makes progress; if the reader takes nothing for
 * CONSOLE_WAIT_NS the following bytes are dropped. They are counted, and a line in the output marks
 * the gap.
 *
 * The main thread creates and ends a console; any thread may call the functions for which that is
 * stated.
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
/* The longest time that a vCPU waits for a reader that takes nothing. */
#define CONSOLE_WAIT_NS 1000000000ull

struct console {
	int fd;		      /* output descriptor; -1: none */
	pthread_mutex_t lock; /* protects the members up to `out`; never held during a write */
	pthread_cond_t more;  /* signals the writer that there is something to write */
	pthread_cond_t less;  /* signals that something was written, or never will be */
	uint8_t *ring;	      /* CONSOLE_RING bytes, owned; NULL before console_start() */
	size_t head, n;	      /* index of the oldest byte, and number of bytes */
	size_t ready;	      /* number of bytes to write now: whole lines, or many bytes */
	uint64_t bytes;	      /* number of bytes that the guest has written */
	uint64_t written;     /* progress of the writer thread */
	uint64_t dropped;     /* bytes that found no room, or were not written at the end */
	uint64_t gap;	      /* bytes dropped since the ring was full */
	bool dropping;	      /* set until there is room for more than a few bytes */
	bool started, ending, quit;
	int failed; /* errno of a failed write; EPIPE: the reader has gone */
	pthread_t writer;
	/*
	 * Protects the terminal if console and status line share it: held during a write. Only the
	 * writer thread may wait for it for long.
	 */
	pthread_mutex_t out;
	bool apart;		   /* the output is not a terminal */
	bool mid_line;		   /* the last byte written did not end a line */
	size_t chunk;		   /* bytes of one write */
	struct status_line status; /* below the console, on the same terminal or another one */
	/* Used after console_watch(), protected by `lock`: */
	uint64_t (*clock)(void *ctx); /* clock of the times; NULL: CLOCK_MONOTONIC */
	void *clock_ctx;
	int wake_fd;	  /* eventfd that is written at each line, borrowed; -1: no watcher */
	bool told;	  /* it was written since the last console_take() */
	struct buf kept;  /* bytes since then */
	struct buf times; /* a u64 for each LF and CR of them */
	uint64_t last_ns; /* time of the last byte */
	uint64_t missed;  /* bytes that found no room, because they were not taken in time */
};

/* The most bytes that are kept for console_take(). */
#define CONSOLE_KEPT_MAX (1u << 20)

/* The result of console_take(). All zero: empty. */
struct console_bytes {
	struct buf bytes, times; /* as in struct console; owned */
	uint64_t last_ns;
};

/*
 * Initializes a console that writes to fd (-1: nowhere), which is borrowed. It cannot fail;
 * console_deinit() frees it.
 */
void console_init(struct console *c, int fd);
/*
 * Creates the ring and the writer thread, before the guest runs; without this call nothing is
 * written. Returns 0 or -errno with the reason in *e.
 */
int console_start(struct console *c, struct err *e);
/*
 * Ends all waits of vCPUs for the reader, because the run is ending; only console_drain() still
 * waits.
 */
void console_end(struct console *c);
/*
 * Lets the writer thread write all bytes, also of an unfinished line. To be called periodically, so
 * that prompts without a newline become visible.
 */
void console_flush(struct console *c);

/* How long the end of a run waits for its output to be read. */
enum console_patience {
	CONSOLE_SHORTLY,  /* as long as it is read, but at most a few seconds */
	CONSOLE_FOR_EVER, /* without limit, as any program waits for its reader */
};
/*
 * Waits until all is written, the patience ends, or fd (-1: none) becomes readable; the rest is
 * dropped. Called by the main thread when no vCPU writes any more.
 */
void console_drain(struct console *c, enum console_patience patience, int fd);
/*
 * Ends the writer thread and frees everything; bytes that are not written within a short time are
 * dropped.
 */
void console_deinit(struct console *c);

/* Returns the number of dropped bytes. Any thread. */
uint64_t console_dropped(struct console *c);
/*
 * Returns 0, or the -errno of a failed write, except for that of a reader that has gone. Any
 * thread.
 */
int console_error(struct console *c);

/* Enables a status line on standard error, if that is a terminal, before the guest runs. */
void console_add_status(struct console *c);
/*
 * Draws the status line again, unless the guest's last line is unfinished or the terminal is
 * stopped. Does not block. Any thread.
 */
void console_status(struct console *c, const char *text);
/*
 * Hides the status line, before the caller writes to standard error; waits 0.2 s at most for the
 * terminal. Any thread.
 */
void console_hide_status(struct console *c);

/*
 * Keeps a copy of all bytes from now on, and writes to wake_fd at the end of each line. To be
 * called before the guest runs.
 */
void console_watch(struct console *c, int wake_fd);
/*
 * Moves the bytes since the last call to *out, whose buffers are cleared and reused. The caller
 * frees them with buf_deinit().
 */
void console_take(struct console *c, struct console_bytes *out);

/*
 * Appends a byte, as vm_config.console; `console` is a struct console. Any thread; waits for at
 * most CONSOLE_WAIT_NS.
 */
void console_put(void *console, uint8_t byte);

#endif
