/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console: the guest's serial console on our stdin and stdout.
 */
#ifndef KVMPROF_PROFILE_CONSOLE_H
#define KVMPROF_PROFILE_CONSOLE_H

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
	bool broken; /* the reader of our output has gone */
};

void console_init(struct console *c, int fd);
/* Write what is buffered. Call it now and then, so that prompts without a newline show. */
void console_flush(struct console *c);
void console_deinit(struct console *c);

/* vm_config.console; writes through at each newline. Any thread. */
void console_put(void *console, uint8_t byte);

#endif
