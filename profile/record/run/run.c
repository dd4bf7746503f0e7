/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run: one recording, from its options to its exit status. */
#include "profile/record/run/run.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "profile/record/options/machine.h"
#include "profile/format/perfdata/leftover.h"
#include "profile/record/run/control.h"
#include "profile/record/run/exact.h"
#include "profile/record/run/exact_counts.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/run/sandbox.h"
#include "profile/record/control/ps_view.h"
#include "profile/record/control/view.h"
#include "profile/format/sink/sink.h"
#include "profile/format/perfdata/sink_epochs.h"
#include "profile/format/perfdata/sink_pipe.h"
#include "profile/format/sink/ring.h"
#include "profile/record/summary/summary.h"
#include "vmm/attach/attach.h"
#include "vmm/control.h"
#include "vmm/quirks.h"
#include "vmm/vm.h"
#include "vmm/end.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

/* -- the start --------------------------------------------------------------------------------- */

/* Adds the sinks before the profile's sink, which they then own. */
static int add_sinks(struct run *r, struct err *e)
{
	int ret = 0;

	if (r->opt->overwrite) {
		ret = sink_ring_create(&r->profile.sink, take_ptr(r->profile.sink),
				       r->opt->ring_size, e);
		r->profile.ring = r->profile.sink;
	}
	if (!ret && r->opt->control)
		ret = view_sink_create(&r->profile.sink, take_ptr(r->profile.sink), e);
	return ret;
}

static int open_output(struct run *r, struct err *e)
{
	struct sink_perfdata_options so = {
		.path = r->opt->output,
		.single_file = r->opt->single_file,
		.buildid_dir = r->opt->buildid_dir,
		.no_buildid_cache = !r->opt->buildid_cache,
		/* A request ends long after its sample was taken. */
		.late_samples = r->opt->overwrite || events_contain(&r->events, EVENT_IO) ||
				events_contain(&r->events, EVENT_NET),
		.note = &r->profile.note,
		.publisher = r->keep.keeper ? &r->keep.publisher : NULL,
	};
	char left[1024];
	int ret;

	ret = run_keep_control(r, e);
	if (ret)
		return ret;
	ret = run_keep_snapshot(r, e);
	if (ret)
		return ret;
	if (!r->opt->output)
		return sink_null_create(&r->profile.sink, e);
	ret = run_keep_cache(r, e);
	if (ret)
		return ret;
	so.cache_stage = r->keep.cache;
	if (!run_options_to_stdout(r->opt)) {
		if (leftover_text(r->opt->output, left, sizeof(left)))
			reporter_printf(r->opt->reporter, "kvmprof: note: %s\n", left);
		ret = perfdata_sink_create(&r->profile.sink, &so, e);
	} else if (isatty(STDOUT_FILENO)) {
		return err_set(e, EINVAL,
			       "-o - writes a binary profile, and standard output is a terminal: "
			       "add `| perf report -i -`");
	} else {
		ret = sink_pipe_create(&r->profile.sink, STDOUT_FILENO, &so, e);
	}
	return ret ? ret : sink_epochs_create(&r->profile.sink, take_ptr(r->profile.sink), &so, e);
}

