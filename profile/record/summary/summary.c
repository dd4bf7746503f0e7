/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/summary.h"

#include "profile/record/summary/attach.h"
#include "profile/record/summary/devices.h"
#include "profile/record/summary/events.h"
#include "profile/record/summary/guest.h"
#include "profile/record/summary/panic.h"
#include "profile/record/summary/where.h"
#include "vmm/exact/exact.h"
#include "vmm/control.h"
#include "vmm/device.h"
#include "vmm/quirks.h"
#include "vmm/vm.h"
#include "vmm/end.h"
#include "base/ring.h"

#include <cpuid.h>
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

static double run_seconds(const struct summary *s)
{
	uint64_t first = vm_first_entry_ns(s->vm), end = vm_result(s->vm)->end_ns;

	/* The run is still under way. */
	if (!end)
		end = vm_now_ns(s->vm);
	return first && end > first ? (double)(end - first) / 1e9 : 0;
}

/* Returns the share of the timer's periods that were missed; 0 if unknown. */
static double missed_share(const struct summary *s, const struct totals *t)
{
	uint64_t all = t->v.samples + t->v.overruns;

	return all && summary_events_are_timers(s->events) ? (double)t->v.overruns / (double)all
							   : 0;
}

/* Returns a percentage. */
static double whole_share(const uint64_t *end)
{
	uint64_t whole = end[STACK_END_ROOT] + end[STACK_END_USER] + end[STACK_END_START], all = 0;

	for (unsigned int i = 0; i < STACK_END_COUNT; i++)
		all += end[i];
	return all ? 100.0 * (double)whole / (double)all : 0;
}

/* Returns whether symbols were dropped for this reason, which guest.c reports. */
static bool slide_is_missing(const struct summary *s)
{
	const struct guest_stats *g = &s->stats->guest;

	return g->moves && g->slide.status != KSLIDE_SOLVED;
}

/* Returns the options that are needed for symbols of the kernel, so that one attempt suffices. */
static const char *names_needed(const struct run_options *o)
{
	if (run_options_is_attached(o) && !o->image)
		return "--image FILE (this very kernel as an ELF file with symbols: vmlinux), or "
		       "--image FILE (without) and --symbols FILE (its System.map)";
	return "--symbols FILE (vmlinux or System.map of this very kernel)";
}

/* libvirt knows more than that the process is gone. */
static const char *end_name(const struct summary *s)
{
	enum vm_end_reason reason = vm_result(s->vm)->reason;
	struct libvirt_end end;

	if (s->domain && (reason == VM_END_GONE || reason == VM_END_STOPPED) &&
	    libvirt_watch_end(s->domain->watch, &end))
		return end.text;
	return vm_end_name(reason);
}

/* -- the machine ----------------------------------------------------------------------------- */

#define CPUID_BRAND 0x80000002u /* and the next two leaves: SDM vol. 2, CPUID */
#define BRAND_LEAVES 3u
#define BRAND_BYTES 16u /* bytes of one leaf */

/* Writes the name of this host's processor, without surrounding blanks; "" if it has none. */
static void name_processor(char out[BRAND_LEAVES * BRAND_BYTES + 1])
{
	unsigned int r[BRAND_LEAVES * 4] = { 0 };
	char text[sizeof(r) + 1] = { 0 };
	size_t len;

	for (unsigned int i = 0; i < BRAND_LEAVES; i++)
		(void)__get_cpuid(CPUID_BRAND + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2],
				  &r[4 * i + 3]);
	memcpy(text, r, sizeof(r));
	len = strlen(text);
	while (len && text[len - 1] == ' ')
		text[--len] = '\0';
	strcpy(out, text + strspn(text, " "));
}

/*
 * Writes what the times depend on besides the guest's code; profile/analyse/stacks/comparable.h
 * compares it. An exact run has the same in `engine`, and does not depend on the host.
 */
