/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why: finds out why a guest makes no progress, from two looks at its memory, its processors and its VMM.
 *
 * why_sample() adds each sample to a struct why, and why_look() reads the guest twice, some time apart.
 * why_judge() then runs all checks, with the results ok, bad, or not known and the reason. A check is bad
 * only with a proof: a field that it read, or two clocks or looks that it compared. Nothing is written into
 * the guest.
 *
 * The consumer thread calls why_sample(), why_look() and why_judge(); the other functions are called before
 * or after it runs.
 */
#ifndef KVMPROF_PROFILE_RECORD_WHY_WHY_H
#define KVMPROF_PROFILE_RECORD_WHY_WHY_H

#include "base/buf.h"
#include "profile/record/guest/guest.h"

#include <jansson.h>

/* The causes in order of precedence: the first bad one is the cause; the later ones may follow from it. */
enum why_cause {
	WHY_STACK_OVERFLOW,
	WHY_PANIC,
	WHY_PAUSED,
	WHY_NOT_SCHEDULED,
	WHY_MEMORY_ABSENT,
	WHY_VMM_THREAD,
	WHY_DEADLOCK,
	WHY_SPINLOCK,
	WHY_IRQS_OFF,
	WHY_HALTED_IRQS_OFF,
	WHY_LOST_TIMER,
	WHY_PENDING_INTERRUPT,
	WHY_IRQ_STORM,
	WHY_USER_LOOP,
	WHY_DISK,
	WHY_MUTEX,
	WHY_OUT_OF_MEMORY,
	WHY_BOOT_WAIT,
	WHY_SOFT_LOCKUP,
	WHY_WORKQUEUE,
	WHY_RCU_STALL,
	WHY_HUNG_TASK,
	WHY_CAUSES
};

struct why;

/*
 * Creates an object, which the caller frees with why_destroy(). What makes no progress for hang_ns counts as
 * hung. Returns 0 or -ENOMEM.
 */
int why_create(struct why **out, uint64_t hang_ns, struct err *e);
void why_destroy(struct why *w);

/*
 * States that the machine was saved and does not run: that its clocks stand proves nothing, and
 * there is no process of it.
 */
void why_set_still(struct why *w);

/* Adds a sample of a vCPU. */
void why_sample(struct why *w, const struct guest *g, const struct sample *s);
/* Reads all tasks and processors. Returns 0, -EAGAIN if the kernel is not known yet, or -ENOMEM. */
int why_look(struct why *w, struct guest *g, struct err *e);
/*
 * Returns whether a later second look proves more: no clock of the guest moved between the looks, or a vCPU
 * has few samples.
 */
bool why_wants_longer(struct why *w);
/* Makes the last look the first one of another pair, to whose samples later ones are added. */
void why_repeat(struct why *w);
/* Returns whether the two looks, without samples, give a reason to sample the vCPUs. */
bool why_suspects(struct why *w, const json_t *result);
struct standing;
/* Sets the state of the machine's threads on the host, which is borrowed. NULL: it is not known. */
void why_set_host(struct why *w, const struct standing *h);
/* Returns whether the host keeps the machine from running, so that attaching to it would fail. */
bool why_host_blocks(const struct standing *h);
/* Judges by the host alone, like why_judge(); the checks of the guest are not known. */
int why_judge_host(struct why *w, json_t **out, struct err *e);
/*
 * Runs all checks. *out is an object as docs/why.md describes it, which the caller owns. Returns 0, -EAGAIN if
 * the kernel is not known any more, or -ENOMEM.
 */
int why_judge(struct why *w, struct guest *g, json_t **out, struct err *e);

/* Returns the exit status for a result: 0, 10 or 11. */
int why_status(const json_t *result);
/* Appends the result as text for a person. */
void why_print(const json_t *result, struct buf *out);

#endif
