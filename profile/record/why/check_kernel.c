/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checks of the kernel's own records: a panic, the ends of stacks, grace periods, work queues,
 * the boot.
 */
#include "profile/record/why/private.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel writes it to the lowest word of each stack (include/uapi/linux/magic.h). */
#define STACK_END_MAGIC UINT64_C(0x57ac6e9d)
#define TAINT_DIE 7u
#define POOLS 2u /* pools of a CPU: normal and high priority */

/* Copies a line of the log without its time. */
static void copy_line(const char *line, size_t len, char *out, size_t cap)
{
	const char *text = *line == '[' ? memchr(line, ']', len) : NULL;
	size_t skip = text ? (size_t)(text + 1 - line) : 0;

	skip += skip < len && line[skip] == ' ';
	snprintf(out, cap, "%.*s", (int)(len - skip < 300 ? len - skip : 300), line + skip);
}

/*
 * Finds the first line of the log, from `from` on, that contains one of these texts. Returns the
 * end of that line; NULL, with an empty `out`, if there is none.
 */
static const char *log_line(const struct why *w, const char *from, const char *const *texts,
			    char *out, size_t cap)
{
	const char *log = (const char *)w->log.data, *line = from ? from : log,
		   *end = log + w->log.len;

	*out = '\0';
	while (log && line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t len = (size_t)((stop ? stop : end) - line);

		for (unsigned int i = 0; texts[i]; i++) {
			if (!memmem(line, len, texts[i], strlen(texts[i])))
				continue;
			copy_line(line, len, out, cap);
			return line + len;
		}
		line += len + 1;
	}
	return NULL;
}

static bool read_int(const struct why *w, const char *name, int32_t *out)
{
	uint64_t at = why_variable(w, name);
	uint32_t v;

	if (!at || !memory_u32(w->view.memory, at, &v))
		return false;
	*out = (int32_t)v;
	return true;
}

/*
 * The least value of SYSTEM_RUNNING: Linux 5.17 put SYSTEM_FREEING_INITMEM before it (include/linux/kernel.h, enum
 * system_states). It is used if the kernel has no type information.
 */
#define LEAST_RUNNING 2

bool why_is_running(const struct why *w)
{
	int32_t state;

	if (!read_int(w, "system_state", &state))
		return true;
	return w->hang->running < 0 ? state >= LEAST_RUNNING : state == w->hang->running;
}

void why_check_panic(struct why *w, struct why_finding *f)
{
	static const char *const panics[] = { "Kernel panic - not syncing", NULL };
	static const char *const oopses[] = { "BUG: ",		"kernel BUG at",
					      "Oops: ",		"general protection fault",
					      "invalid opcode", NULL };
	uint64_t at = why_variable(w, "tainted_mask"), taint = 0;
	char text[320];
	int32_t cpu;
	bool have = read_int(w, "panic_cpu", &cpu);

	if (have && cpu != -1) {
		log_line(w, NULL, panics, text, sizeof(text));
		why_bad(f, "The kernel has panicked: %s.",
			*text ? text : "its log has no text of it");
		why_prove(w, f, "panic_cpu", (uint64_t)cpu);
		why_fact(w, f, "panic_cpu is %d", (int)cpu);
		w->failed |= json_object_set_new(f->proof, "text", json_string(text)) < 0;
		log_line(w, NULL, oopses, text, sizeof(text));
		if (*text)
			why_fact(w, f, "before it the log has: %s", text);
		return;
	}
	if (at && memory_u64(w->view.memory, at, &taint) && taint >> TAINT_DIE & 1) {
		log_line(w, NULL, oopses, text, sizeof(text));
		why_bad(f, "The kernel has had an oops: %s.",
			*text ? text : "its log has no text of it any more");
		why_prove_hex(w, f, "taint", taint);
		w->failed |= json_object_set_new(f->proof, "text", json_string(text)) < 0;
		why_fact(w, f, "the kernel's taint is 0x%" PRIx64 ": bit 7, of an oops, is set",
			 taint);
		return;
	}
	if (!have && !at)
		why_unknown(f, "the kernel's symbols name neither panic_cpu nor tainted_mask");
	else
		why_ok(f, "no panic, no oops: panic_cpu is %d, the kernel's taint is 0x%" PRIx64,
		       have ? (int)cpu : -1, taint);
}

