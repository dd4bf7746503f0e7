/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/why/why.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/record/why/log.h"
#include "profile/record/why/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LINES 30u
#define LOG_SEARCHED 400u /* lines that checks search */
#define NAMES 8u

static const struct why_check checks[WHY_CAUSES] = {
	{ WHY_STACK_OVERFLOW, "stack-overflow", why_check_stack_overflow },
	{ WHY_PANIC, "panic", why_check_panic },
	{ WHY_PAUSED, "paused", why_check_paused },
	{ WHY_NOT_SCHEDULED, "not-scheduled", why_check_not_scheduled },
	{ WHY_MEMORY_ABSENT, "memory-absent", why_check_absent },
	{ WHY_VMM_THREAD, "vmm-thread", why_check_vmm_thread },
	{ WHY_DEADLOCK, "deadlock", why_check_deadlock },
	{ WHY_SPINLOCK, "spinlock", why_check_spinlock },
	{ WHY_IRQS_OFF, "irqs-off", why_check_irqs_off },
	{ WHY_HALTED_IRQS_OFF, "halted-irqs-off", why_check_halted },
	{ WHY_LOST_TIMER, "lost-timer", why_check_timer },
	{ WHY_PENDING_INTERRUPT, "pending-interrupt", why_check_pending },
	{ WHY_IRQ_STORM, "irq-storm", why_check_irq_storm },
	{ WHY_USER_LOOP, "user-loop", why_check_user_loop },
	{ WHY_DISK, "disk", why_check_disk },
	{ WHY_MUTEX, "mutex", why_check_locks },
	{ WHY_OUT_OF_MEMORY, "out-of-memory", why_check_memory },
	{ WHY_BOOT_WAIT, "boot-wait", why_check_boot },
	{ WHY_SOFT_LOCKUP, "soft-lockup", why_check_soft_lockup },
	{ WHY_WORKQUEUE, "workqueue", why_check_workqueue },
	{ WHY_RCU_STALL, "rcu-stall", why_check_rcu },
	{ WHY_HUNG_TASK, "hung-task", why_check_hung_task },
};

int why_create(struct why **out, uint64_t hang_ns, struct err *e)
{
	struct why *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(e);
	w->hang_ns = hang_ns;
	buf_init(&w->log);
	*out = w;
	return 0;
}

static void forget_findings(struct why *w)
{
	for (unsigned int i = 0; i < WHY_CAUSES; i++) {
		json_decref(w->finding[i].proof);
		json_decref(w->finding[i].facts);
		w->finding[i] = (struct why_finding){ 0 };
	}
}

void why_destroy(struct why *w)
{
	if (!w)
		return;
	forget_findings(w);
	why_scene_deinit(&w->scene[0]);
	why_scene_deinit(&w->scene[1]);
	task_walk_destroy(w->look);
	buf_deinit(&w->log);
	free(w);
}

void why_set_still(struct why *w)
{
	w->still = true;
}

void why_set_host(struct why *w, const struct standing *h)
{
	w->host = h;
}

/* -- what checks say --------------------------------------------------------------------- */

void why_make_printable(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			*s = '?';
}

static void say(struct why_finding *f, enum why_result result, const char *fmt, va_list ap)
{
	f->result = result;
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	why_make_printable(f->text);
}

void why_ok(struct why_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(f, WHY_OK, fmt, ap);
	va_end(ap);
}

bool why_has_samples(const struct why *w)
{
	for (unsigned int i = 0; i < w->vcpus; i++)
		if (w->vcpu[i].samples)
			return true;
	return false;
}

void why_ok_if_sampled(const struct why *w, struct why_finding *f, const char *text)
{
	if (why_has_samples(w))
		why_ok(f, "%s", text);
	else
		why_unknown(f, "no vCPU could be sampled");
}

void why_unknown(struct why_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(f, WHY_NOT_KNOWN, fmt, ap);
	va_end(ap);
}

void why_symptom(struct why_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(f, WHY_SYMPTOM, fmt, ap);
	va_end(ap);
}

void why_bad(struct why_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(f, WHY_BAD, fmt, ap);
	va_end(ap);
}