static void write_machine(const struct facts_out *o, const struct summary *s)
{
	const bool ours = !run_options_is_attached(s->opt);
	char processor[BRAND_LEAVES * BRAND_BYTES + 1];

	if (vm_is_exact(s->vm))
		return;
	name_processor(processor);
	FACTS_OBJECT(o, "machine", NUM_IF(ours, "memory_bytes", s->mem_size),
		     STR_IF(ours, "cmdline", s->cmdline), STR("host_cpu", processor));
}

/*
 * Writes the command of --exec, with blanks between its words: a gate of two commands compares it.
 */
static void write_command(const struct facts_out *o, const struct exec_options *x)
{
	struct buf text;

	if (!exec_wanted(x))
		return;
	buf_init(&text);
	if (x->command)
		buf_printf(&text, "%s", x->command);
	for (unsigned int i = 0; !x->command && i < x->nwords; i++)
		buf_printf(&text, "%s%s", i ? " " : "", x->words[i]);
	buf_u8(&text, 0);
	FACTS(o, STR("command", text.failed ? NULL : (const char *)text.data));
	buf_deinit(&text);
}

/* -- the end, samples and losses ---------------------------------------------------------- */

#define MODES "{kernel:1} % kernel, {user:1} % user, {idle:1} % idle"

#define MINUTES_LEN 32

/* Writes a time as the shell's `time` does, such as 0m1.234s. Returns out. */
static const char *minutes(char out[MINUTES_LEN], uint64_t ns)
{
	uint64_t ms = ns / 1000000;

	snprintf(out, MINUTES_LEN, "%" PRIu64 "m%u.%03us", ms / 60000,
		 (unsigned int)(ms % 60000 / 1000), (unsigned int)(ms % 1000));
	return out;
}

static void write_run(const struct facts_out *o, const struct summary *s)
{
	char times[3][MINUTES_LEN];
	const struct pipeline_stats *p = s->stats;
	const struct event_state *first = events_of_vm(s->events, 0);
	const bool counts = s->opt->call_counts, wall = !first || first->vm.kind == VM_EVENT_WALL;
	const bool exact = vm_is_exact(s->vm), exited = vm_result(s->vm)->reason == VM_END_EXIT;
	/* A weight stands for ns, and for an instruction of an exact run. */
	const uint64_t *weight = p->mode_weight, unit = exact ? EXACT_NS_PER_INSN : 1;

	FACTS(o, STR("version", KVMPROF_VERSION), STR("image", s->target->name),
	      STR("end", end_name(s)),
	      MAYBE("guest_exit_status", exited, vm_result(s->vm)->exit_status),
	      REAL("run_seconds", 6, run_seconds(s)),
	      LINE(exited, "{end} with status {guest_exit_status} after {run_seconds:2} s"),
	      LINE(!exited, "{end} after {run_seconds:2} s"),
	      MAYBE("command_real_ns", s->have_times, s->real_ns),
	      MAYBE("command_user_ns", s->have_times, s->user_ns),
	      MAYBE("command_system_ns", s->have_times, s->system_ns),
	      VARS("real", minutes(times[0], s->real_ns)),
	      VARS("spent_user", minutes(times[1], s->user_ns)),
	      VARS("system", minutes(times[2], s->system_ns)),
	      LINE(s->have_times, "the command took, of the guest's time: real {real}, user "
				  "{spent_user}, sys {system}"),
	      NUM("vcpus", vm_vcpus(s->vm)),
	      /* An exact run has a period but no timer. */
	      REAL_IF(!exact, "freq_hz", FACT_SHORTEST, s->opt->freq_hz),
	      FLAG_IF(!exact, "jitter", s->opt->jitter), NUM("samples", p->samples),
	      NUM("kernel_ns", unit * weight[SAMPLE_KERNEL]),
	      NUM("user_ns", unit * weight[SAMPLE_USER]),
	      NUM("idle_ns", unit * weight[SAMPLE_IDLE]), VAR("weight", p->weight),
	      VAR("n", p->event_samples[0]), VARS("event", first ? first->name.text : ""),
	      VARS("steady", s->opt->jitter ? "" : " (no jitter)"),
	      VARD("kernel", percent(weight[SAMPLE_KERNEL], p->weight)),
	      VARD("user", percent(weight[SAMPLE_USER], p->weight)),
	      VARD("idle", percent(weight[SAMPLE_IDLE], p->weight)),
	      /* Nothing was sampled: the profile's records are sums. */
	      LINE(counts, "{weight} instructions counted, in {n} stacks: " MODES),
	      LINE(!counts && wall, "{n} samples at {freq_hz:0} Hz{steady}: " MODES),
	      LINE(!counts && !wall, "{n} samples of {event}{steady}: " MODES));
}

