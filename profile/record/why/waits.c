/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why_waits: which lock a task waits for, and whose it is.
 *
 * A task that waits for a mutex or a rwsem has a waiter on its stack (struct mutex_waiter, struct rwsem_waiter) that
 * names the task and is linked into the lock's list: kernel/locking/mutex.c and rwsem.c. The lock counts as known only if the links
 * agree in both directions and its owner's word is plausible. rt_mutexes are led to by task_struct.pi_blocked_on.
 */
#include "profile/record/why/private.h"

#include <stdlib.h>
#include <string.h>

#define MUTEX_FLAGS UINT64_C(7)
#define RWSEM_FLAGS UINT64_C(7)
#define RWSEM_READER_OWNED UINT64_C(1)
#define RWSEM_WRITER_LOCKED UINT64_C(1)
#define RWSEM_FLAG_WAITERS UINT64_C(2)

/* The offsets that differ between the kinds of locks. */
struct lock_kind {
	bool rwsem;
	enum linux_hang_member waiter_list, waiter_task, wait_list, first_waiter, owner;
};

static const struct lock_kind kinds[] = {
	{ false, LINUX_HANG_MUTEX_WAITER_LIST, LINUX_HANG_MUTEX_WAITER_TASK,
	  LINUX_HANG_MUTEX_WAIT_LIST, LINUX_HANG_MUTEX_FIRST_WAITER, LINUX_HANG_MUTEX_OWNER },
	{ true, LINUX_HANG_RWSEM_WAITER_LIST, LINUX_HANG_RWSEM_WAITER_TASK,
	  LINUX_HANG_RWSEM_WAIT_LIST, LINUX_HANG_RWSEM_FIRST_WAITER, LINUX_HANG_RWSEM_OWNER },
};

/* The used part of a waiting task's stack. */
struct words {
	uint64_t at;
	size_t n;
	uint64_t w[WHY_STACK_BYTES / 8];
};

bool why_stack_has(const struct why_stack *s, const char *part)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->frame[i].name && strstr(s->frame[i].name, part))
			return true;
	return false;
}

static uint32_t stack_size(const struct why *w)
{
	return task_walk_layout(w->look)->stack_size;
}

static bool read_stack(const struct why *w, const struct why_task *t, struct words *out)
{
	uint64_t top = t->t.stack + stack_size(w), len = top - t->s.sp;

	if (!t->t.stack || t->s.sp < t->t.stack || t->s.sp >= top || t->s.sp % 8)
		return false;
	if (len > sizeof(out->w))
		len = sizeof(out->w);
	out->at = t->s.sp;
	out->n = len / 8;
	return memory_read(w->view.memory, MEMORY_KERNEL, out->at, out->w, out->n * 8);
}

static bool is_on_stack(const struct why *w, const struct why_task *t, uint64_t at)
{
	return t->t.stack && at - t->t.stack < stack_size(w);
}

/* Returns whether `lock` is a lock with waiters, and stores its kind and its owner. */
static bool read_owner(struct why *w, struct why_scene *s, const struct lock_kind *k, uint64_t lock,
		       struct why_wait *out)
{
	uint64_t word, count;
	struct why_task *owner;

	if (lock % 8 || !(lock >> 63) || !why_read(w, lock, k->owner, &word))
		return false;
	owner = why_task_at(s, word & ~MUTEX_FLAGS);
	if (k->rwsem) {
		if (!why_read(w, lock, LINUX_HANG_RWSEM_COUNT, &count) ||
		    !(count & RWSEM_FLAG_WAITERS) ||
		    (word & ~RWSEM_FLAGS && !owner && word >> 63 == 0))
			return false;
		out->kind =
			count & RWSEM_WRITER_LOCKED ? WHY_LOCK_RWSEM_WRITE : WHY_LOCK_RWSEM_READ;
	} else {
		/*
		 * A mutex with waiters has its first flag set, and its owner is a task, or none for
		 * a moment.
		 */
		if (!(word & 1) || (word & ~MUTEX_FLAGS && !owner))
			return false;
		out->kind = WHY_LOCK_MUTEX;
	}
	out->lock = lock;
	out->owner = owner ? owner->t.task : 0;
	out->word = word;
	return true;
}

/*
 * Follows a waiter's list to the node that is not a waiter's. That is the head, which is in the
 * lock.
 */
static bool find_by_head(struct why *w, struct why_scene *s, const struct lock_kind *k,
			 uint64_t waiter, struct why_wait *out)
{
	const struct memory *m = w->view.memory;
	uint32_t list = w->hang->off[k->waiter_list], task = w->hang->off[k->waiter_task];
	uint64_t node = waiter + list;

	for (unsigned int i = 0; i < WHY_MAX_WAITERS; i++) {
		const struct why_task *t;
		uint64_t next, back, of;

		if (!memory_u64(m, node, &next) || !(next >> 63) || next % 8 ||
		    !memory_u64(m, next + 8, &back) || back != node || next == waiter + list)
			return false;
		node = next;
		t = memory_u64(m, node - list + task, &of) ? why_task_at(s, of) : NULL;
		if (t && is_on_stack(w, t, node))
			continue;
		return read_owner(w, s, k, node - w->hang->off[k->wait_list], out);
	}
	return false;
}

