/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/panic.h"

#include "base/cleanup.h"
#include "profile/record/run/run.h"
#include "vmm/end.h"
#include "vmm/vm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* vpanic() of kernel/panic.c prints pr_emerg("Kernel panic - not syncing: %s\n", buf). */
static const char words[] = "Kernel panic - not syncing: ";
#define WORDS (sizeof(words) - 1)

#define BEFORE 16384u /* bytes of the log before the reason: an oops with its stack */
#define AFTER 16384u
#define LINE 256u  /* longest line, in bytes */
#define LINES 100u /* most lines in a report */
/* bytes of another process's log that are read at most */
#define REMOTE_LOG_MAX (UINT32_C(16) << 20)
#define PAGE_LEN 4096u
#define SHORTEST 3u /* shortest line, in bytes: fewer may lie between two records */

/*
 * vpanic() prints "---[ end Kernel panic - not syncing: %s ]---" before its endless loop, and only
 * then.
 */
static const char end_words[] = "[ end Kernel panic - not syncing: ";
#define END_WORDS (sizeof(end_words) - 1)

/*
 * Returns the number of matched bytes after `byte`. The first byte of `all` must not occur again in
 * it.
 */
static unsigned int match(unsigned int matched, const char *all, uint8_t byte)
{
	return byte == (uint8_t)all[matched] ? matched + 1 : byte == (uint8_t)all[0];
}

void run_panic_put(void *ctx, uint8_t byte)
{
	struct run_panic_console *c = ctx;

	if (atomic_load_explicit(&c->again, memory_order_relaxed) &&
	    atomic_exchange(&c->again, false)) {
		c->matched = c->end_matched = c->len = 0;
		memset(c->text, 0, sizeof(c->text));
	}
	if (atomic_load_explicit(&c->done, memory_order_relaxed)) {
		if (c->end_matched < END_WORDS)
			c->end_matched = match(c->end_matched, end_words, byte);
		else
			atomic_store(&c->hangs, true);
	} else if (c->matched == WORDS) {
		if (byte == '\n' || byte == '\r' || c->len + 1 == sizeof(c->text))
			atomic_store(&c->done, true);
		else
			c->text[c->len++] = (char)(byte >= ' ' && byte < 0x7f ? byte : '?');
	} else {
		c->matched = match(c->matched, words, byte);
	}
	atomic_fetch_add_explicit(&c->bytes, 1, memory_order_relaxed);
	c->put(c->ctx, byte);
}

/* -- the log in memory ------------------------------------------------------------------------ */

static bool is_text(uint8_t c)
{
	return (c >= ' ' && c < 0x7f) || c == '\t';
}

/* The text in [at, end) of `base`, which lies at a multiple of 8. */
struct panic_window {
	const uint8_t *base;
	size_t len;
};

/*
 * Finds the next line from *at on. Records of the kernel's ring buffer
 * (kernel/printk/printk_ringbuffer.c, struct prb_data_block) are an id of 8 bytes and text, at
 * multiples of 8: the id's first bytes may look like a line's last ones, and its last byte (0x3f in
 * early records) like the first one.
 */
static bool next_line(const struct panic_window *w, size_t *at, size_t *start, size_t *len)
{
	while (*at < w->len) {
		size_t from = *at, to;

		if (!is_text(w->base[from])) {
			++*at;
			continue;
		}
		for (to = from; to < w->len && is_text(w->base[to]);)
			to++;
		*at = to;
		if (w->base[from] == '?' && from && w->base[from - 1] == 0xff)
			from++;
		if (to < w->len && w->base[to] && w->base[to] != '\n' && to % 8 && to % 8 <= 2 &&
		    to - from > to % 8)
			to -= to % 8;
		/*
		 * printk_sprint() moves a text over its level of 2 bytes: its last 2 are there
		 * twice then.
		 */
		if (to < w->len && w->base[to] == '\n' && to - from > 4 &&
		    !memcmp(w->base + to - 4, w->base + to - 2, 2))
			to -= 2;
		if (to - from < SHORTEST)
			continue;
		*start = from;
		*len = to - from < LINE ? to - from : LINE;
		return true;
	}
	return false;
}

static bool line_has(const struct panic_window *w, size_t start, size_t len, const char *text)
{
	return memmem(w->base + start, len, text, strlen(text)) != NULL;
}

/* Returns whether a panic's report begins there: at the report of an oops that led to the panic. */
static bool begins_report(const struct panic_window *w, size_t start, size_t len)
{
	return line_has(w, start, len, "BUG: ") || line_has(w, start, len, "Oops: ") ||
	       line_has(w, start, len, "kernel BUG at") ||
	       line_has(w, start, len, "sysrq: Trigger a crash") ||
	       line_has(w, start, len, "general protection fault") ||
	       line_has(w, start, len, "Call Trace:");
}

