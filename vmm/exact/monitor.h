/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * monitor: reads QEMU's monitor (QMP, docs/interop/qmp-spec.rst of QEMU): whether and why the
 * machine shuts down, and whether all vCPUs are halted for good.
 *
 * The guest may have taken over QEMU, so its output is cut at MONITOR_MAX and only searched for
 * words, and no output leads to more than an end of the run. All functions are called by the
 * consumer's thread, and before that by the one that opens the machine.
 */
#ifndef KVMPROF_VMM_EXACT_MONITOR_H
#define KVMPROF_VMM_EXACT_MONITOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define MONITOR_MAX 65536u	/* bytes of an answer; the registers of one vCPU are 2 KiB */
#define MONITOR_TURN 65536u	/* bytes read per call */
#define MONITOR_MOST (1u << 20) /* bytes between two queries; events are some hundred bytes each */
#define MONITOR_ANSWER_MS 2000	/* limit for an answer */

enum monitor_end { MONITOR_RUNS, MONITOR_RESET, MONITOR_POWEROFF };

struct monitor {
	int fd; /* borrowed, non-blocking; -1: closed */
	enum monitor_end end;
	bool floods;	/* more than MONITOR_MOST bytes have come without a query */
	size_t unasked; /* bytes read since the last query */
	size_t len;
	char text[MONITOR_MAX]; /* text since the last query */
};

/*
 * Initialises *m with fd, which stays the caller's, and enables events. QEMU processes this
 * request later.
 */
void monitor_init(struct monitor *m, int fd);
/*
 * Reads what is available without blocking, MONITOR_TURN bytes at most, and updates m->end.
 * Returns false if the monitor is closed or floods; it must not be polled any more then.
 */
bool monitor_read(struct monitor *m);
/*
 * Returns whether every vCPU is halted or not started. Waits for the answer until *stop is set,
 * MONITOR_ANSWER_MS at most; MONITOR_NO_ANSWER means that none came.
 */
enum monitor_answer { MONITOR_NO_ANSWER, MONITOR_IS_HALTED, MONITOR_IS_NOT_HALTED };
enum monitor_answer monitor_is_halted(struct monitor *m, const atomic_bool *stop);

/* Requests QEMU to end by itself. Does not wait. */
void monitor_quit(struct monitor *m);

/*
 * Returns whether the text of `info registers -a`, escaped as JSON or not, says that all vCPUs are
 * halted. Pure.
 */
bool monitor_text_is_halted(const char *text);

#endif
