/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks of tasks that wait for locks, for each other, or for an unknown reason. */
#include "profile/record/why/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The states of tasks since 4.14 (include/linux/sched.h). */
#define TASK_UNINTERRUPTIBLE 0x2u
#define TASK_WAKEKILL 0x100u
#define TASK_NOLOAD 0x400u

/* Returns whether the task waited for the same lock at the first look and has not run since. */
static bool waits_still(const struct why *w, const struct why_task *t)
{
	const struct why_scene *b = why_before(w);
	const struct why_task *then = b ? why_task_of(b, t->t.pid) : NULL;

	return !b || (then && then->t.task == t->t.task && then->wait.lock == t->wait.lock &&
		      then->s.switches == t->s.switches);
}

static bool is_long(const struct why *w, uint64_t ns)
{
	return ns != WHY_UNKNOWN && ns >= w->hang_ns;
}

static void prove_wait(struct why *w, struct why_finding *f, const struct why_task *t,
		       const struct why_task *owner)
{
	why_prove_hex(w, f, "lock", t->wait.lock);
	why_prove_hex(w, f, "owner_word", t->wait.word);
	why_prove(w, f, "owner", owner->t.pid);
	why_prove(w, f, "waiter", t->t.pid);
	if (t->quiet_ns != WHY_UNKNOWN)
		why_prove(w, f, "blocked_ns", t->quiet_ns);
}

/* -- a ring of tasks --------------------------------------------------------------------- */

/*
 * Follows the owners from t on. Returns how many tasks are in the ring that leads back to t, with them in ring[], or 0. The last reader of a
 * rwsem is only a hint, unless it is the only reader and waits itself.
 */
static unsigned int ring_of(struct why_scene *s, const struct why_task *t,
			    const struct why_task *ring[WHY_MAX_CHAIN])
{
	const struct why_task *at = t;

	for (unsigned int n = 0; n < WHY_MAX_CHAIN && at && at->wait.kind != WHY_NO_LOCK; n++) {
		ring[n] = at;
		at = why_task_at(s, at->wait.owner);
		if (at == t)
			return n + 1;
	}
	return 0;
}

/* The kernel keeps only the last reader that took the lock, also after that reader released it. */
static const char *holds(const struct why_wait *wait)
{
	return wait->kind == WHY_LOCK_RWSEM_READ ? "was the last to take" : "holds";
}

static void add_chain(struct why *w, struct why_finding *f, const struct why_task *const *ring,
		      unsigned int n)
{
	json_t *chain = json_array();

	for (unsigned int i = 0; i < n; i++) {
		const struct why_task *t = ring[i], *next = ring[(i + 1) % n];

		why_fact(w, f,
			 "%s waits for the %s at %s, which %s %s: its owner's word is 0x%" PRIx64,
			 why_task_name(t), why_lock_name(&t->wait), why_address(w, t->wait.lock),
			 why_task_name(next), holds(&t->wait), t->wait.word);
		w->failed |= json_array_append_new(
				     chain, json_pack("{s:I,s:s,s:I}", "tid", (json_int_t)t->t.pid,
						      "lock", why_hex(t->wait.lock), "held_by",
						      (json_int_t)next->t.pid)) < 0;
	}
	w->failed |= json_object_set_new(f->proof, "chain", chain) < 0;
}

void why_check_deadlock(struct why *w, struct why_finding *f)
{
	struct why_scene *s = why_now(w);
	const struct why_task *ring[WHY_MAX_CHAIN];
	char text[WHY_TEXT] = "";
	size_t len = 0;

	if (!linux_hang_has(w->hang, LINUX_HANG_MUTEX_OWNER)) {
		why_unknown(f, "the kernel has no type information, so its locks are not known");
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		unsigned int n = ring_of(s, &s->task[i], ring);
		bool stands = n > 0;

		for (unsigned int k = 0; k < n; k++)
			stands &= waits_still(w, ring[k]) && is_long(w, ring[k]->quiet_ns);
		if (!stands)
			continue;
		for (unsigned int k = 0; k <= n && len < sizeof(text); k++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						k ? " waits for " : "", why_task_name(ring[k % n]));
		why_bad(f,
			n == 1 ? "A task waits for a lock that it holds itself: %s."
			       : "Tasks wait for each other's locks: %s.",
			text);
		prove_wait(w, f, ring[0], ring[1 % n]);
		add_chain(w, f, ring, n);
		return;
	}
	why_ok(f, "no task waits for itself over locks");
}

/* -- a lock whose owner waits ------------------------------------------------------------ */

/*
 * Returns the end of t's chain of owners, which waits for no lock itself. *waiter is the task
 * before it. Returns NULL if the chain is a ring, or an owner is not known.
 */