void why_check_stack_overflow(struct why *w, struct why_finding *f)
{
	static const char *const texts[] = { "stack guard page was hit", "kernel stack overflow",
					     "corrupted stack end detected", NULL };
	static const char *const pids[] = { " PID: ", NULL };
	struct why_scene *s = why_now(w);
	unsigned int whole = 0;
	const char *at, *pid;
	char text[320];

	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i];
		uint64_t v;

		if (!t->t.stack || t->s.dead || !memory_u64(w->view.memory, t->t.stack, &v))
			continue;
		if ((uint32_t)v == STACK_END_MAGIC) {
			whole++;
			continue;
		}
		/* A stack that was freed meanwhile proves nothing. */
		if (!memory_u64(w->view.memory, t->t.task + w->view.target->linux_facts.task.stack,
				&v) ||
		    v != t->t.stack || !whole)
			continue;
		why_bad(f,
			"The kernel stack of %s has overflowed: the word at its end is not the "
			"kernel's mark.",
			why_task_name(t));
		why_prove(w, f, "tid", t->t.pid);
		why_prove_hex(w, f, "stack", t->t.stack);
		memory_u64(w->view.memory, t->t.stack, &v);
		why_prove_hex(w, f, "word", v);
		return;
	}
	at = log_line(w, NULL, texts, text, sizeof(text));
	if (at) {
		why_bad(f, "A kernel stack has overflowed: %s.", text);
		w->failed |= json_object_set_new(f->proof, "text", json_string(text)) < 0;
		why_fact(w, f, "the kernel's log has: %s", text);
		log_line(w, at, pids, text, sizeof(text));
		pid = strstr(text, pids[0]);
		if (!pid)
			return;
		why_fact(w, f, "it goes on with: %s", text);
		why_prove(w, f, "tid", strtoul(pid + strlen(pids[0]), NULL, 10));
		return;
	}
	if (!whole)
		why_unknown(f, "the ends of stacks cannot be read");
	else
		why_ok(f, "the ends of %u kernel stacks are whole", whole);
}

uint64_t why_jiffy_ns(const struct why *w)
{
	uint64_t at = why_variable(w, "tick_length"), data = why_variable(w, "tk_ntp_data"), v;

	/* tick_length is in units of ns << 32. Since 6.13 it is in struct ntp_data. */
	if ((at && memory_u64(w->view.memory, at, &v)) ||
	    (data && why_read(w, data, LINUX_HANG_NTP_TICK_LENGTH, &v)))
		v >>= 32;
	else
		return 0;
	/* HZ is 24 to 1000; a clock that is slewed differs by a little. */
	return v >= 500000 && v <= 50000000 ? v : 0;
}

/* Returns the task that has waited longest within rcu_read_lock(), or NULL. */
static const struct why_task *blocked_reader(struct why *w)
{
	struct why_scene *s = why_now(w);
	const struct why_task *worst = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i];
		uint64_t depth;

		/* A task that is ready to run is delayed by the one that has its processor. */
		if (t->s.running || t->s.state == 'R' || t->quiet_ns == WHY_UNKNOWN ||
		    t->quiet_ns < w->hang_ns ||
		    !why_read(w, t->t.task, LINUX_HANG_TASK_RCU_NESTING, &depth) ||
		    !(uint32_t)depth || (uint32_t)depth > 1000)
			continue;
		if (!worst || t->quiet_ns > worst->quiet_ns)
			worst = t;
	}
	return worst;
}

