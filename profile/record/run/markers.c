/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/markers.h"

#include "profile/record/run/place.h"
#include "vmm/config.h"
#include "vmm/vm.h"
#include "vmm/control.h"
#include "vmm/quirks.h"
#include "vmm/end.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* An unfinished line is examined when no byte has come for this time. */
#define QUIET_NS 20000000u

bool run_has_markers(const struct run_options *o)
{
	return o->start_on || o->stop_on || o->start_at || o->stop_at || o->nmark_on ||
	       o->nmark_at || o->delay_s > 0 || o->control || o->snapshot.save;
}

/* Returns whether the run begins without collecting. */
static bool begins_idle(const struct run_options *o)
{
	return o->start_on || o->start_at || o->delay_s > 0;
}

int run_markers_init(struct run_markers *m, const struct run_options *o, struct console *c,
		     struct err *e)
{
	int ret = 0;

	m->opt = o;
	m->console = c;
	markers_init(&m->list);
	m->have_list = true;
	m->begun = !o->start_on && !o->start_at;
	m->collecting = !begins_idle(o);
	if (o->start_on)
		ret = console_marks_add(&m->marks, MARKER_START, o->start_on, e);
	if (!ret && o->stop_on)
		ret = console_marks_add(&m->marks, MARKER_STOP, o->stop_on, e);
	if (!ret && o->snapshot.on)
		ret = console_marks_add(&m->marks, MARKER_SNAPSHOT, o->snapshot.on, e);
	for (unsigned int i = 0; !ret && i < o->nmark_on; i++)
		ret = console_marks_add(&m->marks, MARKER_CONSOLE, o->mark_on[i], e);
	if (ret)
		return ret;
	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->wake_fd < 0)
		return err_set(e, errno, "eventfd: %s", strerror(errno));
	if (m->marks.n)
		console_watch(c, m->wake_fd);
	return 0;
}

void run_markers_deinit(struct run_markers *m)
{
	if (m->have_list)
		markers_deinit(&m->list);
	console_marks_deinit(&m->marks);
	buf_deinit(&m->taken.bytes);
	buf_deinit(&m->taken.times);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
}

/* -- breakpoints --------------------------------------------------------------------- */

/* A breakpoint that the user requested. */
struct stop_at {
	const char *text; /* a PLACE, see profile/record/run/place.h */
	enum marker_kind kind;
	enum vm_breakpoint_action action;
};

static bool is_program(const struct target *t, uint64_t addr)
{
	return t->is_linux ? !(addr >> 63) : addr >= t->user_start && addr < t->user_end;
}

/*
 * Adds one breakpoint for each address of the place. An action that happens once happens at the
 * first one reached.
 */
static int add_breakpoints(const struct target *t, const struct stop_at *at, struct vm_config *cfg,
			   struct pipeline_options *opt, struct err *e)
{
	bool once = at->kind != MARKER_BREAKPOINT;
	struct run_place where;
	int ret = run_place_find(t, at->text, &where, e);

	for (unsigned int k = 0; !ret && k < where.n; k++) {
		unsigned int i = cfg->nbreakpoints;

		if (i == VM_MAX_BREAKPOINTS)
			return err_set(e, EINVAL,
				       "'%.200s': more than %u of --start-at, --stop-at, "
				       "--snapshot-at and --mark-at: a processor has no more debug "
				       "registers",
				       at->text, VM_MAX_BREAKPOINTS);
		/* Measured on such hosts: the debug registers are not loaded for a program. */
		if (cfg->quirks->interpreted && is_program(t, where.addr[k]))
			return err_set(e, ENOTSUP,
				       "'%s' is in a program, and this host's KVM stops only "
				       "kernels at breakpoints",
				       at->text);
		cfg->breakpoint[i] = (struct vm_breakpoint){
			.addr = where.addr[k],
			.action = at->action,
			.once = once,
			.with = once && k,
		};
		opt->breakpoint_name[i] = at->text;
		opt->breakpoint_kind[i] = at->kind;
		cfg->nbreakpoints++;
	}
	return ret;
}