static void write_losses(const struct facts_out *o, const struct summary *s, const struct totals *t)
{
	const double share = missed_share(s, t);
	const bool exact = vm_is_exact(s->vm);
	const uint64_t all = s->stats->dropped + t->v.overruns;

	FACTS(o, VAR("all", all), NUM("lost", s->stats->dropped), NUM("overruns", t->v.overruns),
	      LINE(!exact, "lost {lost} samples; {overruns} timer periods missed; their time is "
			   "credited to the sample before"),
	      /* An exact run has no timer, and counts need no sample. */
	      LINE(exact && (!s->opt->call_counts || all), "lost {all} samples"),
	      REAL("missed_share", 4, share), VARD("missed", 100 * share),
	      VARD("periods", 1 / (1 - share)),
	      LINE(share > SUMMARY_MISSED_MUCH,
		   "warning: {missed:0} % of the timer's periods were missed, because the host "
		   "is busy or the rate is high; a sample represents {periods:0} periods on "
		   "average, so shares are less precise"),
	      VAR("changed", s->changes,
		  "note: settings were changed {changed} times while it ran: see `changes` in "
		  "kvmprof.json"),
	      NUM("overwritten", s->overwritten,
		  "{overwritten} samples were replaced by newer ones (--overwrite)"),
	      NUM("console_dropped_bytes", s->console_dropped,
		  "{console_dropped_bytes} bytes of the console were lost, because the reader of "
		  "its output did not read them"),
	      NUM("offline_periods", t->v.offline), NUM("uncollected_periods", t->v.uncollected),
	      NUM("guest_debug_exceptions", t->v.debug_returned),
	      NUM("unknown_io", t->v.unknown_io), NUM("unknown_mmio", t->v.unknown_mmio),
	      NUM("first_entry_ns", vm_first_entry_ns(s->vm)), NUM("startup_ns", s->startup_ns),
	      NUM("image_load_ns", s->load_ns), NUM("rss_beyond_guest_bytes", s->rss_extra));
}

/* -- stacks -------------------------------------------------------------------------------- */

/* Writes the member, and as text the kinds of ends that occurred. */
static void write_ends(const struct facts_out *o, const char *key, const uint64_t *end,
		       struct buf *text)
{
	facts_object(o, key);
	for (unsigned int i = 1; i < STACK_END_COUNT; i++) {
		const char *name = stack_end_name((enum stack_end)i);

		if (text && end[i])
			buf_printf(text, "%s%" PRIu64 " %s", text->len ? ", " : "", end[i], name);
		FACTS(o, NUM(name, end[i]));
	}
	facts_object_end(o);
}