static void keep_line(struct summary_panic *out, const struct panic_window *w, size_t start,
		      size_t len)
{
	out->log_has_stack |= line_has(w, start, len, "Call Trace:");
	buf_add(&out->log, w->base + start, len);
	buf_u8(&out->log, '\n');
}

/* Keeps the lines of [at, end) from the first one that begins a report, or from `at` on. */
static void keep_lines(struct summary_panic *out, const struct panic_window *w, size_t at,
		       bool report)
{
	size_t start, len;
	unsigned int n = 0;

	while (n < LINES && next_line(w, &at, &start, &len)) {
		report |= begins_report(w, start, len);
		if (!report)
			continue;
		keep_line(out, w, start, len);
		n++;
		if (line_has(w, start, len, "---[ end Kernel panic") ||
		    line_has(w, start, len, "Rebooting in "))
			break;
	}
}

/* Reads the line with the reason at `pos`, and the log around it. */
static void read_log(struct summary_panic *out, const uint8_t *base, size_t size, size_t pos)
{
	size_t from = pos > BEFORE ? (pos - BEFORE) & ~(size_t)7 : 0;
	struct panic_window w = { base + (pos & ~(size_t)7), 0 };
	size_t start, len, at = pos & 7;

	w.len = size - (pos & ~(size_t)7) < AFTER ? size - (pos & ~(size_t)7) : AFTER;
	if (!next_line(&w, &at, &start, &len) || len <= WORDS)
		return;
	snprintf(out->text, sizeof(out->text), "%.*s", (int)(len - WORDS),
		 (const char *)w.base + start + WORDS);
	out->log.len = 0;
	out->log_has_stack = false;
	keep_lines(out, &w, pos & 7, true);
	if (out->log_has_stack)
		return;
	/* panic() after an oops does not repeat the oops's stack. */
	w = (struct panic_window){ base + from, pos - from };
	out->log.len = 0;
	keep_lines(out, &w, 0, false);
	if (out->log_has_stack)
		return;
	out->log.len = 0;
}

/* Returns whether a record of the log with a panic's reason was found in these bytes. */
static bool search(struct summary_panic *out, const uint8_t *base, size_t size)
{
	const uint8_t *at = base;

	while ((at = memmem(at, size - (size_t)(at - base), words, WORDS))) {
		size_t pos = (size_t)(at - base), rest = size - pos - WORDS;
		/*
		 * These are not records: the format string itself, the last line, and lines with a
		 * time, which are copies for the console.
		 */
		bool format = !rest || at[WORDS] == '%' || !is_text(at[WORDS]),
		     end = pos >= 4 && !memcmp(at - 4, "end ", 4), copy = pos && at[-1] == ' ';

		if (!format && !end && !copy) {
			read_log(out, base, size, pos);
			if (*out->text)
				return true;
		}
		at += WORDS;
	}
	return false;
}

/* -- the search at the end --------------------------------------------------------------------- */

/* Finds the guest-physical address of a variable of the kernel; false if its place is not known. */
static bool locate(const struct target *t, const char *name, uint64_t *gpa)
{
	const struct symbol *s = t->symbols ? symtab_find(t->symbols, name) : NULL;
	uint64_t va = s ? s->addr - t->slide : 0;

	for (unsigned int i = 0; s && i < t->kernel.nseg; i++) {
		const struct kimage_segment *g = &t->kernel.seg[i];

		if (va < g->va || va - g->va >= g->mem_len)
			continue;
		*gpa = g->pa + t->pa_slide + (va - g->va);
		return true;
	}
	return false;
}

/* Finds the kernel's variables where the image has them, for panic_watch_read(). */
static void panic_locate(const struct target *t, struct panic_watch *w)
{
	uint64_t gpa;

	*w = (struct panic_watch){ 0 };
	if (locate(t, "panic_timeout", &gpa))
		w->timeout = gpa;
	if (locate(t, "kexec_crash_image", &gpa))
		w->image = gpa;
	if (locate(t, "linux_banner", &gpa))
		w->banner = gpa;
	if (w->banner && locate(t, "panic_cpu", &gpa))
		w->cpu = gpa;
}

/*
 * Reads the log of another process's machine through the kernel's variables log_buf and
 * log_buf_len, page by page, as far as the process still has it.
 */