void why_check_rcu(struct why *w, struct why_finding *f)
{
	struct why_scene *s = why_now(w);
	const struct why_scene *b = why_before(w);
	uint64_t jiffy = why_jiffy_ns(w), ns;
	const struct why_task *reader;

	if (s->gp_seq == WHY_UNKNOWN || s->gp_start == WHY_UNKNOWN || s->jiffies == WHY_UNKNOWN ||
	    !jiffy) {
		why_unknown(f, "%s",
			    why_variable(w, "rcu_state") ? "grace periods are not known: no type "
							   "information, or no length of a jiffy"
							 : "the kernel has no tree RCU");
		return;
	}
	ns = (s->jiffies - s->gp_start) * jiffy;
	if (!(s->gp_seq & 3) || s->jiffies - s->gp_start > UINT32_MAX || ns < w->hang_ns ||
	    (b && b->gp_seq != s->gp_seq)) {
		why_ok(f, "%s",
		       s->gp_seq & 3 ? "the grace period that is under way is young"
				     : "no grace period is under way");
		return;
	}
	reader = blocked_reader(w);
	if (!reader) {
		why_symptom(f,
			    "An RCU grace period has waited for %.1f s, and no reader that waits "
			    "itself holds it up.",
			    why_seconds(ns));
		return;
	}
	why_bad(f, "An RCU grace period has waited for %.1f s for a reader that waits itself: %s.",
		why_seconds(ns), why_task_name(reader));
	why_prove(w, f, "gp_seq", s->gp_seq);
	why_prove(w, f, "gp_ns", ns);
	if (s->qsmask != WHY_UNKNOWN)
		why_prove(w, f, "qsmask", s->qsmask);
	why_prove(w, f, "tid", reader->t.pid);
	why_fact(w, f,
		 "rcu_state.gp_start is %" PRIu64 " jiffies ago, gp_seq is %" PRId64
		 " at both looks",
		 s->jiffies - s->gp_start, (int64_t)s->gp_seq);
	why_fact(w, f, "%s is within rcu_read_lock() and waits in %s", why_task_name(reader),
		 why_place(w, &reader->stack));
}

/* Returns whether the task runs, or ran between the looks. */
static bool gets_time(const struct why *w, const struct why_task *t)
{
	const struct why_scene *b = why_before(w);
	const struct why_task *then = b ? why_task_of(b, t->t.pid) : NULL;

	return t->s.running || (then && then->s.run_ns != LINUX_SCHED_UNKNOWN &&
				t->s.run_ns != LINUX_SCHED_UNKNOWN && t->s.run_ns > then->s.run_ns);
}

/*
 * Returns a worker of the pool that gets a processor, and stores the function that it executes; or
 * NULL.
 */
static const struct why_task *busy_worker(struct why *w, uint64_t pool, uint64_t *func)
{
	uint64_t head = pool + w->hang->off[LINUX_HANG_POOL_WORKERS], node = head, task;

	for (unsigned int i = 0; i < 1024; i++) {
		const struct why_task *t;
		uint64_t worker;

		if (!memory_u64(w->view.memory, node, &node) || node == head || !(node >> 63))
			return NULL;
		worker = node - w->hang->off[LINUX_HANG_WORKER_NODE];
		if (!why_read(w, worker, LINUX_HANG_WORKER_FUNC, func) || !*func ||
		    !why_read(w, worker, LINUX_HANG_WORKER_TASK, &task))
			continue;
		t = why_task_at(why_now(w), task);
		if (t && gets_time(w, t))
			return t;
	}
	return NULL;
}