static int begin_profile(struct run *r, int argc, char **argv, struct err *e)
{
	int ret;

	r->load_ns += vm_result(r->vm)->load_ns;
	target_bind(&r->source.target, vm_memory(r->vm));
	gethostname(r->profile.hostname, sizeof(r->profile.hostname) - 1);
	r->profile.info = (struct profile_info){
		.mem = r->opt->mem,
		.markers = run_has_markers(r->opt),
		.vcpus = r->source.vcpus,
		.hostname = r->profile.hostname,
		.argc = argc,
		.argv = argv,
	};
	if (r->opt->engine == RUN_ENGINE_EXACT) {
		r->profile.argv = calloc((size_t)argc + 1, sizeof(*r->profile.argv));
		if (!r->profile.argv)
			return err_nomem(e);
		run_exact_info(r, &r->profile.info, r->profile.argv);
	}
	r->profile.info.nevents =
		events_for_profile(&r->events, r->opt->freq_hz, r->profile.info.event);
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		const struct event_state *s = events_of_vm(&r->events, i);

		if (s && s->name.class == EVENT_IO)
			r->pipeline_options.io[i] =
				s->name.latency ? PIPELINE_IO_LATENCY : PIPELINE_IO_BYTES;
		if (s && s->name.class == EVENT_NET)
			r->pipeline_options.io[i] = PIPELINE_NET_BYTES;
	}
	if (r->opt->tasks.off_cpu) {
		r->pipeline_options.offcpu_period_ns = run_options_off_cpu_ns(r->opt);
		r->pipeline_options.offcpu_event = (uint8_t)r->profile.info.nevents;
		r->profile.info.event[r->profile.info.nevents++] =
			events_off_cpu(r->pipeline_options.offcpu_period_ns);
	}
	ret = run_host_add_event(r, e);
	if (ret)
		return ret;
	if (r->opt->call_counts)
		run_counts_begin(&r->counts, &r->profile.info, &r->pipeline_options);
	ret = r->profile.sink->ops->begin(r->profile.sink, &r->profile.info, e);
	/* The command line and the RAM disk have been copied to the guest. */
	file_map_close(&r->source.initrd);
	run_modules_close(&r->modules);
	return ret;
}

/*
 * Returns the earliest time of a file that processes of this guest wrote. A file's time is that of
 * the kernel's last tick.
 */
static time_t no_map_before(const struct run *r)
{
	return run_options_is_attached(r->opt) || r->snapshot.from ? 0 : time(NULL) - 1;
}

static int run_start(struct run *r, struct err *e)
{
	const struct target *t = &r->source.target;
	struct profile_map user = {
		.addr = t->user_start,
		.len = t->user_end - t->user_start,
		.path = "demo-user",
		.build_id = t->kernel.build_id,
		.elf = t->kernel.elf,
		.elf_len = t->kernel.elf_len,
	};
	struct guest_options go = {
		.python = r->opt->python,
		.explains = run_options_has_alarm(r->opt),
		.mem = r->opt->mem,
		.host_frames = r->host_side.has,
		.host_names = &r->host_side.names,
		.host_switches = r->host_side.switches,
		.runs = run_options_is_attached(r->opt),
		.known_kernels = run_options_is_attached(r->opt) && r->opt->buildid_cache,
		.adds_kernels = r->opt->output != NULL,
		.kernel_dir = r->opt->buildid_dir,
		.placed = r->source.placed,
		.slide = r->source.slide,
		.pa_slide = r->source.pa_slide,
		.moves = run_options_is_attached(r->opt) ? t->is_linux : r->source.moves,
		.files = { .guest_root = r->source.guest_root,
			   .debuginfo = { r->opt->debuginfo },
			   .not_before = no_map_before(r) },
	};
	bool have_user =
		t->user_end > t->user_start && t->kernel.build_id_len == KIMAGE_BUILD_ID_MAX;
	int ret;

	for (unsigned int i = 0; have_user && i < t->kernel.nseg; i++)
		if (t->kernel.seg[i].va == t->user_start)
			user.pgoff = t->kernel.seg[i].file_off;
	ret = run_alarm_start(r, e);
	if (ret)
		return ret;
	ret = pipeline_start(&r->pipeline,
			     &(struct pipeline_parts){ &r->source.target, r->vm, r->profile.sink },
			     &go, &r->pipeline_options, have_user ? &user : NULL, e);
	if (ret)
		return ret;
	if (r->opt->max_stack)
		pipeline_set_max_stack(r->pipeline, r->opt->max_stack);
	for (unsigned int i = 0; i < vm_vcpus_most(r->vm); i++)
		if (!(run_options_vcpus(r->opt, vm_vcpus_most(r->vm)) >> i & 1))
			vm_collect_vcpu(r->vm, i, false);
	if (r->control)
		ret = run_control_start(r->control, r, e);
	return ret ? ret : vm_start(r->vm, e);
}

/* -- a crash of the consumer's thread ---------------------------------------------------------- */

/*
 * Reports that the consumer thread has crashed. It reads what the guest has written, so a guest may
 * exploit a defect in it. Only that thread ends (profile/record/pipeline/pipeline.h); its data
 * stays as it is, locked or inconsistent.
 */