static void write_broken_stacks(const struct facts_out *o, const struct summary *s)
{
	const struct pipeline_stats *p = s->stats;
	const struct symtab *names = s->target->symbols;

	facts_array(o, "broken_stacks");
	for (unsigned int i = 0; i < p->nbroken; i++) {
		const struct pipeline_broken *x = &p->broken[i];
		const struct symbol *sym = names ? symtab_lookup(names, x->ip, NULL) : NULL;

		FACTS_OBJECT(o, NULL, STR("end", stack_end_name((enum stack_end)x->end)),
			     HEX("ip", x->ip), STR("symbol", sym ? sym->name : ""),
			     HEX("innermost", x->innermost), NUM("count", x->count));
	}
	facts_array_end(o);
	FACTS(o, NUM("broken_stacks_beyond", p->broken_beyond));
}

static void write_unwinding(const struct facts_out *o, const struct summary *s,
			    const struct totals *t, struct buf *kernel, struct buf *user)
{
	const struct pipeline_stats *p = s->stats;
	const struct target *g = s->target;
	const bool nameless = !g->symbols, bare = p->kernel_end[STACK_END_NO_FP] && nameless;

	FACTS(o, VARS("kernel", facts_string(kernel)), VARS("user", facts_string(user)),
	      VARD("depth", (double)p->frames / (double)p->samples),
	      VARD("whole", whole_share(p->user_end)),
	      /* Exact counts have no stacks that were unwound. */
	      LINE(p->frames, "kernel stacks: {kernel}; {depth:1} frames on average"),
	      LINE(p->user_frames, "user stacks: {user}; {whole:1} % whole"),
	      NUM("max_stack_cut", p->depth_cut), NUM("stack_capped", t->v.stack_capped),
	      NUM("stack_unmapped", t->v.stack_unmapped), NUM("stack_unreadable", t->v.stack_none),
	      LINE(t->v.stack_unmapped || t->v.stack_none,
		   "stack copies cut: {stack_unmapped} at an unmapped page, {stack_unreadable} "
		   "unreadable"),
	      LINE(bare,
		   "note: code without frame pointers and ORC tables has only its innermost frame"),
	      LINE(!bare && !g->orc && !g->frame_pointers && !nameless,
		   "note: there are neither ORC tables nor frame pointers, so callers are "
		   "searched for on the stack; some may be missing"),
	      NUM("orc_entries", g->orc ? orc_count(g->orc) : 0),
	      STR("orc_layout", g->orc ? orc_layout_name(orc_layout(g->orc)) : "none"),
	      VARS("no_orc", g->orc_note.code ? g->orc_note.text : NULL,
		   "note: no unwinding by the kernel's ORC tables: {no_orc}"));
}

/* Rings are polled every 5 ms. */
#define LATE_NS UINT64_C(50000000)

/* Lists the guest's kernels, if there were several. */
static void write_kernels(const struct facts_out *o, const struct summary *s)
{
	const struct pipeline_stats *p = s->stats;
	const uint64_t first = vm_first_entry_ns(s->vm);
	struct buf list;

	buf_init(&list);
	facts_array(o, "kernels");
	for (unsigned int i = 0; i < p->kernels && p->kernels > 1; i++) {
		const struct epoch_facts *k = &p->kernel[i];
		const uint64_t from_ns = k->from_ns > first ? k->from_ns - first : 0;
		const char *release = k->release[0] ? k->release : "unknown";

		FACTS_OBJECT(o, NULL, STR("release", release), NUM("from_ns", from_ns),
			     NUM("samples", k->samples));
		buf_printf(&list, "%s%s (from %.2f s, %" PRIu64 " samples)", i ? ", " : "", release,
			   (double)from_ns / 1e9, k->samples);
	}
	facts_array_end(o);
	/*
	 * A sample is named later than it was taken: the later, the more may have changed
	 * meanwhile.
	 */
	FACTS(o, TIMES("named_after_ns", &p->named_after),
	      LINE(hist_quantile(&p->named_after, 990) > LATE_NS,
		   "samples were named late, because the host is busy: p50 "
		   "{named_after_ns.p50:1/1e6} ms after they were taken, p99 "
		   "{named_after_ns.p99:1/1e6} ms, max {named_after_ns.max:1/1e6} ms; code that "
		   "changed in between has no name"));
	FACTS(o, VAR("kernels_run", p->kernels), VARS("kernel_list", facts_string(&list)),
	      LINE(p->kernels > 1,
		   "the guest ran {kernels_run} kernels, one after the other: "
		   "{kernel_list}; perf shows one of them at a time: see docs/perf-data.md"),
	      NUM("samples_of_no_kernel", p->in_doubt,
		  "lost {samples_of_no_kernel} samples whose kernel could not be determined"));
	buf_deinit(&list);
}

