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

/* -- libhot.c ---------------------------------------------------------------------------------- */

/* Computes for a number of rounds in lib_inner(), which it calls through lib_middle(). */
unsigned long lib_outer(unsigned long rounds);
/* Computes in the same way without the outermost frame. */
unsigned long lib_middle(unsigned long rounds);

/* roles.c: each role works until the time is up. */
struct role {
	const char *name; /* also the comm of the process */
	void (*run)(void);
	int only_named; /* it runs only if worker.roles names it */
};

extern const struct role roles[];
extern const unsigned int nroles;

/* -- worker.c ---------------------------------------------------------------------------------- */

/* Returns whether the time of the roles is not over yet. */
int time_is_left(void);
/* Returns the rest of the time in seconds, at least 0. */
double seconds_left(void);
/* -- waits.c: roles that wait ------------------------------------------------------------------ */

/* Waits in nanosleep(2). */
void role_sleep(void);
/* Waits in read(2) from a pipe. */
void role_pipe(void);
/* Waits in futex(2). */
void role_futex(void);
/* Waits in wait4(2) for a child. */
void role_wait(void);
/* Computes for half of the time and sleeps for the other half, in turns of a tenth of a second. */
void role_half(void);
/* Prints what the kernel reports about all tasks: /proc/TID/wchan and /proc/TID/stat. */
void role_proc(void);
/* -- turns.c ----------------------------------------------------------------------------------- */

/* Loads and unloads two libraries in turn, and prints how often both were at the same address. */
void role_turns(void);
/* Prints "worker: truth PID TID COMM FRAME;FRAME;...", innermost frame last, user part only. */
void tell_truth(const char *comm, const char *frames);

#endif
