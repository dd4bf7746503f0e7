/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_panic: whether the guest's Linux kernel panicked, by evidence from outside: its variable panic_cpu, its log
 * in memory, its console and samples. The guest takes no part in it: it needs neither pvpanic nor a serial console.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PANIC_H
#define KVMPROF_PROFILE_RECORD_RUN_PANIC_H

#include "profile/record/guest/panic_watch.h"
#include "profile/record/guest/target.h"
#include "profile/record/summary/panic.h"
#include "base/gmem.h"

/*
 * Between a vCPU and the console: notes a panic's lines. All zero but `put` and `ctx` is "nothing yet". One thread at a
 * time writes it; others may read the atomic members, and `text` once `done` is set.
 */
struct run_panic_console {
	void (*put)(void *ctx, uint8_t byte); /* where bytes go on to */
	void *ctx;
	unsigned int matched;	  /* bytes of the words in front of the reason */
	unsigned int end_matched; /* bytes of the panic's last line */
	unsigned int len;	  /* bytes in `text` */
	atomic_bool done;	  /* `text` is complete */
	atomic_bool hangs;	  /* the panic's last line came: the kernel loops for ever */
	atomic_bool again;	  /* another kernel runs: the writer begins anew */
	atomic_uint bytes;	  /* all that came, modulo 2^32 */
	char text[256];
};

/* The state of the search for a panic while the guest runs. All zero means that nothing is known yet. */
struct run_panic_live {
	atomic_bool noticed;
	struct panic_state state; /* when it was noticed */
	uint64_t noticed_ns;
	uint64_t once_ns;	/* since when panic_cpu is set without a break; 0: it is not */
	uint64_t quiet_ns;	/* when the console's last byte was seen */
	unsigned int bytes;	/* the console's bytes until then, modulo 2^32 */
	struct panic_watch own; /* the variables of a run that has no pipeline */
	bool located;		/* `own` is valid */
	bool told;		/* main thread */
	unsigned int kernels;	/* panic_watch.kernels that the members above belong to */
	unsigned int before;	/* panics of kernels that ran before this one */
	char before_text[256];	/* the last one's reason; "" if the console did not show it */
};

/* Its parts; all zero is "nothing yet". */
struct run_panic {
	struct run_panic_console console;
	struct run_panic_live live;
	struct summary_panic found; /* at the end */
};

struct run;

/* vm_config.console; c is a struct run_panic_console. One thread at a time. */
void run_panic_put(void *c, uint8_t byte);

/*
 * Looks for a panic while the guest runs, and ends a run whose guest does nothing more after it. now_ns:
 * host's time, or the guest's on the exact engine, whose thread calls it while the guest is stopped.
 */
void run_panic_look(struct run *r, uint64_t now_ns);
/* Prints a line when a panic was noticed; once. Main thread. */
void run_panic_tell(struct run *r);

/* Where to look for a panic; guest and watch are NULL where there is no pipeline. */
struct run_panic_places {
	const struct target *target; /* its place in memory is known as far as it ever will be */
	const struct gmem *mem;
	const struct run_panic_console *console;
	struct guest *guest;
	const struct panic_watch *watch;
	const struct run_panic_live *live; /* NULL: panics of earlier kernels are not known */
};

/* Fills *out in (buf_deinit(&out->log) by the caller) after the guest has ended and before its memory goes. */
void run_panic_find(const struct run_panic_places *from, struct summary_panic *out);

/* Returns whether the stack leads through panic(). */
bool run_panic_is_on(const struct target *t, const struct stack *stack);

#endif
