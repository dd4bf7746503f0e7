/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/frame_host.h"

#include "base/hash.h"
#include "profile/record/host/host_runs.h"
#include "profile/record/host/host_switches.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 80u
#define NAME_KEPT (NAME_MAX_LEN - 1) /* characters kept of a longer name */
#define SLOTS (2 * WHERE_HOSTS)	     /* size of the hash table; a power of two */
/* How often new names are reported to the sink; all of them are at the end. */
#define TELL_NS 1000000000u

/*
 * Names that occurred, each with an address of its own; the last entry stands for all that found no
 * room.
 */
struct names_met {
	uint64_t base;
	unsigned int n, max, told;
	char (*name)[NAME_MAX_LEN];
	uint16_t slot[SLOTS];  /* 1 + index; 0: free */
	struct symtab **table; /* as reported, in sequence; borrowed by the sink */
	unsigned int ntables;
	uint64_t told_ns;
	const char *module;
};

struct frame_host {
	frame_exit_name exit_name;
	const struct host_names *names;
	struct host_switches *switches;
	struct names_met host, own, exits, tasks;
	struct symtab *marks;
};

static int met_init(struct names_met *m, const char *module, uint64_t base, unsigned int max)
{
	m->module = module;
	m->base = base;
	m->max = max;
	m->name = calloc(max, sizeof(*m->name));
	return m->name ? 0 : -ENOMEM;
}

static void met_deinit(struct names_met *m)
{
	while (m->ntables)
		symtab_destroy(m->table[--m->ntables]);
	free(m->table);
	free(m->name);
}

static uint64_t met(struct names_met *m, const char *name)
{
	uint32_t at = hash_text32(name, NAME_KEPT);

	for (;; at++) {
		uint16_t *slot = &m->slot[at & (SLOTS - 1)];

		if (*slot && strncmp(m->name[*slot - 1], name, NAME_KEPT) != 0)
			continue;
		if (!*slot && m->n + 1 >= m->max) {
			snprintf(m->name[m->max - 1], NAME_MAX_LEN, "[others]");
			m->n = m->max;
			return m->base + (m->max - 1) * WHERE_STEP;
		}
		if (!*slot) {
			snprintf(m->name[m->n], NAME_MAX_LEN, "%s", name);
			*slot = (uint16_t)++m->n;
		}
		return m->base + (*slot - 1u) * WHERE_STEP;
	}
}

static int frame_host_tell(struct sink *sink, struct symtab *t, const char *module, uint64_t base,
			   uint64_t len, struct err *e)
{
	struct profile_module m = {
		.name = module, .addr = base, .len = len, .time_ns = 1, .symbols = t
	};
	int ret = symtab_freeze(t, e);

	return ret ? ret : sink->ops->module(sink, &m, e);
}

static int met_tell(struct names_met *m, struct sink *sink, struct err *e)
{
	struct symtab *t, **more;
	int ret = 0;

	if (m->n == m->told)
		return 0;
	t = symtab_create();
	more = realloc(m->table, (m->ntables + 1) * sizeof(struct symtab *));
	if (more)
		m->table = more;
	if (!t || !more) {
		symtab_destroy(t);
		return err_nomem(e);
	}
	m->table[m->ntables++] = t;
	for (unsigned int i = 0; !ret && i < m->n; i++)
		ret = symtab_add(t, m->base + i * WHERE_STEP, WHERE_STEP, 'T', m->name[i]);
	if (ret)
		return err_set(e, -ret, "the names of the host: %s", strerror(-ret));
	m->told = m->n;
	return frame_host_tell(sink, t, m->module, m->base, (uint64_t)m->max * WHERE_STEP, e);
}

static int met_tell_sometimes(struct names_met *m, struct sink *sink, uint64_t now, struct err *e)
{
	if (m->told && now - m->told_ns < TELL_NS)
		return 0;
	m->told_ns = now;
	return met_tell(m, sink, e);
}

int frame_host_create(struct frame_host **out, const struct host_names *names,
		      struct host_switches *switches, frame_exit_name exit_name, struct err *e)
{
	struct frame_host *h = calloc(1, sizeof(*h));

	if (h && met_init(&h->host, "host", WHERE_HOST_BASE, WHERE_HOSTS) == 0 &&
	    met_init(&h->own, "kvmprof", WHERE_OWN_BASE, WHERE_OWNS) == 0 &&
	    met_init(&h->exits, "exit", WHERE_EXIT_BASE, WHERE_EXITS) == 0 &&
	    met_init(&h->tasks, "task", WHERE_TASK_BASE, WHERE_TASKS) == 0) {
		h->names = names;
		h->exit_name = exit_name;
		h->switches = switches;
		*out = h;
		return 0;
	}
	frame_host_destroy(h);
	return err_nomem(e);
}