void why_check_workqueue(struct why *w, struct why_finding *f)
{
	const struct linux_hang_layout *h = w->hang;
	struct why_scene *s = why_now(w);
	uint64_t jiffy = why_jiffy_ns(w);

	if (!h->pool_size || !linux_hang_has(h, LINUX_HANG_POOL_WORKLIST) ||
	    !linux_hang_has(h, LINUX_HANG_POOL_WATCHDOG) ||
	    !linux_hang_has(h, LINUX_HANG_POOL_WORKERS) || !jiffy || s->jiffies == WHY_UNKNOWN) {
		why_unknown(f, "the kernel does not keep when its work queues last made progress "
			       "(CONFIG_WQ_WATCHDOG), or has no type information");
		return;
	}
	for (unsigned int i = 0; i < w->vcpus * POOLS; i++) {
		uint64_t pool = why_percpu(w, "cpu_worker_pools", i / POOLS), first, then, func = 0,
			 ns;
		uint64_t head;
		const struct why_task *t;

		if (!pool)
			continue;
		pool += i % POOLS * (uint64_t)h->pool_size;
		head = pool + h->off[LINUX_HANG_POOL_WORKLIST];
		if (!memory_u64(w->view.memory, head, &first) || first == head || !(first >> 63) ||
		    !why_read(w, pool, LINUX_HANG_POOL_WATCHDOG, &then) || s->jiffies < then ||
		    s->jiffies - then > UINT32_MAX)
			continue;
		ns = (s->jiffies - then) * jiffy;
		if (ns < w->hang_ns)
			continue;
		t = busy_worker(w, pool, &func);
		if (!t) {
			why_symptom(f,
				    "The %swork queue of CPU %u has made no progress for %.1f s "
				    "with work "
				    "waiting, and no worker of it gets a processor.",
				    i % POOLS ? "high-priority " : "", i / POOLS, why_seconds(ns));
			continue;
		}
		why_bad(f,
			"The %swork queue of CPU %u has made no progress for %.1f s with work "
			"waiting: %s is busy with %s.",
			i % POOLS ? "high-priority " : "", i / POOLS, why_seconds(ns),
			why_task_name(t), why_address(w, func));
		why_prove_hex(w, f, "pool", pool);
		why_prove(w, f, "cpu", i / POOLS);
		why_prove(w, f, "stalled_ns", ns);
		why_prove(w, f, "worker", t->t.pid);
		why_fact(w, f,
			 "worker_pool.watchdog_ts is %" PRIu64
			 " jiffies ago, and its worklist is not empty",
			 s->jiffies - then);
		return;
	}
	if (f->result != WHY_SYMPTOM)
		why_ok(f, "each work queue with waiting work makes progress");
}

/* Functions in which a boot waits. */
static const struct boot_wait {
	const char *function, *what;
	/* It wakes up every few ms to look again, so that its wait is as old as the boot. */
	bool polls;
} boot_waits[] = {
	{ "wait_for_root", "the root device", true },
	{ "prepare_namespace", "the root device", true },
	{ "wait_for_initramfs", "the initial RAM disk", false },
	{ "wait_for_random_bytes", "entropy", false },
	{ "wait_for_device_probe", "the probe of a device", false },
	{ "async_synchronize", "the probe of a device", false },
	{ "do_init_module", "the init function of a module", false },
	{ "do_one_initcall", "the init function of a part of the kernel or of a module", false },
	{ "device_block_probing", "the probe of a device", false },
};

/* Returns the place at which a task has kept the boot waiting for long, or NULL. */
static const struct boot_wait *boot_wait_of(struct why *w, const struct why_task *t)
{
	if (t->s.running || t->s.state == 'R' || (t->t.is_kthread && t->t.pid != 1) ||
	    t->quiet_ns == WHY_UNKNOWN)
		return NULL;
	for (size_t k = 0; k < ARRAY_SIZE(boot_waits); k++) {
		const struct boot_wait *p = &boot_waits[k];
		uint64_t waited = p->polls ? why_now(w)->clock : t->quiet_ns;

		/* Other tasks than init keep the boot waiting only for entropy or in a module. */
		if (why_stack_has(&t->stack, p->function) && waited >= w->hang_ns &&
		    (t->t.pid == 1 || !strcmp(p->what, "entropy") ||
		     why_stack_has(&t->stack, "do_init_module")))
			return p;
	}
	return NULL;
}

/* Reads the name of the root device, or makes it empty. */
static void read_root(const struct why *w, char *out, size_t size)
{
	uint64_t at = why_variable(w, "saved_root_name");

	if (!at || !memory_read(w->view.memory, MEMORY_KERNEL, at, out, size - 1))
		*out = '\0';
	out[size - 1] = '\0';
}

void why_check_boot(struct why *w, struct why_finding *f)
{
	struct why_scene *s = why_now(w);
	char root[64] = "";

	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i];
		const struct boot_wait *p = boot_wait_of(w, t);

		if (!p)
			continue;
		if (p->polls)
			read_root(w, root, sizeof(root));
		why_bad(f, "The boot waits for %s%s%.40s: %s, in %s.", p->what, *root ? " " : "",
			root, why_task_name(t), why_place(w, &t->stack));
		why_prove(w, f, "tid", t->t.pid);
		why_prove(w, f, "blocked_ns", t->quiet_ns);
		why_fact(w, f, "%s has %s() on its stack", why_task_name(t), p->function);
		return;
	}
	why_ok(f, why_is_running(w) ? "the boot is over" : "the boot goes on");
}