static void markers_wake(void *ctx, unsigned int breakpoint)
{
	const struct run_markers *m = ctx;
	uint64_t one = 1;

	(void)breakpoint;
	(void)!write(m->wake_fd, &one, sizeof(one));
}

int run_markers_configure(struct run_markers *m, const struct target *t, struct vm_config *cfg,
			  struct pipeline_options *opt, struct err *e)
{
	const struct run_options *o = m->opt;
	const struct stop_at start = { o->start_at, MARKER_START,
				       o->delay_s > 0 ? VM_BREAKPOINT_MARK : VM_BREAKPOINT_START };
	const struct stop_at stop = { o->stop_at, MARKER_STOP, VM_BREAKPOINT_STOP };
	const struct stop_at snapshot = { o->snapshot.at, MARKER_SNAPSHOT, VM_BREAKPOINT_PAUSE };
	int ret = 0;

	cfg->idle_start = begins_idle(o);
	cfg->reached = markers_wake;
	cfg->reached_ctx = m;
	opt->markers = &m->list;
	opt->max_samples = o->max_samples;
	/* It must be the first one, see start_reached(). */
	if (o->start_at)
		ret = add_breakpoints(t, &start, cfg, opt, e);
	if (!ret && o->stop_at)
		ret = add_breakpoints(t, &stop, cfg, opt, e);
	if (!ret && o->snapshot.at) {
		m->snapshot_at = cfg->nbreakpoints + 1;
		ret = add_breakpoints(t, &snapshot, cfg, opt, e);
	}
	for (unsigned int i = 0; !ret && i < o->nmark_at; i++) {
		struct stop_at mark = { o->mark_at[i], MARKER_BREAKPOINT, VM_BREAKPOINT_MARK };

		ret = add_breakpoints(t, &mark, cfg, opt, e);
	}
	cfg->look_for_kernel = cfg->nbreakpoints && cfg->plan.slide_unknown;
	return ret;
}

/* -- while the machine runs ---------------------------------------------------------- */

static void found(void *ctx, const struct console_mark *mark, const char *name, size_t len,
		  uint64_t time_ns)
{
	struct run_markers *m = ctx;

	if (mark->kind == MARKER_START) {
		if (m->begun)
			return;
		m->begun = true;
		m->begin_ns = time_ns;
		if (m->vm && !(m->opt->delay_s > 0)) {
			vm_collect(m->vm, true);
			m->collecting = true;
			m->collect_ns = time_ns;
		}
	} else if (mark->kind == MARKER_SNAPSHOT) {
		if (m->snapshot_due)
			return;
		m->snapshot_due = true;
	} else if (mark->kind == MARKER_STOP) {
		/* The line that started collecting does not also stop it. */
		if (!m->collecting || m->stopped || time_ns == m->begin_ns)
			return;
		m->stopped = true;
		if (m->vm) {
			vm_collect(m->vm, false);
			vm_end(m->vm, VM_END_MARKER);
		}
	}
	markers_add(&m->list, mark->kind, name, len, time_ns, 0);
}

static void look_at_console(struct run_markers *m, uint64_t now)
{
	struct console_bytes *c = &m->taken;
	size_t line = 0;

	if (!m->marks.n)
		return;
	console_take(m->console, c);
	for (size_t i = 0; i < c->bytes.len; i++) {
		uint8_t byte = c->bytes.data[i];
		uint64_t time_ns = c->last_ns;

		if ((byte == '\n' || byte == '\r') && line + sizeof(time_ns) <= c->times.len) {
			memcpy(&time_ns, c->times.data + line, sizeof(time_ns));
			line += sizeof(time_ns);
		}
		console_marks_put(&m->marks, byte, time_ns, found, m);
	}
	if (now >= c->last_ns + QUIET_NS)
		console_marks_flush(&m->marks, c->last_ns, found, m);
}

/*
 * Notes that the breakpoint of --start-at was reached: the vCPU that reached it has begun to
 * collect by itself.
 */
static void start_reached(struct run_markers *m, const struct vm *vm)
{
	uint64_t at = m->opt->start_at ? vm_reached_ns(vm, 0) : 0;

	if (m->begun || !at)
		return;
	m->begun = true;
	m->begin_ns = at;
	if (!(m->opt->delay_s > 0)) {
		m->collecting = true;
		m->collect_ns = at;
	}
}