static void write_stacks(const struct facts_out *o, const struct summary *s, const struct totals *t)
{
	const struct pipeline_stats *p = s->stats;
	const struct target *g = s->target;
	const bool early = !g->symbols && g->live && !g->symbol_note.code;
	const bool bare = !early && !g->symbols && !slide_is_missing(s);
	struct buf kernel, user;

	buf_init(&kernel);
	buf_init(&user);
	write_ends(o, "stack_end", p->end, NULL);
	write_ends(o, "kernel_stack_end", p->kernel_end, &kernel);
	write_ends(o, "user_stack_end", p->user_end, &user);
	write_broken_stacks(o, s);
	write_unwinding(o, s, t, &kernel, &user);
	FACTS(o,
	      LINE(early, "note: no kernel names: the run ended before the guest's kernel set "
			  "its system call entry (LSTAR), by which --symbols live finds it"),
	      VARS("name", g->name), VARS("and", g->symbol_note.code ? "; " : ""),
	      VARS("why", g->symbol_note.text), VARS("needed", names_needed(s->opt)),
	      LINE(bare, "note: {name} has no symbols{and}{why}, so kernel addresses have no "
			 "names; give {needed}"),
	      NUM("unsymbolized", p->unsymbolized),
	      LINE(!early && !bare && p->unsymbolized,
		   "{unsymbolized} samples at kernel addresses without a symbol"));
	buf_deinit(&kernel);
	buf_deinit(&user);
}

/* -- markers, counters and exits: as JSON only ---------------------------------------------- */

/* Writes the markers, and how often each breakpoint was reached. */
static void write_markers(const struct facts_out *o, const struct summary *s,
			  const struct totals *t)
{
	const struct pipeline_options *p = s->asked;
	uint64_t first = vm_first_entry_ns(s->vm);

	markers_json(s->moments, first, o->json);
	facts_array(o, "breakpoints");
	for (unsigned int i = 0; i < VM_MAX_BREAKPOINTS && p->breakpoint_name[i]; i++) {
		FACTS_OBJECT(o, NULL, STR("name", p->breakpoint_name[i]),
			     NUM("reached", t->v.breakpoints[i]));
	}
	facts_array_end(o);
	FACTS(o, MAYBE("collecting_from_ns", s->begun_ns,
		       s->begun_ns > first ? s->begun_ns - first : 0));
}

static void write_stat(const struct facts_out *o, const struct summary *s)
{
	struct stat_table *t;

	if (!s->stat) /* another process's guest: its counters are not available */
		return;
	t = calloc(1, sizeof(*t));
	if (!t) {
		o->json->b->failed = true;
		return;
	}
	stat_read(s->stat, t);
	json_object_begin(o->json, "stat");
	stat_json(o->json, t);
	json_object_end(o->json);
	free(t);
}

static void write_exits(const struct facts_out *o, const struct totals *t)
{
	facts_object(o, "exits");
	for (unsigned int k = 0; k < VCPU_EXIT_KINDS; k++) {
		char key[64];

		snprintf(key, sizeof(key), "%u_%s", k, vm_exit_name(k));
		if (t->v.exits[k])
			FACTS(o, NUM(key, t->v.exits[k]));
	}
	facts_object_end(o);
}

/* -- costs ------------------------------------------------------------------------------------ */

