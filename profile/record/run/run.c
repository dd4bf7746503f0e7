/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run: one recording, from its options to its exit status. */
#include "profile/record/run/run.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/format/perfdata/leftover.h"
#include "profile/record/run/exact.h"
#include "profile/record/run/exact_counts.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/ps_json.h"
#include "profile/record/run/sandbox.h"
#include "profile/record/control/ps_view.h"
#include "profile/record/control/view.h"
#include "profile/format/sink/null.h"
#include "profile/format/perfdata/sink_pipe.h"
#include "profile/format/sink/ring.h"
#include "profile/record/summary/summary.h"
#include "vmm/attach/attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

/* What stands before the profile's sink, which they take over. */
static int add_sinks(struct run *r, struct err *e)
{
	int ret = 0;

	if (r->opt->overwrite) {
		ret = sink_ring_create(&r->sink, take_ptr(r->sink), r->opt->ring_size, e);
		r->ring = r->sink;
	}
	if (!ret && r->opt->control)
		ret = sink_live_create(&r->sink, take_ptr(r->sink), e);
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
		.late_samples = r->opt->overwrite || events_have(&r->events, EVENT_IO) ||
				events_have(&r->events, EVENT_NET),
		.note = &r->note,
	};
	char left[1024];

	if (!r->opt->output)
		return sink_null_create(&r->sink, e);
	if (!run_to_stdout(r->opt)) {
		if (leftover_tell(r->opt->output, left, sizeof(left)))
			fprintf(stderr, "kvmprof: note: %s\n", left);
		return sink_perfdata_create(&r->sink, &so, e);
	}
	if (isatty(STDOUT_FILENO))
		return err_set(e, EINVAL,
			       "-o - writes a profile, which is nothing for a terminal: "
			       "add `| perf report -i -`");
	return sink_pipe_create(&r->sink, STDOUT_FILENO, &so, e);
}

static int begin_profile(struct run *r, int argc, char **argv, struct err *e)
{
	int ret;

	r->load_ns += vm_result(r->vm)->load_ns;
	target_bind(&r->source.target, vm_memory(r->vm));
	gethostname(r->hostname, sizeof(r->hostname) - 1);
	r->info = (struct profile_info){
		.mem = r->opt->mem,
		.markers = run_has_markers(r->opt),
		.vcpus = r->source.vcpus,
		.hostname = r->hostname,
		.argc = argc,
		.argv = argv,
	};
	if (r->opt->engine == RUN_ENGINE_EXACT) {
		r->argv = calloc((size_t)argc + 1, sizeof(*r->argv));
		if (!r->argv)
			return err_set(e, ENOMEM, "out of memory");
		run_exact_info(r, &r->info, r->argv);
	}
	r->info.nevents = events_for_profile(&r->events, r->opt->freq_hz, r->info.event);
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		const struct event_state *s = events_of_vm(&r->events, i);

		if (s && s->name.class == EVENT_IO)
			r->markers.pipeline.io[i] =
				s->name.latency ? PIPELINE_IO_LATENCY : PIPELINE_IO_BYTES;
		if (s && s->name.class == EVENT_NET)
			r->markers.pipeline.io[i] = PIPELINE_NET_BYTES;
	}
	r->markers.pipeline.request = r->request;
	r->markers.pipeline.stages = r->stages;
	r->markers.pipeline.request_ctx = r->request_ctx;
	r->markers.pipeline.requests = &r->requests;
	r->markers.pipeline.packets = &r->packets;
	if (r->opt->tasks.off_cpu) {
		r->markers.pipeline.offcpu_period_ns = run_options_off_cpu_ns(r->opt);
		r->markers.pipeline.offcpu_event = (uint8_t)r->info.nevents;
		r->info.event[r->info.nevents++] =
			events_off_cpu(r->markers.pipeline.offcpu_period_ns);
	}
	ret = run_host_add_event(r, e);
	if (ret)
		return ret;
	if (r->opt->call_counts)
		run_counts_begin(&r->counts, &r->info, &r->markers.pipeline);
	ret = r->sink->ops->begin(r->sink, &r->info, e);
	/* The command line and the RAM disk are in the guest, too. */
	file_map_close(&r->source.initrd);
	run_modules_close(&r->modules);
	return ret;
}

