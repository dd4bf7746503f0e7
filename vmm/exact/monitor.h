/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * monitor: what QEMU says of the machine on its monitor (QMP, docs/interop/qmp-spec.rst of QEMU):
 * that it shuts down and why, and whether all vCPUs stand for good.
 *
 * QEMU may be in the guest's hands: what it says is cut at MONITOR_MAX and searched for words, and
 * none of it leads to more than an end of the run. One thread.
 */
#ifndef KVMPROF_VMM_EXACT_MONITOR_H
#define KVMPROF_VMM_EXACT_MONITOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define MONITOR_MAX 65536u	/* bytes of an answer: registers are 2 KiB for each vCPU */
#define MONITOR_TURN 65536u	/* bytes that are taken in a row */
#define MONITOR_MOST (1u << 20) /* between two questions: events are some hundred bytes each */
#define MONITOR_ANSWER_MS 2000

enum monitor_end { MONITOR_RUNS, MONITOR_RESET, MONITOR_POWEROFF };

struct monitor {
	int fd; /* borrowed, non-blocking; -1: it is closed */
	enum monitor_end end;
	bool floods; /* more than MONITOR_MOST bytes have come that nobody asked for */
	size_t unasked;
	size_t len;
	char text[MONITOR_MAX]; /* since the last question */
};

/* Has QEMU tell of events; it reads this when it comes to it. */
void monitor_init(struct monitor *m, int fd);
/*
 * Takes what is there, without waiting: MONITOR_TURN bytes at most. false: it is closed, or floods, and is not to be polled
 * any more.
 */
bool monitor_take(struct monitor *m);
/*
 * Is each vCPU halted, or not started? Waits for the answer, MONITOR_ANSWER_MS at most, and only until `stop` is
 * set.
 */
enum monitor_answer { MONITOR_NO_ANSWER, MONITOR_IS_HALTED, MONITOR_IS_NOT_HALTED };
enum monitor_answer monitor_is_halted(struct monitor *m, const atomic_bool *stop);

/* QEMU is to end by itself. */
void monitor_quit(struct monitor *m);

/* Pure: the same of what `info registers -a` prints, escaped as JSON or not. */
bool monitor_says_halted(const char *text);

#endif