static void write_costs(const struct facts_out *o, struct vm *vm)
{
	facts_array(o, "cost");
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct vcpu_stats v = vm_stats(vm, i);

		FACTS_OBJECT(o, NULL, NUM("vcpu", i), NUM("samples", v.samples),
			     NUM("lost", ring_dropped(vm_ring(vm, i))), NUM("overruns", v.overruns),
			     NUM("stopped_total_ns", v.stop_ns.sum),
			     TIMES("stopped_ns", &v.stop_ns),
			     TIMES("kick_latency_ns", &v.latency_ns),
			     LINE(true, "vCPU {vcpu}: {samples} samples, {lost} lost, {overruns} "
					"periods missed; stopped p50 {stopped_ns.p50:1/1e3} us, "
					"p99 {stopped_ns.p99:1/1e3} us, max {stopped_ns.max:1/1e3} "
					"us; kick latency p50 {kick_latency_ns.p50:1/1e3} us, p99 "
					"{kick_latency_ns.p99:1/1e3} us"));
	}
	facts_array_end(o);
}

void summary_print_costs(struct vm *vm, FILE *out)
{
	write_costs(&(struct facts_out){ .text = out }, vm);
}

static void write_bound(const struct facts_out *o, const struct summary *s)
{
	const struct cost_bound *b = s->bound;

	if (!b->limit)
		return;

	facts_object(o, "max_overhead");
	FACTS(o, VARD("asked", s->opt->max_overhead), VAR("period", vm_period(s->vm, 0)),
	      REAL("limit_percent", FACT_SHORTEST, 100 * b->limit),
	      NUM("changes", b->changes,
		  "the rate was lowered for --max-overhead {asked:g}: a sample every "
		  "{period:3/1e6} ms at the end, for {last_percent:2} % of the guest's time"),
	      REAL("first_percent", 4, 100 * b->worst), REAL("last_percent", 4, 100 * b->last));
	facts_array(o, "periods");
	for (unsigned int i = 0; o->json && i < b->nevents; i++)
		json_u64(o->json, NULL, vm_period(s->vm, i));
	facts_array_end(o);
	facts_object_end(o);
}

/* Writes the time that the VMM spent for the guest, if that is worth a line. */
static void write_vmm_time(const struct facts_out *o, const struct summary *s)
{
	uint64_t ns[VM_MAX_DEVICES] = { 0 }, all = 0;
	double whole = 1e9 * run_seconds(s) * vm_vcpus(s->vm);
	struct buf shares;

	for (unsigned int i = 0; i < vm_vcpus(s->vm); i++) {
		const struct vcpu_stats v = vm_stats(s->vm, i);

		for (unsigned int d = 0; d < VM_MAX_DEVICES; d++) {
			ns[d] += v.device[d].ns;
			all += v.device[d].ns;
		}
	}
	if ((double)all < whole / 100 || !all)
		return;
	buf_init(&shares);
	for (unsigned int d = 0; d < VM_MAX_DEVICES; d++)
		if ((double)ns[d] >= whole / 1000)
			buf_printf(&shares, "%s%s %.1f %%", shares.len ? ", " : "",
				   vm_device_name(s->vm, d), 100 * (double)ns[d] / whole);

	FACTS(o, VARS("shares", facts_string(&shares)),
	      LINE(true, "time in the VMM, as [vmm] frames: {shares}"));
	buf_deinit(&shares);
}

static unsigned int count_words(const char *s)
{
	unsigned int n = 0;

	for (; *(s += strspn(s, " ")); s += strcspn(s, " "))
		n++;
	return n;
}