/* Processes of a guest that boots now write theirs from now on; a file's time is of the kernel's last tick. */
static time_t no_map_before(const struct run *r)
{
	return run_is_attached(r->opt) || r->snapshot.from ? 0 : time(NULL) - 1;
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
		.mem = r->opt->mem,
		.host = r->has_host,
		.host_names = &r->host_names,
		.host_switches = r->host_switches,
		.runs = run_is_attached(r->opt),
		.placed = r->source.placed,
		.slide = r->source.slide,
		.pa_slide = r->source.pa_slide,
		.moves = run_is_attached(r->opt) ? t->image.is_linux : r->source.moves,
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
	ret = pipeline_start(&r->pipeline,
			     &(struct pipeline_parts){ &r->source.target, r->vm, r->sink }, &go,
			     &r->markers.pipeline, have_user ? &user : NULL, e);
	if (ret)
		return ret;
	if (r->opt->max_stack)
		pipeline_set_max_stack(r->pipeline, r->opt->max_stack);
	for (unsigned int i = 0; i < r->source.vcpus; i++)
		if (!(run_options_vcpus(r->opt, r->source.vcpus) >> i & 1))
			vm_collect_vcpu(r->vm, i, false);
	if (r->control)
		ret = run_control_start(r->control, r, e);
	return ret ? ret : vm_start(r->vm, e);
}

/* --ps-at-end: the guest stands, its memory is still there. */
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
	ret = ps_look(pipeline_guest(r->pipeline), PS_WITH_STACKS, &tasks, &e);
	ret = ret ? ret : ps_view_text(&text, tasks, NULL, &view, &e);
	if (ret)
		fprintf(stderr, "kvmprof: --ps-at-end: %s\n", e.text);
	else
		fwrite(text.data, 1, text.len, stderr);
	json_decref(tasks);
	buf_deinit(&text);
}

/* What became of the profile. lost: the run's failure before its sink knew of one. */
static int tell_output(const struct run *r, const struct err *lost, struct err *e)
{
	const char *output = r->opt->output;

	if (lost->code)
		return err_set(e, lost->code, "%s%s%s", lost->text,
			       output && !run_to_stdout(r->opt) ? "; what came before that is in "
								: "",
			       output && !run_to_stdout(r->opt) ? output : "");
	if (output && !run_to_stdout(r->opt) && r->opt->summary)
		fprintf(stderr,
			"kvmprof: wrote %s; look at it with `perf report -i %s` or `kvmprof "
			"report -i %s`\n",
			output, output, output);
	return 0;
}

/* --no-summary: of its lines only what somebody has to know. */
static void tell_summary(const struct run *r, const struct summary *s)
{
	static const char warning[] = "kvmprof: warning: ";
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *f;

	if (r->opt->summary) {
		summary_print(s, stderr);
		return;
	}
	f = open_memstream(&text, &len);
	if (!f)
		return;
	summary_print(s, f);
	fclose(f);
	for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1)
		if (!strncmp(line, warning, strlen(warning)))
			fprintf(stderr, "%.*s\n", (int)(end - line), line);
}

