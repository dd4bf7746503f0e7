/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_panic: detects that the guest's Linux kernel has panicked, by evidence from outside: its
 * variable panic_cpu, its log in memory, its console and samples. The guest needs neither pvpanic
 * nor a serial console.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PANIC_H
#define KVMPROF_PROFILE_RECORD_RUN_PANIC_H

#include "profile/record/guest/panic_watch.h"
#include "profile/record/guest/target.h"
#include "profile/record/summary/panic.h"
#include "base/gmem.h"

/*
 * A filter between a vCPU and the console that notes a panic's lines. All zero except `put` and
 * `ctx`: nothing yet. One thread at a time writes it; others may read the atomic members, and
 * `text` once `done` is set.
 */
struct run_panic_console {
	void (*put)(void *ctx, uint8_t byte); /* receives all bytes */
	void *ctx;
	unsigned int matched;	  /* matched bytes of the words before the reason */
	unsigned int end_matched; /* matched bytes of the panic's last line */
	unsigned int len;	  /* bytes in `text` */
	atomic_bool done;	  /* `text` is complete */
	atomic_bool hangs;	  /* the panic's last line came: the kernel loops for ever */
	atomic_bool again;	  /* another kernel runs: the writer starts again */
	atomic_uint bytes;	  /* number of all bytes, modulo 2^32 */
	char text[256];
};

/* The state of the search for a panic while the guest runs. All zero: nothing is known yet. */
struct run_panic_live {
	atomic_bool noticed;
	struct panic_state state; /* as of the time when it was noticed */
	uint64_t noticed_ns;
	/* since when panic_cpu has been set without interruption; 0: it is not set */
	uint64_t once_ns;
	uint64_t quiet_ns;	/* time of the console's last byte */
	unsigned int bytes;	/* number of the console's bytes then, modulo 2^32 */
	struct panic_watch own; /* the variables, in a run without a pipeline */
	bool located;		/* `own` is valid */
	bool told;		/* the panic was reported; used by the main thread */
	uint64_t since_ns;	/* samples until this time were taken in an earlier kernel */
	unsigned int kernels;	/* panic_watch.kernels to which the members above belong */
	unsigned int before;	/* panics of kernels that ran before this one */
	char before_text[256];	/* the last one's reason; "" if the console did not show it */
};

/* All zero: nothing yet. */
struct run_panic {
	struct run_panic_console console;
	struct run_panic_live live;
	struct summary_panic found; /* the result at the end */
};

struct run;

/*
 * Takes a byte of the guest's console, as vm_config.console; c is a struct run_panic_console. One
 * thread at a time.
 */
void run_panic_put(void *c, uint8_t byte);

/*
 * Searches for a panic while the guest runs, and ends a run whose guest does nothing more after it.
 * now_ns is the host's time; on the exact engine the guest's time. Called by the main thread, on
 * the exact engine by the thread that processes samples, while the guest is stopped.
 */
void run_panic_check(struct run *r, uint64_t now_ns);
/*
 * Counts a panic as one of an earlier kernel, because the guest boots again. now_ns is the host's
 * time. Called by the main thread; not used by the exact engine.
 */
void run_panic_boot_again(struct run *r, uint64_t now_ns);
/* Prints a line once when a panic was noticed. Called by the main thread. */
void run_panic_report(struct run *r);

/* Where to search for a panic; all borrowed. guest and watch are NULL if there is no pipeline. */
struct run_panic_places {
	const struct target *target; /* its address in memory is known as far as it ever will be */
	const struct gmem *mem;
	const struct run_panic_console *console;
	struct guest *guest;
	const struct panic_watch *watch;
	const struct run_panic_live *live; /* NULL: panics of earlier kernels are unknown */
};

/*
 * Fills in *out, after the guest has ended and before its memory is freed. The caller frees
 * out->log with buf_deinit(). Called by the main thread.
 */
void run_panic_find(const struct run_panic_places *from, struct summary_panic *out);

/* Returns whether the stack contains panic(). Any thread. */
bool run_panic_is_on(const struct target *t, const struct stack *stack);

#endif
