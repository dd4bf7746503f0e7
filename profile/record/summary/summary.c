/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/summary.h"

#include "base/clock.h"
#include "base/json.h"
#include "profile/record/host/frame_vmm.h"
#include "profile/record/summary/attach.h"
#include "profile/record/summary/events.h"
#include "profile/record/summary/exact.h"
#include "profile/record/summary/disks.h"
#include "profile/record/summary/net.h"
#include "profile/record/summary/guest.h"
#include "profile/record/summary/tasks.h"
#include "profile/record/summary/where.h"
#include "vmm/exact/exact.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Sums over all vCPUs. */
struct totals {
	struct vcpu_stats v;
	uint64_t exits;
};

static void add_up(const struct summary *s, struct totals *t)
{
	memset(t, 0, sizeof(*t));
	for (unsigned int i = 0; i < vm_vcpus(s->vm); i++) {
		const struct vcpu_stats v = vm_stats(s->vm, i);

		for (unsigned int k = 0; k < VCPU_EXIT_KINDS; k++) {
			t->v.exits[k] += v.exits[k];
			t->exits += v.exits[k];
		}
		t->v.samples += v.samples;
		t->v.offline += v.offline;
		t->v.uncollected += v.uncollected;
		for (unsigned int k = 0; k < VM_MAX_BREAKPOINTS; k++)
			t->v.breakpoints[k] += v.breakpoints[k];
		t->v.debug_returned += v.debug_returned;
		t->v.overruns += v.overruns;
		t->v.stack_capped += v.stack_capped;
		t->v.stack_unmapped += v.stack_unmapped;
		t->v.stack_none += v.stack_none;
		t->v.syscalls_assisted += v.syscalls_assisted;
		t->v.syscalls_undone += v.syscalls_undone;
		t->v.faults_forwarded += v.faults_forwarded;
		t->v.insns_completed += v.insns_completed;
		t->v.unknown_io += v.unknown_io;
		t->v.unknown_mmio += v.unknown_mmio;
		hist_merge(&t->v.stop_ns, &v.stop_ns);
		hist_merge(&t->v.latency_ns, &v.latency_ns);
	}
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static double summary_us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static double run_seconds(const struct summary *s)
{
	uint64_t first = vm_first_entry_ns(s->vm), end = vm_result(s->vm)->end_ns;

	/* A snapshot of a run that goes on. */
	if (!end)
		end = vm_now_ns(s->vm);
	return first && end > first ? (double)(end - first) / 1e9 : 0;
}

/* The part of the timer's periods that were missed; 0 where it is not known. */
static double missed_share(const struct summary *s, const struct totals *t)
{
	uint64_t all = t->v.samples + t->v.overruns;

	return all && summary_events_are_timers(s->events) ? (double)t->v.overruns / (double)all
							   : 0;
}

static void print_missed(const struct summary *s, const struct totals *t, FILE *out)
{
	double share = missed_share(s, t);

	if (share > SUMMARY_MISSED_MUCH)
		fprintf(out,
			"kvmprof: warning: %.0f %% of the timer's periods were missed, by a busy "
			"host or a high rate: a sample stands for %.0f periods on average, and "
			"shares rest on few samples\n",
			100 * share, 1 / (1 - share));
}

static void print_ends(const char *what, const uint64_t *end, FILE *out)
{
	const char *sep = "";

	fprintf(out, "kvmprof: %s: ", what);
	for (unsigned int i = 1; i < STACK_END_COUNT; i++) {
		if (!end[i])
			continue;
		fprintf(out, "%s%" PRIu64 " %s", sep, end[i], stack_end_name((enum stack_end)i));
		sep = ", ";
	}
}

/* In percent. */
static double whole_share(const uint64_t *end)
{
	uint64_t whole = end[STACK_END_ROOT] + end[STACK_END_USER] + end[STACK_END_START], all = 0;

	for (unsigned int i = 0; i < STACK_END_COUNT; i++)
		all += end[i];
	return all ? 100.0 * (double)whole / (double)all : 0;
}

/* Then names were given up, and guest.c says why. */
static bool slide_is_missing(const struct summary *s)
{
	const struct guest_stats *g = &s->stats->guest;

	return g->moves && g->slide.status != KSLIDE_SOLVED;
}

/* All that is needed for names of the kernel, so that one try is enough. */
static const char *names_needed(const struct run_options *o)
{
	if (run_is_attached(o) && !o->image)
		return "--image FILE (this very kernel as an ELF file with symbols: vmlinux), or "
		       "--image FILE (without) and --symbols FILE (its System.map)";
	return "--symbols FILE (vmlinux or System.map of this very kernel)";
}

static void print_stacks(const struct summary *s, const struct totals *t, FILE *out)
{
	const struct pipeline_stats *p = s->stats;

	if (p->frames) { /* not of exact counts: nothing was unwound */
		print_ends("kernel stacks", p->kernel_end, out);
		fprintf(out, "; %.1f frames on average\n", (double)p->frames / (double)p->samples);
	}
	if (p->user_frames) {
		print_ends("user stacks", p->user_end, out);
		fprintf(out, "; %.1f %% whole\n", whole_share(p->user_end));
	}
	if (t->v.stack_unmapped || t->v.stack_none)
		fprintf(out,
			"kvmprof: stack copies cut: %" PRIu64 " at an unmapped page, %" PRIu64
			" unreadable\n",
			t->v.stack_unmapped, t->v.stack_none);
	if (p->kernel_end[STACK_END_NO_FP] && !s->target->symbols)
		fputs("kvmprof: note: code without frame pointers or ORC tables has its innermost "
		      "frame only\n",
		      out);
	else if (!s->target->orc && !s->target->frame_pointers && s->target->symbols)
		fputs("kvmprof: note: without ORC tables or frame pointers callers are searched "
		      "for "
		      "on the stack: some may be missing\n",
		      out);
	if (s->target->orc_note.code)
		fprintf(out, "kvmprof: note: no unwinding by the kernel's ORC tables: %s\n",
			s->target->orc_note.text);
	if (!s->target->symbols && s->target->live && !s->target->symbol_note.code)
		fputs("kvmprof: note: no kernel names: the run ended before the guest's kernel had "
		      "set where system calls enter it (LSTAR), by which --symbols live finds it\n",
		      out);
	else if (!s->target->symbols && !slide_is_missing(s))
		fprintf(out,
			"kvmprof: note: %s carries no symbols%s%s, so addresses stay bare: give "
			"%s\n",
			s->target->name, s->target->symbol_note.code ? "; " : "",
			s->target->symbol_note.text, names_needed(s->opt));
	else if (p->unsymbolized)
		fprintf(out, "kvmprof: %" PRIu64 " samples at kernel addresses without a symbol\n",
			p->unsymbolized);
}

/* libvirt knows better than that the process is gone. */
static const char *end_name(const struct summary *s)
{
	enum vm_end_reason reason = vm_result(s->vm)->reason;
	struct libvirt_end end;

	if (s->domain && (reason == VM_END_GONE || reason == VM_END_STOPPED) &&
	    libvirt_watch_end(s->domain->watch, &end))
		return end.text;
	return vm_end_name(reason);
}

/* What the VMM did in the guest's place, where that is worth a line. */
static void print_devices(const struct summary *s, FILE *out)
{
	uint64_t ns[VM_MAX_DEVICES] = { 0 }, all = 0;
	double whole = 1e9 * run_seconds(s) * vm_vcpus(s->vm);
	const char *sep = "";

	for (unsigned int i = 0; i < vm_vcpus(s->vm); i++) {
		const struct vcpu_stats v = vm_stats(s->vm, i);

		for (unsigned int d = 0; d < VM_MAX_DEVICES; d++) {
			ns[d] += v.device[d].ns;
			all += v.device[d].ns;
		}
	}
	if ((double)all < whole / 100 || !all)
		return;
	fprintf(out, "kvmprof: time in the VMM, as [vmm] frames: ");
	for (unsigned int d = 0; d < VM_MAX_DEVICES; d++) {
		if ((double)ns[d] < whole / 1000)
			continue;
		fprintf(out, "%s%s %.1f %%", sep, vm_device_name(s->vm, d),
			100 * (double)ns[d] / whole);
		sep = ", ";
	}
	fputc('\n', out);
}

static void print_modes(const struct pipeline_stats *p, FILE *out)
{
	fprintf(out, ": %.1f %% kernel, %.1f %% user, %.1f %% idle\n",
		percent(p->mode_weight[SAMPLE_KERNEL], p->weight),
		percent(p->mode_weight[SAMPLE_USER], p->weight),
		percent(p->mode_weight[SAMPLE_IDLE], p->weight));
}

/* Nothing was sampled: a profile's records are sums. */
static void print_counts(const struct summary *s, FILE *out)
{
	fprintf(out, "kvmprof: %" PRIu64 " instructions counted, in %" PRIu64 " stacks",
		s->stats->weight, s->stats->event_samples[0]);
	print_modes(s->stats, out);
}

static void print_samples(const struct summary *s, FILE *out)
{
	char rate[64];

	summary_events_head(s->events, s->opt->freq_hz, rate, sizeof(rate));
	fprintf(out, "kvmprof: %" PRIu64 " samples%s%s", s->stats->event_samples[0], rate,
		s->opt->jitter ? "" : " (no jitter)");
	print_modes(s->stats, out);
}

/* lost: by us; of an exact run no timer's period is missed, and of counts no sample is needed. */
static void print_lost(const struct summary *s, const struct totals *t, FILE *out)
{
	const uint64_t dropped = s->stats->dropped;

	if (!vm_is_exact(s->vm))
		fprintf(out,
			"kvmprof: lost %" PRIu64 " samples; %" PRIu64
			" timer periods missed; their time is credited to the sample before\n",
			dropped, t->v.overruns);
	else if (!s->opt->call_counts || dropped + t->v.overruns)
		fprintf(out, "kvmprof: lost %" PRIu64 " samples\n", dropped + t->v.overruns);
}

static unsigned int count_words(const char *s)
{
	unsigned int n = 0;

	for (; *(s += strspn(s, " ")); s += strcspn(s, " "))
		n++;
	return n;
}

void summary_print(const struct summary *s, FILE *out)
{
	const struct pipeline_stats *p = s->stats;
	const struct quirks *q = s->quirks;
	struct totals t;

	add_up(s, &t);
	fprintf(out, "kvmprof: %s", end_name(s));
	if (vm_result(s->vm)->reason == VM_END_EXIT)
		fprintf(out, " with status %u", vm_result(s->vm)->exit_status);
	fprintf(out, " after %.2f s\n", run_seconds(s));
	(s->opt->call_counts ? print_counts : print_samples)(s, out);
	if (run_is_attached(s->opt))
		summary_attach_print(s->vm, out);
	summary_exact_print(s->vm, out);
	attach_domain_print(s->domain, out);
	if (!s->opt->call_counts)
		summary_events_print(s->events, s->vm, p, out);
	summary_tasks_print(&s->stats->offcpu, out);
	print_lost(s, &t, out);
	print_missed(s, &t, out);
	if (s->changes)
		fprintf(out,
			"kvmprof: note: settings were changed %" PRIu64
			" times while it ran: see `changes` in kvmprof.json\n",
			s->changes);
	if (s->overwritten)
		fprintf(out,
			"kvmprof: %" PRIu64
			" samples gave way to newer ones (--overwrite); the profile has the rest\n",
			s->overwritten);
	if (s->console_dropped)
		fprintf(out,
			"kvmprof: the console lost %" PRIu64
			" bytes, as nobody read what it was written to\n",
			s->console_dropped);
	print_stacks(s, &t, out);
	summary_where_print(s, out);
	summary_disks_print(s->vm, &p->io, out);
	summary_net_print(s->vm, &p->net, out);
	summary_guest_print(&p->guest, out);
	if (vm_is_exact(s->vm)) /* time in which it stands is none of the guest's */
		return;
	fprintf(out,
		"kvmprof: guest stopped per sample: p50 %.1f us, p99 %.1f us, max %.1f us; kick "
		"latency: p50 %.1f us, p99 %.1f us\n",
		summary_us(hist_quantile(&t.v.stop_ns, 500)),
		summary_us(hist_quantile(&t.v.stop_ns, 990)), summary_us(t.v.stop_ns.max),
		summary_us(hist_quantile(&t.v.latency_ns, 500)),
		summary_us(hist_quantile(&t.v.latency_ns, 990)));
	if (vm_vcpus(s->vm) > 1)
		cost_print(s->vm, out);
	if (s->bound->changes)
		fprintf(out,
			"kvmprof: the rate was lowered for --max-overhead %g: a sample every %.3f "
			"ms at the end, for %.2f %% of the guest's time\n",
			s->opt->max_overhead, (double)vm_period(s->vm, 0) / 1e6,
			100 * s->bound->last);
	print_devices(s, out);
	if (q->interpreted)
		fprintf(out,
			"kvmprof: note: this host's KVM interprets guest ring 0 (%.0f ns an "
			"instruction): kernel time is inflated against user time; compare kernel "
			"with kernel only\n",
			(double)q->ring0_ps_per_insn / 1000);
	if (*s->tuned)
		fprintf(out,
			"kvmprof: note: %u parameters were added to the kernel's command line for "
			"this slow host; kvmprof.json lists them (`tuned`), --no-tune leaves them "
			"out\n",
			count_words(s->tuned));
}

static void json_u64(struct buf *b, const char *key, uint64_t v)
{
	buf_printf(b, ",\"%s\":%" PRIu64, key, v);
}

static void json_ends(struct buf *b, const char *key, const uint64_t *end)
{
	buf_printf(b, ",\"%s\":{", key);
	for (unsigned int i = 1; i < STACK_END_COUNT; i++) {
		json_quote(b, stack_end_name((enum stack_end)i));
		buf_printf(b, ":%" PRIu64 "%s", end[i], i + 1 < STACK_END_COUNT ? "," : "}");
	}
}

static void json_stacks(const struct summary *s, struct buf *b)
{
	const struct pipeline_stats *p = s->stats;
	const struct symtab *names = s->target->symbols;

	json_ends(b, "stack_end", p->end);
	json_ends(b, "kernel_stack_end", p->kernel_end);
	json_ends(b, "user_stack_end", p->user_end);
	buf_printf(b, ",\"broken_stacks\":[");
	for (unsigned int i = 0; i < p->nbroken; i++) {
		const struct pipeline_broken *x = &p->broken[i];
		const struct symbol *sym = names ? symtab_lookup(names, x->ip, NULL) : NULL;

		buf_printf(b, "%s{\"end\":", i ? "," : "");
		json_quote(b, stack_end_name((enum stack_end)x->end));
		buf_printf(b, ",\"ip\":\"%" PRIx64 "\",\"symbol\":", x->ip);
		json_quote(b, sym ? sym->name : "");
		buf_printf(b, ",\"innermost\":\"%" PRIx64 "\",\"count\":%" PRIu64 "}", x->innermost,
			   x->count);
	}
	buf_printf(b, "]");
	json_u64(b, "broken_stacks_beyond", p->broken_beyond);
	buf_printf(b, ",\"orc_entries\":%zu,\"orc_layout\":",
		   s->target->orc ? orc_count(s->target->orc) : 0);
	json_quote(b, s->target->orc ? orc_layout_name(orc_layout(s->target->orc)) : "none");
}

static void json_stat(const struct summary *s, struct buf *b)
{
	struct stat_table *t;

	if (!s->stat) /* another process's guest: not ours to count */
		return;
	t = calloc(1, sizeof(*t));
	if (!t) {
		b->failed = true;
		return;
	}
	stat_read(s->stat, t);
	buf_printf(b, ",\"stat\":");
	stat_json(t, b);
	free(t);
}

/* The moments, and how often each breakpoint was really reached. */
static void json_markers(const struct summary *s, const struct totals *t, struct buf *b)
{
	const struct pipeline_options *p = s->asked;
	uint64_t first = vm_first_entry_ns(s->vm);

	markers_json(s->moments, first, b);
	buf_printf(b, ",\"breakpoints\":[");
	for (unsigned int i = 0; i < VM_MAX_BREAKPOINTS && p->breakpoint_name[i]; i++) {
		buf_printf(b, "%s{\"name\":", i ? "," : "");
		json_quote(b, p->breakpoint_name[i]);
		buf_printf(b, ",\"reached\":%" PRIu64 "}", t->v.breakpoints[i]);
	}
	buf_printf(b, "],\"collecting_from_ns\":");
	if (s->begun_ns)
		buf_printf(b, "%" PRIu64, s->begun_ns > first ? s->begun_ns - first : 0);
	else
		buf_printf(b, "null");
	json_u64(b, "uncollected_periods", t->v.uncollected);
	json_u64(b, "guest_debug_exceptions", t->v.debug_returned);
}

void summary_json(const struct summary *s, struct buf *b)
{
	const struct pipeline_stats *p = s->stats;
	const struct quirks *q = s->quirks;
	/* What a weight stands for: of an exact run it is instructions. */
	const uint64_t unit = vm_is_exact(s->vm) ? EXACT_NS_PER_INSN : 1;
	struct totals t;

	add_up(s, &t);
	buf_printf(b, "{\"version\":\"%s\",\"image\":", KVMPROF_VERSION);
	json_quote(b, s->target->name);
	buf_printf(b, ",\"end\":");
	json_quote(b, end_name(s));
	if (vm_result(s->vm)->reason == VM_END_EXIT)
		buf_printf(b, ",\"guest_exit_status\":%u", vm_result(s->vm)->exit_status);
	else
		buf_printf(b, ",\"guest_exit_status\":null");
	json_u64(b, "vcpus", vm_vcpus(s->vm));
	if (!vm_is_exact(s->vm)) /* which has a period, and no timer */
		buf_printf(b, ",\"freq_hz\":%g,\"jitter\":%s", s->opt->freq_hz,
			   s->opt->jitter ? "true" : "false");
	buf_printf(b, ",\"run_seconds\":%.6f", run_seconds(s));
	json_u64(b, "samples", p->samples);
	json_u64(b, "lost", p->dropped);
	json_u64(b, "overwritten", s->overwritten);
	json_u64(b, "console_dropped_bytes", s->console_dropped);
	json_u64(b, "max_stack_cut", p->depth_cut);
	s->changes_json(s->control, b);
	json_u64(b, "overruns", t.v.overruns);
	buf_printf(b, ",\"missed_share\":%.4f", missed_share(s, &t));
	json_u64(b, "offline_periods", t.v.offline);
	json_u64(b, "unsymbolized", p->unsymbolized);
	json_u64(b, "kernel_ns", unit * p->mode_weight[SAMPLE_KERNEL]);
	json_u64(b, "user_ns", unit * p->mode_weight[SAMPLE_USER]);
	json_u64(b, "idle_ns", unit * p->mode_weight[SAMPLE_IDLE]);
	json_markers(s, &t, b);
	if (s->opt->call_counts) /* the profile has its events; nothing is sampled by one */
		buf_printf(b, ",\"events\":[]");
	else
		summary_events_json(s->events, s->vm, p, b);
	summary_where_json(s, b);
	summary_tasks_json(&p->offcpu, b);
	summary_devices_json(s->vm, b);
	summary_disks_json(s->vm, &p->io, b);
	if (p->io.wanted)
		summary_requests_json(s->vm, s->requests, b);
	summary_net_json(s->vm, &p->net, b);
	if (p->net.wanted)
		summary_packets_json(s->packets, b);
	if (run_is_attached(s->opt))
		summary_attach_json(s->vm, b);
	summary_exact_json(s->vm, b);
	attach_domain_json(s->domain, b);
	json_stacks(s, b);
	summary_guest_json(&p->guest, b);
	json_u64(b, "stack_capped", t.v.stack_capped);
	json_u64(b, "stack_unmapped", t.v.stack_unmapped);
	json_u64(b, "stack_unreadable", t.v.stack_none);
	cost_json_hist(b, "stopped_ns", &t.v.stop_ns);
	cost_json_hist(b, "kick_latency_ns", &t.v.latency_ns);
	cost_json(s->vm, b);
	cost_bound_json(s->bound, b);
	json_stat(s, b);
	buf_printf(b, ",\"exits\":{");
	for (unsigned int k = 0, n = 0; k < VCPU_EXIT_KINDS; k++)
		if (t.v.exits[k])
			buf_printf(b, "%s\"%u_%s\":%" PRIu64, n++ ? "," : "", k, vcpu_exit_name(k),
				   t.v.exits[k]);
	buf_printf(b, "}");
	json_u64(b, "unknown_io", t.v.unknown_io);
	json_u64(b, "unknown_mmio", t.v.unknown_mmio);
	json_u64(b, "first_entry_ns", vm_first_entry_ns(s->vm));
	json_u64(b, "startup_ns", s->startup_ns);
	json_u64(b, "image_load_ns", s->load_ns);
	json_u64(b, "rss_beyond_guest_bytes", s->rss_extra);
	buf_printf(b,
		   ",\"host\":{\"interpreted\":%s,\"syscall_keeps_cpl\":%s,\"refuses_insns\":%s,"
		   "\"hypercalls_hang\":%s,\"zero_counts_wrong\":%s,\"cpuid_leaks\":%s,"
		   "\"ring0_ps_per_insn\":%" PRIu64 ",\"probe_ns\":%" PRIu64,
		   q->interpreted ? "true" : "false", q->syscall_keeps_cpl ? "true" : "false",
		   q->refuses_insns ? "true" : "false", q->hypercalls_hang ? "true" : "false",
		   q->zero_counts_wrong ? "true" : "false", q->cpuid_leaks ? "true" : "false",
		   q->ring0_ps_per_insn, q->probe_ns);
	json_u64(b, "syscalls_assisted", t.v.syscalls_assisted);
	json_u64(b, "syscalls_undone", t.v.syscalls_undone);
	json_u64(b, "faults_forwarded", t.v.faults_forwarded);
	json_u64(b, "instructions_completed", t.v.insns_completed);
	buf_printf(b, ",\"tuned\":");
	json_quote(b, s->tuned);
	buf_printf(b, "}}");
}

static void print_symbol(const struct summary *s, uint64_t ip, bool exact, FILE *out)
{
	const struct target *t = s->target;
	uint64_t off;
	const struct symbol *sym =
		t->symbols ? symtab_lookup(t->symbols, exact ? ip : ip - 1, &off) : NULL;

	if (guest_vmm_owns(ip))
		fprintf(out, "  %016" PRIx64 " [vmm] %s\n", ip,
			vm_device_name(s->vm, guest_vmm_device(ip)));
	else if (sym)
		fprintf(out, "  %016" PRIx64 " %s+0x%" PRIx64 "\n", ip, sym->name,
			off + (exact ? 0 : 1));
	else
		fprintf(out, "  %016" PRIx64 " ?\n", ip);
}

static void print_stack(const struct summary *s, const struct stack *stack, FILE *out)
{
	for (unsigned int i = 0; i < stack->n; i++)
		print_symbol(s, stack->ip[i], stack->exact[i], out);
}

/* KVM has reset the vCPU: what is left of it is its last sample. */
static void print_last_sample(const struct summary *s, FILE *out)
{
	const struct vm_result *r = vm_result(s->vm);

	fprintf(out, "  its registers and its stack are not known: %s\n",
		vm_is_exact(s->vm) ? "QEMU ends with it"
				   : "this host's KVM resets a vCPU before it reports a triple "
				     "fault (kvm_amd does so)");
	if (!s->last || !s->last->time_ns) {
		fprintf(out, "  there was no sample of this vCPU before it\n");
		return;
	}
	fprintf(out, "  the last sample of this vCPU, %.3f ms before:\n",
		(double)(int64_t)(r->end_ns - s->last->time_ns) / 1e6);
	print_stack(s, &s->last->stack, out);
}

void summary_print_crash(const struct summary *s, FILE *out)
{
	static const char *const name[GPR_COUNT] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp",
						     "rsi", "rdi", "r8",  "r9",	 "r10", "r11",
						     "r12", "r13", "r14", "r15" };
	const struct vm_result *r = vm_result(s->vm);

	if (!r->have_regs) {
		if (r->reason == VM_END_TRIPLE_FAULT)
			print_last_sample(s, out);
		return;
	}
	fprintf(out, "  rip %016" PRIx64 "  rflags %08" PRIx64 "  cs %04x  ss %04x\n", r->regs.rip,
		r->regs.rflags, r->regs.cs, r->regs.ss);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		fprintf(out, "  %-3s %016" PRIx64 "%s", name[i], r->regs.gpr[i],
			i % 4 == 3 ? "\n" : "");
	fprintf(out,
		"  cr0 %08" PRIx64 "  cr2 %016" PRIx64 "  cr3 %08" PRIx64 "  cr4 %06" PRIx64 "\n",
		r->regs.cr0, r->regs.cr2, r->regs.cr3, r->regs.cr4);
	if (s->crash->n == 0)
		print_symbol(s, r->regs.rip, true, out);
	print_stack(s, s->crash, out);
}