static void tell_crash(struct run *r, const struct err *why, int ret, const struct err *lost)
{
	const char *path = run_options_to_stdout(r->opt) ? "standard output" : r->opt->output;
	const char *had = ret ? lost->text : path ? "what it had is in " : "none was asked for";
	/* An exact machine runs only while that thread lets it. */
	bool goes_on = !vm_result(r->vm)->reason && !vm_is_exact(r->vm);

	console_hide_status(&r->console);
	reporter_printf(r->opt->reporter,
			"kvmprof: thread consumer crashed (%s): the profile ends here, %s%s%s\n",
			why->text, had, !ret && path ? path : "",
			goes_on ? "; the guest continues" : "");
}

bool run_has_crashed(struct run *r)
{
	struct err why = { 0 }, lost = { 0 };
	int ret;

	if (r->crashed || !r->pipeline || !pipeline_crashed(r->pipeline, &why))
		return r->crashed;
	r->crashed = true;
	vm_collect(r->vm, false);
	ret = r->profile.sink->ops->abandon(r->profile.sink, SINK_KEEP, &lost);
	tell_crash(r, &why, ret, &lost);
	/* Another process's machine continues without this process. */
	if (vm_is_exact(r->vm) || run_options_is_attached(r->opt))
		vm_end(r->vm, VM_END_ERROR);
	/* Only the crashed thread could see that the machine is to end. */
	if (vm_is_exact(r->vm))
		vm_wait_samples(r->vm, 1);
	return true;
}

/* -- the end ----------------------------------------------------------------------------------- */

/* Returns the resident bytes of this process, without those of guest RAM. */
static uint64_t rss_beyond_guest(const struct gmem *mem)
{
	cleanup_fclose FILE *f = fopen("/proc/self/smaps", "re");
	unsigned int ours = mem->remote ? 0 : mem->n;
	uint64_t start = 0, rss = 0, kb;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long a, b;

		/*
		 * The file has thousands of lines, of which about one in twenty is needed;
		 * addresses do not begin with a capital.
		 */
		if (line[0] >= 'A' && line[0] <= 'Z' && line[0] != 'R')
			continue;
		if (sscanf(line, "%llx-%llx ", &a, &b) == 2) {
			start = a;
		} else if (sscanf(line, "Rss: %llu kB", &a) == 1) {
			bool guest = false;

			kb = a;
			for (unsigned int i = 0; i < ours; i++) {
				uint64_t h = (uintptr_t)mem->region[i].host;

				guest |= start >= h && start - h < mem->region[i].size;
			}
			rss += guest ? 0 : kb << 10;
		}
	}
	return rss;
}

void run_summary(struct run *r, const struct pipeline_stats *stats, struct summary *s)
{
	uint64_t first = vm_first_entry_ns(r->vm);

	*s = (struct summary){
		.opt = r->opt,
		.events = &r->events,
		.target = &r->source.target,
		.present = guest_target(pipeline_guest(r->pipeline)),
		.quirks = &r->quirks,
		.vm = r->vm,
		.stats = stats,
		.stat = r->stat,
		.host = r->host_side.has,
		.host_names = r->host_side.names.kernel != NULL,
		.switches = r->host_side.switches,
		.threads_note =
			r->host_side.threads_note.code ? r->host_side.threads_note.text : NULL,
		.switches_why =
			r->host_side.switches_why.code ? r->host_side.switches_why.text : NULL,
		.bound = &r->bound,
		.asked = &r->pipeline_options,
		.moments = &r->markers.list,
		.hang = &r->alarm.found,
		.requests = &r->requests,
		.packets = &r->packets,
		.begun_ns = run_markers_collect_ns(&r->markers, r->vm),
		.changes = run_control_changes(r->control),
		.changes_json = run_control_json,
		.control = r->control,
		.domain = r->domain,
		.have_times = r->exec.console.have_time,
		.real_ns = r->exec.console.real_ns,
		.user_ns = r->exec.console.user_ns,
		.system_ns = r->exec.console.system_ns,
		.console_dropped = console_dropped(&r->console),
		.overwritten = r->profile.ring ? sink_ring_overwritten(r->profile.ring) : 0,
		.crash = &r->crash,
		.mem_size = r->source.mem_size,
		.cmdline = (const char *)r->cmdline.data,
		.tuned = r->tuned.data ? (const char *)r->tuned.data : "",
		.startup_ns = first ? first - r->start_ns - r->load_ns : 0,
		.load_ns = r->load_ns,
		.rss_extra = rss_beyond_guest(vm_memory(r->vm)),
	};
	/* A reproducible profile contains no times of this host. */
	if (vm_is_exact(r->vm))
		s->startup_ns = s->load_ns = s->rss_extra = 0;
}

