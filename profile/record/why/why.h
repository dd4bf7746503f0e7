/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why: the reason why a guest makes no progress, from two looks at its memory, its processors and its VMM.
 *
 * A struct why is filled by why_sample() with each sample, and by why_look() twice, some time apart. why_judge() then lets each
 * check of the table decide: ok, bad, or not known and why. A check says "bad" only with a proof: a field that it read, or two
 * clocks or looks that it compared. All of this is called on the consumer's thread; nothing is written into the guest.
 */
#ifndef KVMPROF_PROFILE_RECORD_WHY_WHY_H
#define KVMPROF_PROFILE_RECORD_WHY_WHY_H

#include "base/buf.h"
#include "profile/record/guest/guest.h"

#include <jansson.h>

/* The causes in the order of precedence: the first bad one is the cause, and later ones may follow from it. */
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

/* hang_ns: what has made no progress for so long counts as hung. */
int why_create(struct why **out, uint64_t hang_ns, struct err *e);
void why_destroy(struct why *w); /* NULL is fine */

/*
 * States that the machine was saved and does not run: that its clocks stand proves nothing, and
 * there is no process of it.
 */
void why_set_still(struct why *w);

/* Notes a sample of a vCPU. */
void why_sample(struct why *w, const struct guest *g, const struct sample *s);
/*
 * Looks at all tasks and processors. -EAGAIN: the kernel is not known yet, and e says why.
 */
int why_look(struct why *w, struct guest *g, struct err *e);
/*
 * Returns whether a later second look proves more: no clock of the guest moved between the looks, or a vCPU could be sampled few times
 * only.
 */
bool why_wants_longer(struct why *w);
/* Borrows what was seen of the machine's threads on the host. NULL: nothing is known of them. */
struct standing;
void why_set_host(struct why *w, const struct standing *h);
/* The host keeps the machine from running, so that it should not be attached to. */
bool why_host_stands(const struct standing *h);
/* Judges by the host alone, without a guest: as why_judge(), and the guest's checks are not known. */
int why_judge_host(struct why *w, json_t **out, struct err *e);
/*
 * Judges what was seen. *out is the caller's: an object as docs/why.md describes it. Returns 0 or -ENOMEM.
 */
int why_judge(struct why *w, struct guest *g, json_t **out, struct err *e);

/* The exit status that a result stands for: 0, 10 or 11. */
int why_status(const json_t *result);
/* Appends the result as text for a person. */
void why_print(const json_t *result, struct buf *out);

#endif
