/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/markers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* An unfinished line is looked at when no byte has come for so long. */
#define QUIET_NS 20000000u

bool run_has_markers(const struct run_options *o)
{
	return o->start_on || o->stop_on || o->start_at || o->stop_at || o->nmark_on ||
	       o->nmark_at || o->delay_s > 0 || o->control || o->snapshot.save;
}

bool run_begins_idle(const struct run_options *o)
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
	m->collecting = !run_begins_idle(o);
	m->pipeline.markers = &m->list;
	m->pipeline.max_samples = o->max_samples;
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

/* The one function of this name. */
static int find_symbol(const struct target *t, const char *name, const struct symbol **out,
		       struct err *e)
{
	const struct symbol *found = t->symbols ? symtab_find(t->symbols, name) : NULL;

	if (t->live)
		return err_set(e, EINVAL,
			       "%s: with --symbols live names are known too late for a breakpoint; "
			       "give the image's own symbols, or an address",
			       name);
	if (!t->symbols)
		return err_set(e, ENOENT,
			       "%s: %s has no symbols; give --symbols FILE, or an address", name,
			       t->name);
	if (!found)
		return err_set(e, ENOENT, "%s has no symbol '%s'; see `kvmprof symbols`", t->name,
			       name);
	for (size_t i = 0; i < symtab_count(t->symbols); i++) {
		const struct symbol *s = symtab_at(t->symbols, i);

		if (s->addr != found->addr && !strcmp(s->name, name))
			return err_set(e, EINVAL,
				       "'%s' is several functions, at 0x%" PRIx64 ", 0x%" PRIx64
				       " and maybe more: give an address",
				       name, found->addr, s->addr);
	}
	*out = found;
	return 0;
}

/* SYMBOL[+OFFSET] or 0xADDRESS, as linked. */
static int find_place(const struct target *t, const char *text, uint64_t *addr, struct err *e)
{
	const char *plus = strrchr(text, '+');
	const struct symbol *s = NULL;
	char name[SYMTAB_MAX_NAME];
	uint64_t off = 0;
	char *end = NULL;
	int ret;

	errno = 0;
	if (!strncmp(text, "0x", 2)) {
		*addr = strtoull(text, &end, 16);
		return errno || *end || !*addr ? err_set(e, EINVAL, "bad address '%s'", text) : 0;
	}
	if (plus) {
		off = strtoull(plus + 1, &end, 0);
		if (errno || *end || plus[1] < '0' || plus[1] > '9')
			return err_set(e, EINVAL, "bad offset in '%s' (like vfs_read+0x10)", text);
	} else {
		plus = text + strlen(text);
	}
	if (plus == text || (size_t)(plus - text) >= sizeof(name))
		return err_set(e, EINVAL, "bad symbol '%.60s'", text);
	memcpy(name, text, (size_t)(plus - text));
	name[plus - text] = '\0';
	ret = find_symbol(t, name, &s, e);
	if (ret)
		return ret;
	if (off && off >= s->size)
		return err_set(e, EINVAL, "'%s' has %" PRIu64 " bytes: no offset of %" PRIu64, name,
			       s->size, off);
	*addr = s->addr + off;
	return 0;
}

static bool is_program(const struct target *t, uint64_t addr)
{
	return t->image.is_linux ? !(addr >> 63) : addr >= t->user_start && addr < t->user_end;
}

/* What the user asked for. */
struct stop_at {
	const char *text; /* where */
	enum marker_kind kind;
	enum vm_breakpoint_action action;
};

static int add_breakpoint(struct run_markers *m, const struct target *t, struct vm_config *cfg,
			  const struct stop_at *at, struct err *e)
{
	struct vm_breakpoint b = { .action = at->action, .once = at->kind != MARKER_BREAKPOINT };
	unsigned int i = cfg->nbreakpoints;
	int ret;

	if (i == VM_MAX_BREAKPOINTS)
		return err_set(e, EINVAL,
			       "'%s': more than %u of --start-at, --stop-at, --snapshot-at and "
			       "--mark-at: a processor has no more debug registers",
			       at->text, VM_MAX_BREAKPOINTS);
	ret = find_place(t, at->text, &b.addr, e);
	if (ret)
		return ret;
	/* Measured on such hosts: the debug registers are not loaded for a program. */
	if (cfg->quirks->interpreted && is_program(t, b.addr))
		return err_set(e, ENOTSUP,
			       "'%s' is in a program, and this host's KVM stops only kernels at "
			       "breakpoints",
			       at->text);
	cfg->breakpoint[i] = b;
	m->pipeline.breakpoint_name[i] = at->text;
	m->pipeline.breakpoint_kind[i] = at->kind;
	cfg->nbreakpoints++;
	return 0;
}

static void markers_wake(void *ctx, unsigned int breakpoint)
{
	const struct run_markers *m = ctx;
	uint64_t one = 1;

	(void)breakpoint;
	(void)!write(m->wake_fd, &one, sizeof(one));
}

int run_markers_configure(struct run_markers *m, const struct target *t, struct vm_config *cfg,
			  struct err *e)
{
	const struct run_options *o = m->opt;
	const struct stop_at start = { o->start_at, MARKER_START,
				       o->delay_s > 0 ? VM_BREAKPOINT_MARK : VM_BREAKPOINT_START };
	const struct stop_at stop = { o->stop_at, MARKER_STOP, VM_BREAKPOINT_STOP };
	const struct stop_at snapshot = { o->snapshot.at, MARKER_SNAPSHOT, VM_BREAKPOINT_PAUSE };
	int ret = 0;

	cfg->idle_start = run_begins_idle(o);
	cfg->reached = markers_wake;
	cfg->reached_ctx = m;
	/* The first one, see start_reached(). */
	if (o->start_at)
		ret = add_breakpoint(m, t, cfg, &start, e);
	if (!ret && o->stop_at)
		ret = add_breakpoint(m, t, cfg, &stop, e);
	if (!ret && o->snapshot.at) {
		ret = add_breakpoint(m, t, cfg, &snapshot, e);
		m->snapshot_at = cfg->nbreakpoints;
	}
	for (unsigned int i = 0; !ret && i < o->nmark_at; i++)
		ret = add_breakpoint(m, t, cfg,
				     &(struct stop_at){ o->mark_at[i], MARKER_BREAKPOINT,
							VM_BREAKPOINT_MARK },
				     e);
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
		/* Not on the very line that has started it. */
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
		console_marks_quiet(&m->marks, c->last_ns, found, m);
}

/* The breakpoint of --start-at: the vCPU that came there has begun by itself. */
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

/* When the delay is over; UINT64_MAX: nobody knows yet. */
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

uint64_t run_markers_look(struct run_markers *m, struct vm *vm, uint64_t now)
{
	static const char name[] = "delay";
	uint64_t count, due;

	m->vm = vm;
	(void)!read(m->wake_fd, &count, sizeof(count));
	look_at_console(m, now);
	start_reached(m, vm);
	/* Somebody else has begun it. */
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
	count = run_markers_collect_ns(m, vm);
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
			"%" PRIu64 " bytes of the console came too fast to be looked through",
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