/* Prints the tasks for --ps-at-end: the guest is stopped, and its memory still exists. */
static void print_tasks(struct run *r)
{
	const struct ps_view_options view = { .stacks = true };
	json_t *tasks = NULL;
	struct err e = { 0 };
	struct buf text;
	int ret;

	if (!r->opt->tasks.ps_at_end)
		return;
	buf_init(&text);
	ret = ps_json_read(pipeline_guest(r->pipeline), PS_WITH_STACKS, &tasks, &e);
	ret = ret ? ret : ps_view_text(&text, tasks, NULL, &view, &e);
	if (ret)
		reporter_printf(r->opt->reporter, "kvmprof: --ps-at-end: %s\n", e.text);
	else
		reporter_printf(r->opt->reporter, "%.*s", (int)text.len, (const char *)text.data);
	json_decref(tasks);
	buf_deinit(&text);
}

/*
 * Reports the result of writing the profile. lost: the failure of the run before its sink knew of
 * one.
 */
static int tell_output(const struct run *r, const struct err *lost, struct err *e)
{
	const char *output = r->opt->output;

	if (lost->code)
		return err_set(e, lost->code, "%s%s%s", lost->text,
			       output && !run_options_to_stdout(r->opt)
				       ? "; what came before that is in "
				       : "",
			       output && !run_options_to_stdout(r->opt) ? output : "");
	if (output && !run_options_to_stdout(r->opt) && r->opt->summary)
		reporter_printf(
			r->opt->reporter,
			"kvmprof: wrote %s; look at it with `perf report -i %s` or `kvmprof "
			"report -i %s`\n",
			output, output, output);
	return 0;
}

static void print_summary(const struct run *r, const struct summary *s,
			  void (*print)(const struct summary *s, FILE *out))
{
	cleanup_fclose FILE *f = reporter_open(r->opt->reporter);

	if (f)
		print(s, f);
}

/* Prints only the warnings of the summary, for --no-summary. */
static void tell_summary(const struct run *r, const struct summary *s)
{
	static const char warning[] = "kvmprof: warning: ";
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *f;

	if (r->opt->summary) {
		print_summary(r, s, summary_print);
		return;
	}
	f = open_memstream(&text, &len);
	if (!f)
		return;
	summary_print(s, f);
	fclose(f);
	for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1)
		if (!strncmp(line, warning, strlen(warning)))
			reporter_printf(r->opt->reporter, "%.*s\n", (int)(end - line), line);
}

/* Ends a run whose consumer thread has crashed: only the guest's own result is left. */
static int finish_crashed(struct run *r)
{
	const struct vm_result *res = vm_result(r->vm);

	exec_console_end(&r->exec.console);
	run_drain_console(r);
	run_restore_signals();
	if (res->err.code)
		reporter_printf(r->opt->reporter, "kvmprof: %s\n", res->err.text);
	if (r->json)
		fflush(r->json);
	return 0;
}