static const struct why_task *last_owner(struct why_scene *s, const struct why_task *t,
					 const struct why_task **waiter)
{
	for (unsigned int n = 0; n < WHY_MAX_CHAIN; n++) {
		const struct why_task *owner = why_task_at(s, t->wait.owner);

		if (!owner || t->wait.kind == WHY_NO_LOCK)
			return NULL;
		*waiter = t;
		if (owner->wait.kind == WHY_NO_LOCK)
			return owner;
		t = owner;
	}
	return NULL;
}

void why_check_locks(struct why *w, struct why_finding *f)
{
	struct why_scene *s = why_now(w);
	const struct why_task *worst = NULL, *waiter = NULL, *owner = NULL;
	unsigned int waiting = 0;

	if (!linux_hang_has(w->hang, LINUX_HANG_MUTEX_OWNER)) {
		why_unknown(f, "the kernel has no type information, so its locks are not known");
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i], *by = NULL, *o;

		waiting += t->wait.kind != WHY_NO_LOCK;
		if (t->wait.kind == WHY_NO_LOCK || !waits_still(w, t) || !is_long(w, t->quiet_ns))
			continue;
		o = last_owner(s, t, &by);
		/* The checks of processors handle an owner that runs or could run. */
		if (!o || o->s.running || o->s.state == 'R' || o->s.dead)
			continue;
		if (!worst || t->quiet_ns > worst->quiet_ns) {
			worst = t;
			waiter = by;
			owner = o;
		}
	}
	if (!worst) {
		why_ok(f,
		       "%u tasks wait for locks, none of them for long with an owner that waits, "
		       "too",
		       waiting);
		return;
	}
	why_bad(f, "%s has waited for %.1f s for the %s at %s, which %s %s; that task waits in %s.",
		why_task_name(worst), why_seconds(worst->quiet_ns), why_lock_name(&waiter->wait),
		why_address(w, waiter->wait.lock), why_task_name(owner), holds(&waiter->wait),
		why_place(w, &owner->stack));
	prove_wait(w, f, waiter, owner);
	why_fact(w, f, "the lock's owner word is 0x%" PRIx64 "%s", waiter->wait.word,
		 waiter->wait.kind == WHY_LOCK_RWSEM_READ
			 ? "; of readers the kernel keeps the last one that took it"
			 : "");
	why_fact(w, f, "%s is in state %c and last ran %.1f s ago", why_task_name(owner),
		 owner->s.state,
		 owner->quiet_ns == WHY_UNKNOWN ? 0.0 : why_seconds(owner->quiet_ns));
}

/* -- state D for long -------------------------------------------------------------------- */

/* Returns whether a task is in a function of a lock, and which lock it waits for could not be read. */
static bool waits_for_unread_lock(const struct why_task *t)
{
	return t->wait.kind == WHY_NO_LOCK &&
	       (why_stack_has(&t->stack, "mutex_lock") || why_stack_has(&t->stack, "rwsem_down_"));
}

void why_check_hung_task(struct why *w, struct why_finding *f)
{
	struct why_scene *s = why_now(w);
	const struct why_task *worst = NULL;
	unsigned int n = 0, ageless = 0;

	if (task_walk_layout(w->look)->state == LINUX_TASK_NONE) {
		why_unknown(f, "the states of tasks are not known");
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i];

		/*
		 * khungtaskd also ignores tasks that can be killed, and those that do not count as
		 * load.
		 */
		if (t->s.state != 'D' || !(t->s.raw_state & TASK_UNINTERRUPTIBLE) ||
		    t->s.raw_state & (TASK_WAKEKILL | TASK_NOLOAD))
			continue;
		ageless += t->quiet_ns == WHY_UNKNOWN;
		if (!is_long(w, t->quiet_ns))
			continue;
		n++;
		if (!worst || t->quiet_ns > worst->quiet_ns)
			worst = t;
	}
	if (!worst && ageless)
		why_unknown(f, "%u tasks are in state D, and since when is not known", ageless);
	else if (!worst)
		why_ok(f, "no task has been in state D for long");
	if (!worst)
		return;
	/* The lock, and not this task, is the cause. */
	if (waits_for_unread_lock(worst)) {
		why_symptom(f,
			    "%s has been in state D for %.1f s, in %s, for a lock that could not "
			    "be read.",
			    why_task_name(worst), why_seconds(worst->quiet_ns),
			    why_place(w, &worst->stack));
		return;
	}
	why_bad(f, "%s has been in state D for %.1f s, in %s.", why_task_name(worst),
		why_seconds(worst->quiet_ns), why_place(w, &worst->stack));
	why_prove(w, f, "tid", worst->t.pid);
	why_prove(w, f, "blocked_ns", worst->quiet_ns);
	why_fact(w, f, "%u tasks have been in state D for longer than %.1f s", n,
		 why_seconds(w->hang_ns));
}