void frame_host_destroy(struct frame_host *h)
{
	if (!h)
		return;
	met_deinit(&h->host);
	met_deinit(&h->own);
	met_deinit(&h->exits);
	met_deinit(&h->tasks);
	symtab_destroy(h->marks);
	free(h);
}

/* -- the state of the thread -------------------------------------------------------------- */

static int tell_marks(struct frame_host *h, struct sink *sink, struct err *e)
{
	int ret = 0;

	h->marks = symtab_create();
	if (!h->marks)
		return err_nomem(e);
	for (unsigned int w = 0; !ret && w < SAMPLE_WHERES; w++) {
		char name[32];

		snprintf(name, sizeof(name), "[%s]", where_name((enum sample_where)w));
		ret = symtab_add(h->marks, where_address((enum sample_where)w), WHERE_STEP, 'T',
				 name);
	}
	return ret ? err_set(e, -ret, "the names of frames: %s", strerror(-ret))
		   : frame_host_tell(sink, h->marks, "where", WHERE_BASE,
				     SAMPLE_WHERES * WHERE_STEP, e);
}

static uint64_t exit_frame(struct frame_host *h, const struct sample_host *what)
{
	char name[NAME_MAX_LEN], api[24];
	size_t n = 0;

	for (const char *p = h->exit_name(what->exit); *p && n + 1 < sizeof(api); p++, n++)
		api[n] = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
	api[n] = 0;
	if (what->exit == KVM_EXIT_IO)
		snprintf(name, sizeof(name), "[exit: io port 0x%" PRIx64 "]", what->exit_addr);
	else if (what->exit == KVM_EXIT_MMIO)
		snprintf(name, sizeof(name), "[exit: mmio 0x%" PRIx64 "]", what->exit_addr);
	else
		snprintf(name, sizeof(name), "[exit: %s]", api);
	return met(&h->exits, name);
}

/*
 * Returns the address of the task that had the processor for which the thread waited; 0: unknown.
 */
static uint64_t task_frame(struct frame_host *h, const struct sample *s,
			   const struct sample_host *what)
{
	const struct host_wait wait = {
		.tid = what->tid, .from = what->exit_addr, .to = s->time_ns, .wait_ns = s->weight
	};
	char who[NAME_MAX_LEN / 2], name[NAME_MAX_LEN];

	if (!host_switches_find_task(h->switches, &wait, who, sizeof(who)))
		return 0;
	snprintf(name, sizeof(name), "[task] %s", who);
	return met(&h->tasks, name);
}

static bool is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* Returns the name of frame i, or NULL for a function of a program without a name. */
static const char *function(const struct frame_host *h, const struct sample_host *what,
			    unsigned int i, char *buf, size_t size)
{
	/* For a caller, the call may be the last instruction of a function. */
	uint64_t ip = what->ip[i] - (i != 0);
	const char *name = host_names_at(h->names, ip);

	if (name || !is_kernel(ip))
		return name;
	snprintf(buf, size, "0x%" PRIx64, ip);
	return buf;
}