static int run_finish(struct run *r, struct err *e)
{
	const struct vm_result *res = vm_result(r->vm);
	struct err lost = { 0 };
	struct summary s;
	uint64_t first;
	struct buf json;
	int ret;

	/* Reading QEMU's counts has time limits of its own. */
	if (r->opt->engine != RUN_ENGINE_EXACT) {
		signals_set(SIGNALS_WATCH);
		if (res->reason == VM_END_INTERRUPTED)
			signals_watch(true);
	}
	if (res->reason == VM_END_INTERRUPTED)
		keeper_limit_wait(r->keep.keeper);
	run_control_stop(r->control);
	run_has_crashed(r);
	vm_join(r->vm);
	run_alarm_finish(r, res->reason == VM_END_TRIPLE_FAULT);
	run_launched_end(r);
	/*
	 * A process has its threads back; a gdbstub's machine is stopped for the symbol lookups
	 * until the end.
	 */
	if (!r->opt->gdb)
		run_restore_stop_signals(r);
	run_markers_finish(&r->markers, r->vm);
	/* Samples from before an error (a full disk) are still worth publishing. */
	pipeline_finish(r->pipeline, &r->stats, &r->crash, &lost);
	r->pipeline_done = true;
	/* Files are written completely; the reader of standard output may never read the rest. */
	if (!run_options_to_stdout(r->opt))
		run_watch_end();
	if (run_has_crashed(r))
		return finish_crashed(r);
	if (r->opt->call_counts && !lost.code)
		(void)run_counts_write(r, &lost);
	first = vm_first_entry_ns(r->vm);
	run_summary(r, &r->stats, &s);
	s.last = pipeline_last(r->pipeline, res->vcpu);
	run_panic_find(&(struct run_panic_places){ &r->source.target, vm_memory(r->vm),
						   &r->panic.console, pipeline_guest(r->pipeline),
						   pipeline_panic(r->pipeline), &r->panic.live },
		       &r->panic.found);
	r->panic.found.stack_seen = s.last && run_panic_is_on(s.present, &s.last->stack);
	s.panic = &r->panic.found;
	buf_init(&json);
	summary_json(&s, &json);
	buf_u8(&json, 0);
	ret = json.failed ? err_nomem(e) : 0;
	if (!ret) {
		struct profile_totals totals = {
			.json = (const char *)json.data,
			.first_ns = first,
			.last_ns = res->end_ns,
		};

		/* The sink knows best what was lost, including failures during the run. */
		ret = r->profile.sink->ops->end(r->profile.sink, &totals, e);
	}
	run_watch_end();
	exec_console_end(&r->exec.console);
	run_drain_console(r);
	/*
	 * The profile is complete: a signal may end the rest, such as output to a stopped terminal.
	 */
	run_restore_signals();
	s.console_dropped = console_dropped(&r->console);
	if (!json.failed && r->json)
		fprintf(r->json, "%s\n", (const char *)json.data);
	if (res->err.code) {
		reporter_printf(r->opt->reporter, "kvmprof: %s\n", res->err.text);
		print_summary(r, &s, summary_print_crash);
	}
	if (r->json)
		fflush(r->json);
	print_summary(r, &s, summary_panic_print);
	tell_summary(r, &s);
	if (r->opt->call_counts)
		run_counts_print(r);
	print_tasks(r);
	if (r->profile.note.code)
		reporter_printf(r->opt->reporter, "kvmprof: warning: %s\n", r->profile.note.text);
	buf_deinit(&json);
	return ret ? ret : tell_output(r, &lost, e);
}

/* Keeps the bound of --max-overhead, and prints a line when it is first exceeded. */
static void keep_bound(struct run *r, uint64_t now_ns)
{
	uint64_t before = vm_period(r->vm, 0);

	if (!cost_bound_check(&r->bound, now_ns))
		return;
	console_hide_status(&r->console);
	reporter_printf(
		r->opt->reporter,
		"kvmprof: sampling took %.2f %% of the guest's time, more than --max-overhead %g: "
		"from now on a sample every %.3f ms instead of %.3f ms\n",
		100 * r->bound.worst, r->opt->max_overhead, (double)vm_period(r->vm, 0) / 1e6,
		(double)before / 1e6);
}