void why_fact(struct why *w, struct why_finding *f, const char *fmt, ...)
{
	char text[WHY_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	why_make_printable(text);
	w->failed |= json_array_append_new(f->facts, json_string(text)) < 0;
}

void why_prove(struct why *w, struct why_finding *f, const char *key, uint64_t v)
{
	w->failed |= json_object_set_new(f->proof, key, json_integer((json_int_t)v)) < 0;
}

void why_prove_hex(struct why *w, struct why_finding *f, const char *key, uint64_t v)
{
	w->failed |= json_object_set_new(f->proof, key, json_string(why_hex(v))) < 0;
}

const char *why_hex(uint64_t v)
{
	static _Thread_local char room[NAMES][20];
	static _Thread_local unsigned int turn;
	char *s = room[turn++ % NAMES];

	snprintf(s, sizeof(room[0]), "0x%" PRIx64, v);
	return s;
}

const char *why_task_name(const struct why_task *t)
{
	static _Thread_local char room[NAMES][64];
	static _Thread_local unsigned int turn;
	char *s = room[turn++ % NAMES];

	snprintf(s, sizeof(room[0]), "%.16s (tid %u)", t->t.comm, t->t.pid);
	return s;
}

const char *why_address(const struct why *w, uint64_t va)
{
	static _Thread_local char room[NAMES][160];
	static _Thread_local unsigned int turn;
	char *s = room[turn++ % NAMES];
	const struct symtab *t = w->view.target->symbols;
	const struct symbol *sym = t ? symtab_nearest(t, va) : NULL;

	if (sym && sym->addr >> 63 && va - sym->addr < 65536 &&
	    va < w->view.target->kernel.end + w->view.target->slide)
		snprintf(s, sizeof(room[0]), "0x%" PRIx64 " (%.100s+0x%" PRIx64 ")", va, sym->name,
			 va - sym->addr);
	else
		snprintf(s, sizeof(room[0]), "0x%" PRIx64, va);
	return s;
}

const char *why_place(const struct why *w, const struct why_stack *s)
{
	const uint64_t *text = task_walk_layout(w->look)->sched_text;

	for (unsigned int i = 0; i < s->n; i++)
		if (s->frame[i].name && !(s->frame[i].ip - text[0] < text[1] - text[0]))
			return s->frame[i].name;
	return s->n && s->frame[0].name ? s->frame[0].name : "a place without a name";
}

/* -- looks ------------------------------------------------------------------------------- */

static int prepare(struct why *w, struct guest *g, struct err *e)
{
	if (w->look_of != g) {
		task_walk_destroy(w->look);
		w->look = NULL;
		w->look_of = NULL;
	}
	if (!w->look) {
		int ret = task_walk_create(&w->look, g, e);

		if (ret)
			return ret;
		w->look_of = g;
	}
	w->guest = g;
	if (!why_renew_view(w, g, true, e))
		return -EAGAIN;
	w->hang = &w->view.target->linux_facts.hang;
	w->vcpus = w->view.vcpus < WHY_MAX_CPUS ? w->view.vcpus : WHY_MAX_CPUS;
	return 0;
}

int why_look(struct why *w, struct guest *g, struct err *e)
{
	int ret = prepare(w, g, e);

	if (ret)
		return ret;
	w->looks++;
	if (w->looks > 2)
		w->looks = 2;
	ret = why_scene_read(w, why_now(w), e);
	if (ret) {
		w->looks--;
		return ret;
	}
	if (w->looks == 1) /* what the samples have in common is of the time between the looks */
		memset(w->vcpu, 0, sizeof(w->vcpu));
	return 0;
}

void why_repeat(struct why *w)
{
	if (w->looks < 2)
		return;
	why_scene_deinit(&w->scene[0]);
	w->scene[0] = w->scene[1];
	w->scene[1] = (struct why_scene){ 0 };
	w->looks = 1;
	memset(w->vcpu, 0, sizeof(w->vcpu));
}

/* -- the result -------------------------------------------------------------------------- */

static void set(struct why *w, json_t *o, const char *key, json_t *v)
{
	w->failed |= json_object_set_new(o, key, v) < 0;
}

static void set_u64(struct why *w, json_t *o, const char *key, uint64_t v)
{
	if (v != WHY_UNKNOWN)
		set(w, o, key, json_integer((json_int_t)v));
}

static json_t *stack_json(struct why *w, const struct why_stack *s)
{
	json_t *a = json_array();

	for (unsigned int i = 0; i < s->n; i++) {
		char text[256];

		if (s->frame[i].name)
			snprintf(text, sizeof(text), "%.200s+0x%" PRIx64, s->frame[i].name,
				 s->frame[i].off);
		else
			snprintf(text, sizeof(text), "0x%" PRIx64, s->frame[i].ip);
		w->failed |= json_array_append_new(a, why_json_text(text)) < 0;
	}
	return a;
}

static json_t *vcpu_json(struct why *w, unsigned int i)
{
	const struct why_vcpu *v = &w->vcpu[i];
	const struct why_task *t = why_task_at(why_now(w), v->task);
	uint64_t stuck = why_stuck_ns(w, i);
	json_t *o = json_object();

	set_u64(w, o, "vcpu", i);
	set(w, o, "state",
	    json_string(!v->samples		 ? "not seen"
			: v->mode == SAMPLE_IDLE ? "halted"
						 : "running"));
	set_u64(w, o, "samples", v->samples);
	if (!v->samples)
		return o;
	set(w, o, "mode",
	    json_string(v->mode == SAMPLE_USER	 ? "user"
			: v->mode == SAMPLE_IDLE ? "idle"
						 : "kernel"));
	set(w, o, "interrupts", json_boolean(v->regs.rflags & 0x200));
	set(w, o, "rip", json_string(why_hex(v->regs.rip)));
	if (t) {
		set_u64(w, o, "pid", t->t.tgid);
		set_u64(w, o, "tid", t->t.pid);
		set(w, o, "comm", why_json_text(t->t.comm));
	}
	if (v->mode != SAMPLE_IDLE)
		set_u64(w, o, "same_ns", stuck);
	set(w, o, "stack", stack_json(w, &v->stack));
	return o;
}

static bool is_blocked(const struct why *w, const struct why_task *t)
{
	if (t->s.running || t->s.dead)
		return false;
	return t->s.state == 'D' || t->wait.kind != WHY_NO_LOCK ||
	       (t->s.state == 'R' && t->quiet_ns != WHY_UNKNOWN && t->quiet_ns >= w->hang_ns);
}

static json_t *task_json(struct why *w, const struct why_task *t)
{
	const struct why_task *owner = why_task_at(why_now(w), t->wait.owner);
	const char state[] = { t->s.state, '\0' };
	json_t *o = json_object();
	char text[256];

	set_u64(w, o, "pid", t->t.tgid);
	set_u64(w, o, "tid", t->t.pid);
	set(w, o, "comm", why_json_text(t->t.comm));
	set(w, o, "state", json_string(state));
	set_u64(w, o, "blocked_ns", t->quiet_ns);
	if (t->wait.kind != WHY_NO_LOCK) {
		snprintf(text, sizeof(text), "%s at %s", why_lock_name(&t->wait),
			 why_address(w, t->wait.lock));
		set(w, o, "waits_for", why_json_text(text));
		set(w, o, "lock", json_string(why_hex(t->wait.lock)));
	}
	if (owner)
		set_u64(w, o, "held_by", owner->t.pid);
	set(w, o, "stack", stack_json(w, &t->stack));
	return o;
}

static json_t *check_json(struct why *w, const struct why_check *c, const struct why_finding *f)
{
	static const char *const word[] = {
		[WHY_NOT_KNOWN] = "unknown",
		[WHY_OK] = "ok",
		[WHY_SYMPTOM] = "unknown",
		[WHY_BAD] = "bad",
	};
	json_t *o = json_object();

	set(w, o, "name", json_string(c->name));
	set(w, o, "result", json_string(word[f->result]));
	set(w, o, "text", json_string(f->text));
	if (f->result == WHY_BAD)
		w->failed |= json_object_set(o, "proof", f->proof) < 0;
	return o;
}

/* Returns the last lines of the log as an array of strings. */
static json_t *log_json(struct why *w)
{
	const char *log = (const char *)w->log.data, *at = log + w->log.len;
	json_t *a = json_array();
	unsigned int n = 0;

	while (log && at > log && n < LOG_LINES) {
		const char *end = at - 1; /* its newline */

		for (at = end; at > log && at[-1] != '\n';)
			at--;
		w->failed |=
			json_array_insert_new(a, 0, why_json_bytes(at, (size_t)(end - at))) < 0;
		n++;
	}
	return a;
}

static void add_tables(struct why *w, json_t *o)
{
	struct why_scene *s = why_now(w);
	json_t *vcpus = json_array(), *tasks = json_array();

	for (unsigned int i = 0; i < w->vcpus; i++)
		w->failed |= json_array_append_new(vcpus, vcpu_json(w, i)) < 0;
	for (size_t i = 0; i < s->n; i++)
		if (is_blocked(w, &s->task[i]))
			w->failed |= json_array_append_new(tasks, task_json(w, &s->task[i])) < 0;
	set(w, o, "vcpus", vcpus);
	set(w, o, "tasks", tasks);
	set(w, o, "dmesg", log_json(w));
	if (w->log_err.code)
		set(w, o, "dmesg_why_not", json_string(w->log_err.text));
	set(w, o, "release", why_json_text(guest_release(w->guest)));
}

/* Returns whether a vCPU ran but nothing moved between the looks, which is wrong for any reason. */
static bool makes_no_progress(struct why *w)
{
	bool ran = false;

	for (unsigned int i = 0; i < w->vcpus; i++) {
		if (w->vcpu[i].samples && w->vcpu[i].idle != w->vcpu[i].samples &&
		    !why_is_frozen(w, i))
			return false;
		ran |= why_is_frozen(w, i);
	}
	return ran && why_is_running(w);
}

/* Returns the first finding with this result in order of precedence, or NULL. */
static const struct why_finding *first_of(const struct why *w, enum why_result result,
					  const char **name)
{
	for (unsigned int i = 0; i < WHY_CAUSES; i++) {
		if (w->finding[i].result != result)
			continue;
		*name = checks[i].name;
		return &w->finding[i];
	}
	return NULL;
}

/* Writes the verdict, which is the first line of the output. */
static const char *verdict_of(struct why *w, const char **status, const char **cause, char *room,
			      size_t size)
{
	const struct why_finding *bad = first_of(w, WHY_BAD, cause), *symptom;
	const char *name;
	unsigned int known = 0;

	*status = "cause";
	if (bad)
		return bad->text;
	*status = "wrong";
	*cause = NULL;
	symptom = first_of(w, WHY_SYMPTOM, &name);
	if (symptom) {
		snprintf(room, size, "Something is wrong, and its cause is not known. %s",
			 symptom->text);
		return room;
	}
	if (makes_no_progress(w))
		return "The guest makes no progress, and the cause is not known.";
	*status = "well";
	for (unsigned int i = 0; i < WHY_CAUSES; i++)
		known += w->finding[i].result == WHY_OK;
	snprintf(room, size, "Nothing is wrong, as far as %u of %u checks can tell.", known,
		 WHY_CAUSES);
	return room;
}

static void add_verdict(struct why *w, json_t *o)
{
	json_t *causes = json_array(), *list = json_array(), *evidence = json_array();
	char room[WHY_TEXT + 64];
	const char *status, *cause = NULL,
			    *verdict = verdict_of(w, &status, &cause, room, sizeof(room));

	for (unsigned int i = 0; i < WHY_CAUSES; i++) {
		const struct why_finding *f = &w->finding[i];

		w->failed |= json_array_append_new(list, check_json(w, &checks[i], f)) < 0;
		if (f->result == WHY_BAD)
			w->failed |= json_array_append_new(causes, json_string(checks[i].name)) < 0;
		/* The verdict has the text of the cause already. */
		if ((f->result == WHY_BAD || f->result == WHY_SYMPTOM) && checks[i].name != cause)
			w->failed |= json_array_append_new(evidence, json_string(f->text)) < 0;
		w->failed |= json_array_extend(evidence, f->facts) < 0;
	}
	set(w, o, "verdict", json_string(verdict));
	set(w, o, "status", json_string(status));
	set(w, o, "cause", cause ? json_string(cause) : json_null());
	set(w, o, "causes", causes);
	set(w, o, "evidence", evidence);
	set(w, o, "checks", list);
}

/* Runs all checks, or only those that need no guest. */
static void run_checks(struct why *w, bool guest)
{
	forget_findings(w);
	for (unsigned int i = 0; i < WHY_CAUSES; i++) {
		struct why_finding *f = &w->finding[i];

		f->proof = json_object();
		f->facts = json_array();
		if (guest || (i >= WHY_PAUSED && i <= WHY_VMM_THREAD))
			checks[i].judge(w, f);
		else
			why_unknown(f, "the host keeps the machine from running, so that its "
				       "memory was not looked at");
	}
}

int why_judge_host(struct why *w, json_t **out, struct err *e)
{
	json_t *o = json_object();

	run_checks(w, false);
	set(w, o, "version", json_integer(1));
	add_verdict(w, o);
	set(w, o, "vcpus", json_array());
	set(w, o, "tasks", json_array());
	set(w, o, "dmesg", json_array());
	if (w->failed) {
		json_decref(o);
		return err_nomem(e);
	}
	*out = o;
	return 0;
}

int why_judge(struct why *w, struct guest *g, json_t **out, struct err *e)
{
	const struct why_log_request log = { .most = LOG_SEARCHED, .levels = WHY_LOG_ALL_LEVELS };
	struct linux_printk_losses losses;
	json_t *o = json_object();
	int ret = prepare(w, g, e);

	if (ret) {
		json_decref(o);
		return ret;
	}
	w->log.len = 0;
	w->log_err = (struct err){ 0 };
	(void)why_log_read(g, &log, &w->log, &losses, &w->log_err);
	if (!why_renew_view(w, g, false, e)) {
		json_decref(o);
		return -EAGAIN;
	}
	run_checks(w, true);
	for (unsigned int i = 0; i < WHY_CAUSES && w->gave_up; i++)
		if (w->finding[i].result == WHY_OK)
			why_unknown(&w->finding[i],
				    "reading the guest took too long: a list is very long, or does "
				    "not end");
	set(w, o, "version", json_integer(1));
	add_verdict(w, o);
	add_tables(w, o);
	if (w->failed) {
		json_decref(o);
		return err_nomem(e);
	}
	*out = o;
	return 0;
}

int why_status(const json_t *result)
{
	const char *status = json_string_value(json_object_get(result, "status"));

	return !status || !strcmp(status, "well") ? 0 : !strcmp(status, "cause") ? 10 : 11;
}
