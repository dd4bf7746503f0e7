/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A static /init without libc for x86-64 Linux guests: system calls, and the phases of work
 * (phases.c) that init.c runs one after the other.
 */
#ifndef GUEST_INIT_H
#define GUEST_INIT_H

#include "../syscall.h"

#if defined(__has_attribute)
#if __has_attribute(noipa)
#define GUEST_NOIPA __attribute__((noipa))
#endif
#endif
#ifndef GUEST_NOIPA
#define GUEST_NOIPA
#endif

/*
 * A phase of work. run() does `work` times its basic amount and returns the number of failed
 * operations.
 */
struct phase {
	const char *name;
	ulong_t (*run)(ulong_t work);
};

extern const struct phase phases[];
extern const unsigned int nr_phases;

#endif