static int run_guest(struct run *r, int argc, char **argv, struct err *e)
{
	int ret = run_alarm_begin(r, e);

	if (ret)
		return ret;
	ret = run_keep_start(r, e);
	if (ret)
		return ret;
	ret = run_prepare(r, e);
	if (ret)
		return ret;
	run_watch_start(r);
	ret = open_output(r, e);
	if (ret)
		return ret;
	ret = add_sinks(r, e);
	if (ret)
		return ret;
	ret = begin_profile(r, argc, argv, e);
	if (ret)
		return ret;
	if (run_options_is_attached(r->opt))
		run_host_threads(r);
	ret = run_sandbox_begin(r, e);
	if (ret)
		return ret;
	ret = run_start(r, e);
	if (!ret && run_options_is_attached(r->opt))
		ret = run_sandbox_attached(r, e);
	if (ret)
		return ret;
	/*
	 * Printed even with -q: an empty variable in the place of IMAGE makes a run that looks like
	 * any other.
	 */
	if (run_options_is_demo(r->opt)) {
		console_hide_status(&r->console);
		reporter_printf(r->opt->reporter,
				"kvmprof: no IMAGE: the embedded demo guest runs\n");
	}
	r->tick = keep_bound;
	run_watch_end();
	run_wait(r);
	return run_finish(r, e);
}

static int tell_snapshot(const struct run *r)
{
	struct err e = { 0 };
	struct buf options;
	int ret = run_snapshot_verdict(&r->snapshot, &r->opt->snapshot, &e);

	if (ret)
		reporter_printf(r->opt->reporter, "kvmprof: %s\n", e.text);
	else if (r->snapshot.done) {
		buf_init(&options);
		run_snapshot_options(r->opt->snapshot.save, &options);
		buf_u8(&options, 0);
		reporter_printf(
			r->opt->reporter,
			"kvmprof: saved %s in %.0f ms; `kvmprof run --snapshot %s%s` goes on from "
			"there\n",
			r->opt->snapshot.save, (double)r->snapshot.saved_ns / 1e6,
			r->opt->snapshot.save, options.failed ? "" : (const char *)options.data);
		buf_deinit(&options);
	}
	return ret;
}

/* Reports an error of the file to which the console's output was to be written. */
static int tell_console(struct run *r)
{
	int ret = console_error(&r->console);

	if (ret)
		reporter_printf(r->opt->reporter,
				"kvmprof: %s: cannot write the guest's console: %s; the profile is "
				"not affected\n",
				r->console.fd == STDOUT_FILENO ? "standard output"
							       : "standard error",
				strerror(-ret));
	return ret;
}

/* Reports a marker that was never found. A run that never began to collect has failed. */
static int tell_markers(const struct run *r)
{
	struct err note = { 0 };
	int ret = run_markers_verdict(&r->markers, r->vm, &note);

	if (note.code)
		reporter_printf(r->opt->reporter, "kvmprof: %s%s\n",
				ret ? "" : "warning: ", note.text);
	return ret;
}

/*
 * Detects a decompressor that finds its data corrupt, prints that and halts: no kernel was run. (It
 * runs in the lower half of the address space, where Linux never halts.)
 */
static int tell_decompressor(const struct run *r)
{
	const struct vm_result *res = vm_result(r->vm);

	if (res->reason != VM_END_HALTED || !r->source.moves || !res->have_regs ||
	    res->regs.rip >> 63)
		return 0;
	reporter_printf(r->opt->reporter,
			"kvmprof: %s: its decompressor halted for good at 0x%llx, before the "
			"kernel ran; with --append earlyprintk=ttyS0 it reports why, and "
			"--boot=vmlinux does not need it\n",
			r->source.target.name, (unsigned long long)res->regs.rip);
	return -EIO;
}

/* Returns the exit status of a run that was recorded: kvmprof's own failures take precedence. */
static int run_judge(const struct run *r)
{
	enum vm_end_reason reason = vm_result(r->vm)->reason;
	struct err e = { 0 };
	int status;

	/* A command has its own statuses, of which 1 is that the guest ended before the command. */
	if (!r->crashed && (r->panic.found.seen || r->panic.found.before) &&
	    reason != VM_END_ERROR) {
		status = r->exec.command ? run_exec_status(&r->exec, vm_result(r->vm), &e)
					 : RUN_STATUS_PANIC;
		return status ? status : 1;
	}
	if (r->crashed || reason == VM_END_TRIPLE_FAULT || reason == VM_END_ERROR ||
	    tell_markers(r) < 0 || tell_decompressor(r) < 0)
		return 1;
	if (r->alarm.found.count && (reason == VM_END_HUNG || !r->exec.command))
		return *r->alarm.found.cause ? RUN_STATUS_HUNG : RUN_STATUS_HUNG_UNKNOWN;
	status = run_exec_status(&r->exec, vm_result(r->vm), &e);
	status = status ? status : run_launched_status(r);
	if (e.code)
		reporter_printf(r->opt->reporter, "kvmprof: %s\n", e.text);
	return status;
}