static bool is_any(const char *name, const char *const *list)
{
	for (; name && *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

/* Returns whether it is the label of a file instead of a function's name. */
static bool is_label(const char *name)
{
	return name && *name == '[';
}

/*
 * Refines the state by the functions: KVM's own halt, in which it polls for an interrupt before it
 * sleeps; a stop by kvmprof, while it begins or ends.
 */
static enum sample_where refined(const struct frame_host *h, const struct sample_host *what)
{
	static const char *const halt[] = { "kvm_vcpu_halt", "kvm_vcpu_block",
					    "kvm_vcpu_check_block", NULL };
	static const char *const stop[] = { "ptrace_stop", "ptrace_do_notify", NULL };
	enum sample_where where = (enum sample_where)what->where;
	char buf[32];

	for (unsigned int i = 0; i < what->n; i++) {
		const char *name = function(h, what, i, buf, sizeof(buf));

		if (is_any(name, stop))
			return SAMPLE_STOPPED;
		if (where == SAMPLE_IN_KVM && is_any(name, halt))
			where = SAMPLE_HALTED;
	}
	return where;
}

/* The devices of another VMM are unknown, but the reason why it left KVM is not. */
static bool is_of_exit(const struct sample_host *what)
{
	return what->exit != KVM_EXIT_UNKNOWN && what->exit != KVM_EXIT_INTR;
}

int frame_host_where(struct frame_host *h, struct sink *sink, const struct sample *s,
		     struct stack *stack, struct err *e)
{
	struct sample_host what;
	enum sample_where where;
	uint64_t task;
	int ret = 0;

	if (!h || s->reason != SAMPLE_HOST || !sample_host(s, &what))
		return 0;
	host_switches_drain(h->switches, s->time_ns);
	where = (enum sample_where)what.where;
	if (where == SAMPLE_IN_GUEST)
		return 0;
	if (!h->marks)
		ret = tell_marks(h, sink, e);
	/* The guest's RIP is after the instruction that led here. */
	stack->exact[0] = 1;
	where = refined(h, &what);
	if (where == SAMPLE_IN_VMM && (s->device || is_of_exit(&what))) {
		frame_push(stack, exit_frame(h, &what));
		return ret ? ret : met_tell_sometimes(&h->exits, sink, s->time_ns, e);
	}
	frame_push(stack, where_address(where));
	task = where == SAMPLE_RUNNABLE ? task_frame(h, s, &what) : 0;
	if (!task)
		return ret;
	frame_push(stack, task);
	return ret ? ret : met_tell_sometimes(&h->tasks, sink, s->time_ns, e);
}

static int push_functions(struct frame_host *h, struct sink *sink, const struct sample *s,
			  const struct sample_host *what, struct stack *stack, struct err *e)
{
	/*
	 * The outermost functions that all samples of a kind have: in KVM, in a device, in a
	 * thread. The stack begins inside of these.
	 */
	static const char *const vcpu_entry[] = { "kvm_vcpu_ioctl",   "kvm_arch_vcpu_ioctl_run",
						  "vcpu_handle_exit", "vcpu_run_loop",
						  "vcpu_main",	      NULL };
	static const char *const thread_entry[] = { "thread_main", NULL };
	const char *const *entry = s->reason == SAMPLE_THREAD ? thread_entry : vcpu_entry;
	const char *name;
	unsigned int n;
	char buf[32];
	int ret;

	for (n = 1; n < what->n; n++)
		if (is_any(function(h, what, n, buf, sizeof(buf)), entry))
			break;
	/* The start of a thread in its library. */
	while (n > 1 && !is_kernel(what->ip[n - 2]) &&
	       is_label(function(h, what, n - 1, buf, sizeof(buf))))
		n--;
	while (n--) {
		uint64_t va;

		name = function(h, what, n, buf, sizeof(buf));
		va = name ? met(is_kernel(what->ip[n]) ? &h->host : &h->own, name) : 0;
		/* Consecutive functions of a file without names get one label. */
		if (va && (!is_label(name) || va != stack->ip[0]))
			frame_push(stack, va);
	}
	ret = met_tell_sometimes(&h->own, sink, s->time_ns, e);
	return ret ? ret : met_tell_sometimes(&h->host, sink, s->time_ns, e);
}

int frame_host_functions(struct frame_host *h, struct sink *sink, const struct sample *s,
			 struct stack *stack, struct err *e)
{
	struct sample_host what;

	if (!h || s->reason != SAMPLE_HOST || !sample_host(s, &what) || !what.n)
		return 0;
	return push_functions(h, sink, s, &what, stack, e);
}

int frame_host_thread(struct frame_host *h, struct sink *sink, const struct sample *s,
		      struct stack *stack, struct err *e)
{
	struct sample_host what;
	int ret = 0;

	*stack = (struct stack){ .end = STACK_END_ROOT };
	if (!h || !sample_host(s, &what))
		return 0;
	if (!h->marks)
		ret = tell_marks(h, sink, e);
	frame_push(stack, where_address(SAMPLE_IN_VMM));
	ret = ret || !what.n ? ret : push_functions(h, sink, s, &what, stack, e);
	stack->end = STACK_END_ROOT;
	stack->user_end = 0;
	return ret;
}

int frame_host_finish(struct frame_host *h, struct sink *sink, struct err *e)
{
	int ret = h ? met_tell(&h->host, sink, e) : 0;

	ret = ret || !h ? ret : met_tell(&h->own, sink, e);
	ret = ret || !h ? ret : met_tell(&h->tasks, sink, e);
	return ret || !h ? ret : met_tell(&h->exits, sink, e);
}

static const struct symbol *newest(const struct names_met *m, uint64_t va, uint64_t *off)
{
	return m->ntables ? symtab_lookup(m->table[m->ntables - 1], va, off) : NULL;
}

const struct symbol *frame_host_symbol(const struct frame_host *h, uint64_t va, uint64_t *off)
{
	if (!h || !frame_host_owns(va))
		return NULL;
	if (va >= WHERE_TASK_BASE)
		return newest(&h->tasks, va, off);
	if (va >= WHERE_OWN_BASE)
		return newest(&h->own, va, off);
	if (va >= WHERE_HOST_BASE)
		return newest(&h->host, va, off);
	if (va >= WHERE_EXIT_BASE)
		return newest(&h->exits, va, off);
	return h->marks ? symtab_lookup(h->marks, va, off) : NULL;
}