static void write_host(const struct facts_out *o, const struct summary *s, const struct totals *t)
{
	const struct quirks *q = s->quirks;

	FACTS_OBJECT(
		o, "host",
		FLAG("interpreted", q->interpreted,
		     "note: this host's KVM interprets guest ring 0 ({ring0_ps_per_insn:0/1000} "
		     "ns an instruction): kernel time is inflated relative to user time; compare "
		     "kernel time only with kernel time"),
		FLAG("syscall_keeps_cpl", q->syscall_keeps_cpl),
		FLAG("refuses_insns", q->refuses_insns),
		FLAG("hypercalls_hang", q->hypercalls_hang),
		FLAG("zero_counts_wrong", q->zero_counts_wrong),
		FLAG("cpuid_leaks", q->cpuid_leaks), NUM("ring0_ps_per_insn", q->ring0_ps_per_insn),
		NUM("probe_ns", q->probe_ns), FLAG("probe_from_cache", q->from_cache),
		NUM("syscalls_assisted", t->v.syscalls_assisted),
		NUM("syscalls_undone", t->v.syscalls_undone),
		NUM("faults_forwarded", t->v.faults_forwarded),
		NUM("instructions_completed", t->v.insns_completed),
		VAR("words", count_words(s->tuned)),
		STR("tuned", s->tuned,
		    "note: {words} parameters were added to the kernel's command line for this "
		    "slow host; kvmprof.json lists them (`tuned`), --no-tune leaves them out"));
}

static void write_costs_of_run(const struct facts_out *o, const struct summary *s,
			       const struct totals *t)
{
	const struct facts_out each = { vm_vcpus(s->vm) > 1 ? o->text : NULL, o->json };

	FACTS(o, TIMES("stopped_ns", &t->v.stop_ns), TIMES("kick_latency_ns", &t->v.latency_ns),
	      LINE(true, "guest stopped per sample: p50 {stopped_ns.p50:1/1e3} us, p99 "
			 "{stopped_ns.p99:1/1e3} us, max {stopped_ns.max:1/1e3} us; kick latency: "
			 "p50 {kick_latency_ns.p50:1/1e3} us, p99 {kick_latency_ns.p99:1/1e3} us"));
	write_costs(&each, s->vm);
	write_bound(o, s);
	if (o->text)
		write_vmm_time(o, s);
	write_host(o, s, t);
}

/* Writes everything, in the text's order. */
static void write_summary(const struct facts_out *o, const struct summary *s)
{
	const struct pipeline_stats *p = s->stats;
	/* The time for which an exact run's machine is stopped is not the guest's. */
	const struct facts_out costs = { vm_is_exact(s->vm) ? NULL : o->text, o->json };
	struct totals t;

	add_up(s, &t);
	write_run(o, s);
	write_machine(o, s);
	write_command(o, &s->opt->exec);
	if (run_options_is_attached(s->opt))
		summary_attach(o, s->vm);
	summary_engine(o, s->vm);
	summary_domain(o, s->domain);
	summary_events(o, s);
	summary_off_cpu(o, &p->offcpu);
	write_losses(o, s, &t);
	write_kernels(o, s);
	write_stacks(o, s, &t);
	summary_where(o, s);
	summary_disks(o, s->vm, &p->io);
	summary_net(o, s->vm, &p->net);
	summary_guest(o, &p->guest);
	if (o->json) {
		s->changes_json(s->control, o->json);
		write_markers(o, s, &t);
		summary_devices(o, s->vm);
		if (p->io.wanted)
			summary_requests(o, s->vm, s->requests);
		if (p->net.wanted)
			summary_packets(o, s->packets);
		write_stat(o, s);
		write_exits(o, &t);
		summary_panic(o, s->panic);
		summary_hang(o, s->hang);
	}
	write_costs_of_run(&costs, s, &t);
}

void summary_print(const struct summary *s, FILE *out)
{
	write_summary(&(struct facts_out){ .text = out }, s);
}

void summary_json(const struct summary *s, struct buf *out)
{
	struct json_writer w;

	json_begin(&w, out);
	json_object_begin(&w, NULL);
	write_summary(&(struct facts_out){ .json = &w }, s);
	json_object_end(&w);
}