int run_deinit(struct run *r)
{
	struct err e = { 0 };
	int status = 0;

	signals_set(SIGNALS_GRACE); /* the removals at the end are carried out */
	/*
	 * The daemon of libvirt or the process of a share may not answer. A disk's file may be
	 * slow, and is waited for.
	 */
	if (r->vm && !r->source.disks.n && vm_result(r->vm)->reason == VM_END_INTERRUPTED)
		signals_watch(true);
	run_control_stop(r->control);
	if (r->pipeline && !r->pipeline_done) /* vm_start() failed: the guest did not run */
		pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	status = run_alarm_deinit(r);
	/* The data of a crashed consumer thread stays as it is: base/fault.h. */
	if (r->crashed)
		r->source.target = (struct target){ 0 };
	else if (r->profile.sink)
		r->profile.sink->ops->destroy(r->profile.sink);
	pipeline_destroy(r->pipeline);
	run_keep_end(r);
	run_host_close(r);
	stat_close(r->stat);
	vm_destroy(r->vm);
	run_launched_close(&r->launched);
	attach_domain_close(r->domain);
	quirks_release(&r->quirks);
	kvm_host_close(&r->host);
	run_exec_close(&r->exec);
	run_modules_close(&r->modules);
	if (run_source_close(&r->source, &e) < 0) {
		reporter_printf(r->opt->reporter, "kvmprof: %s\n", e.text);
		status = 1;
	}
	run_snapshot_deinit(&r->snapshot);
	run_control_destroy(r->control);
	run_markers_deinit(&r->markers);
	console_deinit(&r->console);
	free(r->profile.argv);
	buf_deinit(&r->panic.found.log);
	run_counts_deinit(&r->counts);
	buf_deinit(&r->cmdline);
	buf_deinit(&r->tuned);
	io_stages_deinit(&r->requests);
	io_stages_deinit(&r->packets);
	signals_watch(false);
	signals_set(SIGNALS_END);
	return status;
}

void run_init(struct run *r)
{
	r->opt = &r->asked;
	r->start_ns = clock_mono_ns();
	r->host.fd = r->signals.fd = r->markers.wake_fd = -1;
	run_launched_init(&r->launched);
	run_snapshot_init(&r->snapshot);
	buf_init(&r->cmdline);
	buf_init(&r->tuned);
	buf_init(&r->panic.found.log);
	io_stages_init(&r->requests);
	io_stages_init(&r->packets);
	r->pipeline_options.requests = &r->requests;
	r->pipeline_options.packets = &r->packets;
}

/* Where the guest's console goes; -1: nowhere. */
static int console_fd(const struct run *r)
{
	if (r->opt->quiet || (r->opt->json && !r->opt->launch.until))
		return -1;
	return r->opt->json || run_options_to_stdout(r->opt) || r->pipeline_options.request
		       ? STDERR_FILENO
		       : STDOUT_FILENO;
}

int run_main(struct run *r, int argc, char **argv)
{
	struct err e = { 0 };
	int status, ret;

	run_init(r);
	console_init(&r->console, console_fd(r));
	if (!r->opt->tasks.no_status && (!r->opt->quiet || run_options_is_attached(r->opt)))
		console_add_status(&r->console);
	ret = run_markers_init(&r->markers, r->opt, &r->console, &e);
	if (ret == -EINVAL) {
		reporter_printf(r->opt->reporter, "%s: %s\n", argv[0], e.text);
		run_deinit(r);
		return 2;
	}
	ret = ret ? ret : run_guest(r, argc, argv, &e);
	if (ret) {
		reporter_printf(r->opt->reporter, "kvmprof: %s\n", e.text);
		status = r->launched.timed_out ? RUN_STATUS_TIMEOUT : 1;
	} else {
		status = run_judge(r);
		if ((tell_snapshot(r) < 0 || tell_console(r) < 0) && !status)
			status = 1;
	}
	if (run_deinit(r) && !status)
		status = 1;
	return status;
}