/* Returns when the delay is over; UINT64_MAX: not known yet. */
static uint64_t delay_end(const struct run_markers *m, const struct vm *vm)
{
	uint64_t from = m->begin_ns ? m->begin_ns : vm_first_entry_ns(vm);

	return m->begun && from ? from + (uint64_t)(m->opt->delay_s * 1e9) : UINT64_MAX;
}

bool run_markers_snapshot_due(const struct run_markers *m, const struct vm *vm)
{
	return m->snapshot_due || (m->snapshot_at && vm_reached_ns(vm, m->snapshot_at - 1));
}

uint64_t run_markers_collect_ns(const struct run_markers *m, const struct vm *vm)
{
	if (!m->collecting)
		return 0;
	return m->collect_ns ? m->collect_ns : vm_first_entry_ns(vm);
}

/*
 * Returns when --duration begins to count. `from` is the time of the first sample; 0: there is none
 * yet.
 */
static uint64_t duration_from(const struct run_markers *m, uint64_t from, uint64_t now)
{
	const uint64_t latest = from + MARKERS_NAMES_NS;
	const uint64_t named = m->named_ns ? m->named_ns : now;

	if (!from || !run_options_is_attached(m->opt) || m->opt->gdb || named < from)
		return from;
	return named < latest ? named : latest;
}

uint64_t run_markers_handle(struct run_markers *m, struct vm *vm, uint64_t now)
{
	static const char name[] = "delay";
	uint64_t count, due;

	m->vm = vm;
	(void)!read(m->wake_fd, &count, sizeof(count));
	look_at_console(m, now);
	start_reached(m, vm);
	/* Collecting was switched on by a request. */
	if (!m->collecting && vm_is_collecting(vm)) {
		m->collecting = true;
		m->collect_ns = now;
	}
	if (!m->collecting) {
		due = delay_end(m, vm);
		if (now < due)
			return due;
		vm_collect(vm, true);
		m->collecting = true;
		m->collect_ns = now;
		markers_add(&m->list, MARKER_DELAY, name, strlen(name), now, 0);
	}
	count = duration_from(m, run_markers_collect_ns(m, vm), now);
	due = count && m->opt->duration_s > 0 ? count + (uint64_t)(m->opt->duration_s * 1e9)
					      : UINT64_MAX;
	if (now >= due)
		vm_end(vm, VM_END_DURATION);
	return due;
}

void run_markers_finish(struct run_markers *m, const struct vm *vm)
{
	m->vm = NULL;
	start_reached(m, vm);
	look_at_console(m, UINT64_MAX);
}

/* -- afterwards ---------------------------------------------------------------------- */

int run_markers_verdict(const struct run_markers *m, const struct vm *vm, struct err *note)
{
	const struct run_options *o = m->opt;

	if (m->console->missed)
		err_set(note, EOVERFLOW,
			"%" PRIu64 " bytes of the console came too fast and were not searched",
			m->console->missed);
	if (m->collecting) {
		if (vm_result(vm)->reason != VM_END_MARKER && (o->stop_on || o->stop_at))
			err_set(note, ENODATA, "%s '%s' was never seen",
				o->stop_on ? "--stop-on" : "--stop-at",
				o->stop_on ? o->stop_on : o->stop_at);
		return 0;
	}
	if (m->begun)
		return err_set(note, ENODATA,
			       "no samples: the guest ended before %s%g s of --delay were over",
			       o->start_on || o->start_at ? "the start marker's " : "the ",
			       o->delay_s);
	if (o->start_on && o->start_at)
		return err_set(note, ENODATA,
			       "no samples: neither --start-on '%s' nor --start-at '%s' came",
			       o->start_on, o->start_at);
	if (o->start_on)
		return err_set(note, ENODATA,
			       "no samples: --start-on '%s' matched nothing in %" PRIu64
			       " bytes of the console",
			       o->start_on, m->marks.bytes);
	return err_set(
		note, ENODATA, "no samples: --start-at '%s' was never reached%s", o->start_at,
		m->late ? "; before it is known where the kernel lies nothing can be watched" : "");
}