static bool search_remote(const struct run_panic_places *from, struct summary_panic *out)
{
	cleanup_free uint8_t *copy = NULL;
	uint64_t gpa, va;
	uint32_t len;

	if (!guest_variable(from->guest, "log_buf", &gpa) ||
	    gmem_read(from->mem, gpa, &va, sizeof(va)) < 0 ||
	    !guest_variable(from->guest, "log_buf_len", &gpa) ||
	    gmem_read(from->mem, gpa, &len, sizeof(len)) < 0 || va % 8 || len > REMOTE_LOG_MAX)
		return false;
	copy = calloc(1, len + 1);
	for (uint32_t at = 0, n; copy && at < len; at += n) {
		n = PAGE_LEN - (uint32_t)((va + at) % PAGE_LEN);
		n = n < len - at ? n : len - at;
		if (guest_address(from->guest, va + at, &gpa))
			(void)gmem_read(from->mem, gpa, copy + at, n);
	}
	return copy && search(out, copy, len);
}

/* Returns whether a sample of this kernel was taken in panic(). live may be NULL. */
static bool was_sampled(const struct panic_watch *w, const struct run_panic_live *live)
{
	return atomic_load(&w->sampled_ns) > (live ? live->since_ns : 0);
}

static void find_remote(const struct run_panic_places *from, struct summary_panic *out)
{
	out->seen = from->watch &&
		    (atomic_load(&from->watch->seen) || was_sampled(from->watch, from->live));
	if (out->seen && !from->mem->is_virtual)
		(void)search_remote(from, out);
}

void run_panic_find(const struct run_panic_places *from, struct summary_panic *out)
{
	const struct target *t = from->target;
	const struct gmem *mem = from->mem;
	bool told = from->console->len > 0 && !atomic_load(&from->console->again);
	bool in_log = false, placed;
	struct panic_state state = { 0 };
	struct panic_watch own;

	*out = (struct summary_panic){ 0 };
	buf_init(&out->log);
	if (from->live) {
		out->before = from->live->before;
		memcpy(out->before_text, from->live->before_text, sizeof(out->before_text));
	}
	if (!t->is_linux && !t->osrelease[0])
		return;
	if (mem->remote) {
		find_remote(from, out);
		return;
	}
	if (from->watch)
		state = panic_watch_read(from->watch, mem);
	told |= from->watch && was_sampled(from->watch, from->live);
	panic_locate(t, &own);
	if (!state.known)
		state = panic_watch_read(&own, mem);
	/* A program may write such a line to the console. */
	if (state.known && !state.panicked)
		return;
	/*
	 * A kernel whose banner is not where its image has it was moved: other bytes are at its
	 * variables' addresses.
	 */
	placed = state.known || told || !own.banner;
	/* The log's first buffer is a variable of the kernel. */
	for (unsigned int i = 0; placed && i < t->kernel.nseg && !in_log; i++) {
		const struct kimage_segment *g = &t->kernel.seg[i];
		const uint8_t *p = gmem_ptr(mem, g->pa + t->pa_slide, g->mem_len);

		in_log = p && search(out, p, g->mem_len);
	}
	out->seen = state.known || in_log || told;
	/* A larger buffer (log_buf_len=) may lie anywhere in memory. */
	for (unsigned int i = 0; out->seen && i < mem->n && !in_log; i++)
		in_log = search(out, mem->region[i].host, mem->region[i].size);
	if (out->seen && !*out->text)
		snprintf(out->text, sizeof(out->text), "%s", from->console->text);
}

bool run_panic_is_on(const struct target *t, const struct stack *stack)
{
	uint64_t off;

	for (unsigned int i = 0; t->symbols && i < stack->n; i++) {
		const struct symbol *s = symtab_lookup(
			t->symbols, stack->exact[i] ? stack->ip[i] : stack->ip[i] - 1, &off);

		if (s && (!strcmp(s->name, "panic") || !strcmp(s->name, "vpanic")))
			return true;
	}
	return false;
}

/* -- while the guest runs ---------------------------------------------------------------------- */

/*
 * A guest that reboots or boots a crash kernel is left the time for that; the run of one that only
 * hangs is ended.
 */

/*
 * How long panic_cpu must be set before it counts: an oops of a kernel with kexec sets it for a
 * moment.
 */
#define SURE_NS 100000000u
/* How long samples of the loop are still taken after the panic's last line. */
#define AFTER_LAST_LINE_NS 1000000000u
/*
 * The time without console output after which a kernel without that line (no serial console) counts
 * as hung.
 */
#define AFTER_QUIET_NS 5000000000u

/* Returns whether there is evidence of a panic by now. */
static bool is_panic(struct run_panic_live *l, const struct run_panic_console *c,
		     const struct panic_watch *w, uint64_t now)
{
	if (!l->state.panicked)
		l->once_ns = 0;
	else if (!l->once_ns)
		l->once_ns = now;
	/* A program may write such a line to the console. */
	if (l->state.known)
		return l->state.panicked && (atomic_load(&c->done) || now - l->once_ns >= SURE_NS);
	return atomic_load(&c->done) || (w && (atomic_load(&w->seen) || was_sampled(w, l)));
}

