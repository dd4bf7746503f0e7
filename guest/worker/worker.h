/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker: an ordinary, dynamically linked program for Linux guests, whose processes, threads,
 * libraries, mappings and stacks a test knows in advance.
 */
#ifndef GUEST_WORKER_H
#define GUEST_WORKER_H

/*
 * Makes a function appear under its own name in each profile: not inlined, not cloned, with a
 * frame.
 */
#define worker_function __attribute__((noinline, noclone))
#define keep_frame() __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory")

/* libhot.c */
unsigned long lib_outer(unsigned long rounds);
unsigned long lib_middle(unsigned long rounds);

/* roles.c: each role works until the time is up. */
struct role {
	const char *name; /* also the comm of the process */
	void (*run)(void);
	int only_named; /* it runs only if worker.roles names it */
};

extern const struct role roles[];
extern const unsigned int nroles;

/* worker.c */
int time_is_left(void);
double seconds_left(void); /* at least 0 */
/* waits.c: roles that wait, and one that prints what the kernel reports about all tasks. */
void role_sleep(void);
void role_pipe(void);
void role_futex(void);
void role_wait(void);
void role_half(void);
void role_proc(void);
/* turns.c */
void role_turns(void);
/* Prints "worker: truth PID TID COMM FRAME;FRAME;...", innermost frame last, user part only. */
void tell_truth(const char *comm, const char *frames);

#endif