/* The thread that knew all about the profile is lost; what is left is the guest's own. */
static int finish_crashed(struct run *r)
{
	const struct vm_result *res = vm_result(r->vm);

	exec_console_end(&r->exec.console);
	run_drain_console(r);
	run_leave_signals(r);
	if (res->err.code)
		fprintf(stderr, "kvmprof: %s\n", res->err.text);
	fflush(stdout);
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

	run_control_stop(r->control);
	run_has_crashed(r);
	vm_join(r->vm);
	/* A process has its threads back; a gdbstub's machine is stopped for names as long as we ask. */
	if (!r->opt->gdb)
		run_give_stops_back(r);
	run_markers_finish(&r->markers, r->vm);
	/* What was recorded before an error (a full disk) is still worth publishing. */
	pipeline_finish(r->pipeline, &r->stats, &r->crash, &lost);
	r->pipeline_done = true;
	if (run_has_crashed(r))
		return finish_crashed(r);
	if (r->opt->call_counts && !lost.code)
		(void)run_counts_write(r, &lost);
	first = vm_first_entry_ns(r->vm);
	run_summary(r, &r->stats, &s);
	s.last = pipeline_last(r->pipeline, res->vcpu);
	buf_init(&json);
	summary_json(&s, &json);
	buf_u8(&json, 0);
	ret = json.failed ? err_set(e, ENOMEM, "out of memory") : 0;
	if (!ret) {
		struct profile_totals totals = {
			.json = (const char *)json.data,
			.first_ns = first,
			.last_ns = res->end_ns,
		};

		/* It knows best what was lost, also of what failed during the run. */
		ret = r->sink->ops->end(r->sink, &totals, e);
	}
	exec_console_end(&r->exec.console);
	run_drain_console(r);
	/* The profile is complete: a signal may end what is left, such as words for a stopped terminal. */
	run_leave_signals(r);
	s.console_dropped = console_dropped(&r->console);
	if (!json.failed && r->json)
		fprintf(r->json, "%s\n", (const char *)json.data);
	if (res->err.code) {
		fprintf(stderr, "kvmprof: %s\n", res->err.text);
		summary_print_crash(&s, stderr);
	}
	fflush(stdout);
	tell_summary(r, &s);
	if (r->opt->call_counts)
		run_counts_print(r);
	print_tasks(r);
	if (r->note.code)
		fprintf(stderr, "kvmprof: warning: %s\n", r->note.text);
	buf_deinit(&json);
	return ret ? ret : tell_output(r, &lost, e);
}

/* --max-overhead: said once, kept always. */
static void keep_bound(struct run *r, uint64_t now_ns)
{
	uint64_t before = vm_period(r->vm, 0);

	if (!cost_bound_look(&r->bound, now_ns))
		return;
	console_hide_status(&r->console);
	fprintf(stderr,
		"kvmprof: sampling took %.2f %% of the guest's time, more than --max-overhead %g: "
		"from now on a sample every %.3f ms instead of %.3f ms\n",
		100 * r->bound.worst, r->opt->max_overhead, (double)vm_period(r->vm, 0) / 1e6,
		(double)before / 1e6);
}

static int run_guest(struct run *r, int argc, char **argv, struct err *e)
{
	int ret = run_prepare(r, e);

	ret = ret ? ret : open_output(r, e);
	ret = ret ? ret : add_sinks(r, e);
	ret = ret ? ret : begin_profile(r, argc, argv, e);
	if (!ret && run_is_attached(r->opt))
		run_host_threads(r);
	ret = ret ? ret : run_sandbox_begin(r, e);
	ret = ret ? ret : run_start(r, e);
	if (ret)
		return ret;
	r->tick = keep_bound;
	run_wait(r);
	return run_finish(r, e);
}

static int tell_snapshot(const struct run *r)
{
	struct err e = { 0 };
	struct buf options;
	int ret = run_snapshot_verdict(&r->snapshot, &r->opt->snapshot, &e);

	if (ret)
		fprintf(stderr, "kvmprof: %s\n", e.text);
	else if (r->snapshot.done) {
		buf_init(&options);
		run_snapshot_options(r->opt->snapshot.save, &options);
		buf_u8(&options, 0);
		fprintf(stderr,
			"kvmprof: saved %s in %.0f ms; `kvmprof run --snapshot %s%s` goes on from "
			"there\n",
			r->opt->snapshot.save, (double)r->snapshot.saved_ns / 1e6,
			r->opt->snapshot.save, options.failed ? "" : (const char *)options.data);
		buf_deinit(&options);
	}
	return ret;
}

/* The guest's words, where they were asked for. */
static int tell_console(struct run *r)
{
	int ret = console_error(&r->console);

	if (ret)
		fprintf(stderr,
			"kvmprof: %s: cannot write the guest's console: %s; the profile is not "
			"concerned\n",
			r->console.fd == STDOUT_FILENO ? "standard output" : "standard error",
			strerror(-ret));
	return ret;
}

/* Waited in vain for a moment? A run that never began to collect is no success. */
static int tell_markers(const struct run *r)
{
	struct err note = { 0 };
	int ret = run_markers_verdict(&r->markers, r->vm, &note);

	if (note.code)
		fprintf(stderr, "kvmprof: %s%s\n", ret ? "" : "warning: ", note.text);
	return ret;
}