static bool is_hung(const struct run *r, uint64_t now)
{
	const struct run_panic_live *l = &r->panic.live;
	uint64_t since = l->quiet_ns > l->noticed_ns ? l->quiet_ns : l->noticed_ns;

	/* That line may be from an old log that a program wrote to the console before the panic. */
	if (atomic_load(&r->panic.console.hangs) &&
	    !(l->state.known && (l->state.crash_kernel || l->state.timeout)))
		return now - since >= AFTER_LAST_LINE_NS;
	/*
	 * The moment when memory was first known depends on the host's time, on which an exact run
	 * must not depend.
	 */
	return r->opt->engine == RUN_ENGINE_KVM && l->state.have_timeout && !l->state.timeout &&
	       !l->state.crash_kernel && now - since >= AFTER_QUIET_NS;
}

static struct panic_state read_state(struct run *r, const struct panic_watch *w)
{
	struct run_panic_live *l = &r->panic.live;
	const struct gmem *mem = vm_memory(r->vm);

	if (mem->remote)
		return (struct panic_state){ 0 };
	if (!w && !l->located) {
		panic_locate(&r->source.target, &l->own);
		l->located = true;
	}
	return panic_watch_read(w ? w : &l->own, mem);
}

/*
 * Returns whether the kernel's variables, which may have been found only after the console's words,
 * show that there is no panic. The moment when they are found depends on the host's time, on which
 * an exact run must not depend.
 */
static bool is_refuted(struct run *r, const struct panic_watch *w)
{
	const struct panic_state s =
		r->opt->engine == RUN_ENGINE_KVM ? read_state(r, w) : (struct panic_state){ 0 };

	return s.known && !s.panicked;
}

/* Begins again for another kernel, and counts a panic of the one before it. */
static void panic_next_kernel(struct run_panic_live *l, struct run_panic_console *c)
{
	if (atomic_load(&l->noticed)) {
		l->before++;
		snprintf(l->before_text, sizeof(l->before_text), "%s",
			 atomic_load(&c->done) ? c->text : "");
	}
	l->state = (struct panic_state){ 0 };
	l->noticed_ns = l->once_ns = 0;
	l->told = false;
	atomic_store(&c->again, true);
	atomic_store(&c->done, false);
	atomic_store(&c->hangs, false);
	atomic_store(&l->noticed, false);
}

void run_panic_boot_again(struct run *r, uint64_t now_ns)
{
	panic_next_kernel(&r->panic.live, &r->panic.console);
	r->panic.live.since_ns = now_ns;
}

void run_panic_check(struct run *r, uint64_t now_ns)
{
	struct run_panic_live *l = &r->panic.live;
	const struct panic_watch *w = r->pipeline ? pipeline_panic(r->pipeline) : NULL;
	unsigned int bytes = atomic_load(&r->panic.console.bytes);
	unsigned int kernels = w ? atomic_load(&w->kernels) : 0;

	/*
	 * The moment when the consumer finds it depends on the host's time, on which an exact run
	 * must not depend.
	 */
	if (kernels != l->kernels && r->opt->engine == RUN_ENGINE_KVM)
		panic_next_kernel(l, &r->panic.console);
	l->kernels = kernels;
	if (bytes != l->bytes)
		l->quiet_ns = now_ns;
	l->bytes = bytes;
	if (!atomic_load(&l->noticed)) {
		l->state = read_state(r, w);
		if (!is_panic(l, &r->panic.console, w, now_ns))
			return;
		l->noticed_ns = now_ns;
		atomic_store(&l->noticed, true);
	}
	if (!run_options_is_attached(r->opt) && is_hung(r, now_ns) && !is_refuted(r, w))
		vm_end(r->vm, VM_END_PANIC);
}

void run_panic_report(struct run *r)
{
	const struct panic_state *s = &r->panic.live.state;
	char then[80] = "";

	/* A guest that reboots immediately ends by itself. */
	if (r->panic.live.told || !atomic_load(&r->panic.live.noticed) ||
	    (s->have_timeout && s->timeout < 0 && !s->crash_kernel))
		return;
	r->panic.live.told = true;
	if (s->crash_kernel)
		snprintf(then, sizeof(then), ", and boots its crash kernel");
	else if (s->have_timeout && s->timeout)
		snprintf(then, sizeof(then), ", and reboots in %d s", s->timeout);
	else if (s->have_timeout)
		snprintf(then, sizeof(then), ", after which it hangs: the run ends shortly");
	console_hide_status(&r->console);
	reporter_printf(r->opt->reporter, "kvmprof: %sthe guest's kernel is in a panic%s\n",
			run_options_is_attached(r->opt) ? "warning: " : "", then);
}