/*
 * Finds a lock without a list head: a word of the stack points to a lock whose first waiter is in
 * this ring.
 */
static bool find_by_first(struct why *w, struct why_scene *s, const struct lock_kind *k,
			  uint64_t waiter, const struct words *stack, struct why_wait *out)
{
	const struct memory *m = w->view.memory;
	uint32_t list = w->hang->off[k->waiter_list];
	uint64_t first, node;

	for (size_t i = 0; i < stack->n; i++) {
		uint64_t lock = stack->w[i];

		if (!(lock >> 63) || lock % 8 || lock - stack->at < stack->n * 8 ||
		    !why_read(w, lock, k->first_waiter, &first) || !(first >> 63))
			continue;
		node = waiter + list;
		for (unsigned int j = 0; j < WHY_MAX_WAITERS && node != first + list; j++)
			if (!memory_u64(m, node, &node) || node == waiter + list || !(node >> 63))
				break;
		if (node == first + list && read_owner(w, s, k, lock, out))
			return true;
	}
	return false;
}

static bool find_lock(struct why *w, struct why_scene *s, const struct why_task *t,
		      const struct words *stack, const struct lock_kind *k, struct why_wait *out)
{
	const struct memory *m = w->view.memory;
	uint32_t list, task;

	if (!linux_hang_has(w->hang, k->waiter_list) || !linux_hang_has(w->hang, k->waiter_task) ||
	    !linux_hang_has(w->hang, k->owner))
		return false;
	list = w->hang->off[k->waiter_list];
	task = w->hang->off[k->waiter_task];
	for (size_t i = 0; i < stack->n; i++) {
		uint64_t waiter = stack->at + 8 * i - task, next, back;

		if (stack->w[i] != t->t.task || waiter < stack->at)
			continue;
		if (!memory_u64(m, waiter + list, &next) || !(next >> 63) || next % 8 ||
		    !memory_u64(m, next + 8, &back) || back != waiter + list)
			continue;
		if (linux_hang_has(w->hang, k->wait_list)
			    ? find_by_head(w, s, k, waiter, out)
			    : linux_hang_has(w->hang, k->first_waiter) &&
				      find_by_first(w, s, k, waiter, stack, out))
			return true;
	}
	return false;
}

static bool find_rt(struct why *w, struct why_scene *s, const struct why_task *t,
		    struct why_wait *out)
{
	uint64_t waiter, lock, word;
	const struct why_task *owner;

	if (!why_read(w, t->t.task, LINUX_HANG_TASK_PI_BLOCKED_ON, &waiter) || !(waiter >> 63) ||
	    !why_read(w, waiter, LINUX_HANG_RT_WAITER_LOCK, &lock) ||
	    (!why_read(w, lock, LINUX_HANG_RT_OWNER, &word) &&
	     !why_read(w, lock, LINUX_HANG_RT_OWNER_OLD, &word)))
		return false;
	owner = why_task_at(s, word & ~UINT64_C(1));
	if (!owner)
		return false;
	*out = (struct why_wait){ WHY_LOCK_RT, lock, owner->t.task, word };
	return true;
}

/* Returns whether the task may wait for a lock, so that its stack is searched. */
static bool may_wait(const struct why_task *t)
{
	return !t->s.running && !t->s.dead && t->s.state != 'R' &&
	       (why_stack_has(&t->stack, "mutex_lock") || why_stack_has(&t->stack, "rwsem_") ||
		why_stack_has(&t->stack, "down_read") || why_stack_has(&t->stack, "down_write"));
}

void why_find_waits(struct why *w, struct why_scene *s)
{
	struct words *stack = malloc(sizeof(*stack));

	if (!stack) {
		w->failed = true;
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		struct why_task *t = &s->task[i];
		bool rwsem = !why_stack_has(&t->stack, "mutex_lock");

		if (!t->s.running && find_rt(w, s, t, &t->wait))
			continue;
		if (!may_wait(t) || !read_stack(w, t, stack))
			continue;
		if (!find_lock(w, s, t, stack, &kinds[rwsem], &t->wait))
			find_lock(w, s, t, stack, &kinds[!rwsem], &t->wait);
	}
	free(stack);
}

const char *why_lock_name(const struct why_wait *wait)
{
	static const char *const name[] = {
		[WHY_LOCK_MUTEX] = "mutex",
		[WHY_LOCK_RWSEM_WRITE] = "rwsem (locked for writing)",
		[WHY_LOCK_RWSEM_READ] = "rwsem (locked for reading)",
		[WHY_LOCK_RT] = "rt_mutex",
	};

	return name[wait->kind];
}