/*
 * A decompressor that finds its data corrupt says so and halts: a kernel was never run. (It runs
 * in the lower half of the address space, where no Linux proper halts.)
 */
static int tell_decompressor(const struct run *r)
{
	const struct vm_result *res = vm_result(r->vm);

	if (res->reason != VM_END_HALTED || !r->source.moves || !res->have_regs ||
	    res->regs.rip >> 63)
		return 0;
	fprintf(stderr,
		"kvmprof: %s: its decompressor halted for good at 0x%llx, before the kernel ran; "
		"with --append earlyprintk=ttyS0 it says why, and --boot=vmlinux does without it\n",
		r->source.target.name, (unsigned long long)res->regs.rip);
	return -EIO;
}

/* The exit status of a run that was recorded: kvmprof's own failures go first. */
static int run_judge(const struct run *r)
{
	enum vm_end_reason reason = vm_result(r->vm)->reason;
	struct err e = { 0 };
	int status;

	if (r->crashed || reason == VM_END_TRIPLE_FAULT || reason == VM_END_ERROR ||
	    tell_markers(r) < 0 || tell_decompressor(r) < 0)
		return 1;
	status = run_exec_status(&r->exec, vm_result(r->vm), &e);
	if (e.code)
		fprintf(stderr, "kvmprof: %s\n", e.text);
	return status;
}

int run_deinit(struct run *r)
{
	struct err e = { 0 };
	int status = 0;

	run_block_signals(); /* what is removed at the end is removed */
	run_control_stop(r->control);
	if (r->pipeline && !r->pipeline_done) /* vm_start failed: nothing ran */
		pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	/* What the consumer's thread used stays as it is when that was lost: base/fault.h. */
	if (r->crashed)
		r->source.target = (struct target){ 0 };
	else if (r->sink)
		r->sink->ops->destroy(r->sink);
	pipeline_destroy(r->pipeline);
	run_host_close(r);
	stat_close(r->stat);
	vm_destroy(r->vm);
	attach_domain_close(r->domain);
	quirks_release(&r->quirks);
	kvm_host_close(&r->host);
	run_exec_close(&r->exec);
	run_modules_close(&r->modules);
	if (source_close(&r->source, &e) < 0) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		status = 1;
	}
	run_snapshot_deinit(&r->snapshot);
	run_control_destroy(r->control);
	run_markers_deinit(&r->markers);
	console_deinit(&r->console);
	free(r->argv);
	run_counts_deinit(&r->counts);
	buf_deinit(&r->cmdline);
	buf_deinit(&r->tuned);
	io_requests_deinit(&r->requests);
	io_requests_deinit(&r->packets);
	if (r->signal_fd >= 0)
		close(r->signal_fd);
	return status;
}

void run_init(struct run *r)
{
	r->opt = &r->asked;
	r->start_ns = clock_mono_ns();
	r->host.fd = r->signal_fd = r->markers.wake_fd = -1;
	buf_init(&r->cmdline);
	buf_init(&r->tuned);
	io_requests_init(&r->requests);
	io_requests_init(&r->packets);
}

int run_main(struct run *r, int argc, char **argv)
{
	struct err e = { 0 };
	int status, ret;

	run_init(r);
	console_init(&r->console, r->opt->quiet || r->opt->json		? -1
				  : run_to_stdout(r->opt) || r->request ? STDERR_FILENO
									: STDOUT_FILENO);
	if (!r->opt->tasks.no_status && (!r->opt->quiet || run_is_attached(r->opt)))
		console_add_status(&r->console);
	ret = run_markers_init(&r->markers, r->opt, &r->console, &e);
	if (ret == -EINVAL) {
		fprintf(stderr, "%s: %s\n", argv[0], e.text);
		run_deinit(r);
		return 2;
	}
	ret = ret ? ret : run_guest(r, argc, argv, &e);
	if (ret) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		status = 1;
	} else {
		status = run_judge(r);
		if ((tell_snapshot(r) < 0 || tell_console(r) < 0) && !status)
			status = 1;
	}
	if (run_deinit(r) && !status)
		status = 1;
	return status;
}
