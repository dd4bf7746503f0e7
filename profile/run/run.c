/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_run: `kvmprof run`: boot, sample, write, say what happened.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "profile/run/ps_json.h"
#include "profile/control/ps_view.h"
#include "profile/run/run.h"
#include "profile/run/definition.h"
#include "profile/options/devices.h"
#include "profile/control/view.h"
#include "profile/sink/null.h"
#include "profile/perfdata/sink_pipe.h"
#include "profile/sink/ring.h"
#include "profile/summary/summary.h"
#include "profile/run/tune.h"
#include "vmm/attach/attach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Per vCPU; only what the consumer has not taken yet is ever touched. */
#define RING_SIZE (4u << 20)
/* Exits come in bursts: a line on the console is one for each character. */
#define RING_SIZE_EXITS (32u << 20)

/* What only the image tells. */
static int choose_way(struct run *r, struct err *e)
{
	const struct boot_image *img = &r->target.image;
	int ret = boot_image_way(img, r->target.name, r->opt.boot, &r->opt.boot, e);

	r->opt.moves = img->kind == BOOT_BZIMAGE &&
		       (r->opt.boot == BOOT_WAY_BZIMAGE || r->opt.boot == BOOT_WAY_LINUX32);
	return ret;
}

/* Which of a disk's kernels it is, and what was changed on its way. */
static void tell_image(const struct run *r)
{
	const struct run_image *i = &r->image;

	if (r->snapshot.devices && r->snapshot.devices->net.kind != NET_NONE)
		fputs("kvmprof: note: connections of the guest's network ended with the machine "
		      "that was saved\n",
		      stderr);
	if (i->is_uki && i->uki.profiles)
		fprintf(stderr, "kvmprof: note: %s has %u profiles, the first is taken\n",
			r->target.name, i->uki.profiles);
	if (!i->disk || r->opt.kernel)
		return;
	fprintf(stderr, "kvmprof: %s: %s\n", r->target.name, (const char *)i->why.data);
	if (i->note.len > 1)
		fprintf(stderr, "kvmprof: note: %s\n", (const char *)i->note.data);
}

static int open_inputs(struct run *r, struct err *e)
{
	uint64_t t0 = clock_mono_ns();
	int ret = 0;

	if (run_is_attached(&r->opt) && !r->opt.image)
		target_open_running(&r->target, r->opt.attach_name);
	else if (run_is_attached(&r->opt))
		ret = target_open(&r->target, r->opt.image, r->opt.symbols, e);
	else if (r->opt.snapshot.from)
		ret = run_snapshot_open(r, e);
	else
		ret = run_image_open(&r->image, &r->opt, &r->disks, &r->target, &r->initrd, e);
	if ((r->image.disk || r->image.is_uki) && !r->opt.mem_given)
		r->opt.mem_size = RUN_MEM_DISK;
	ret = ret ? ret : run_exec_open(r, e);
	if (!ret && r->exec.files.left_out)
		fprintf(stderr,
			"kvmprof: warning: --rootfs: %llu files are left out, the first is %s\n",
			(unsigned long long)r->exec.files.left_out, r->exec.files.first_left);
	if (!ret && !r->opt.snapshot.from)
		ret = run_disks_open(&r->disks, &r->opt.disk, e);
	ret = ret ? ret : run_modules_open(&r->modules, &r->opt, e);
	if (!ret && !run_is_attached(&r->opt) && !r->opt.snapshot.from)
		ret = choose_way(r, e);
	ret = ret ? ret : run_snapshot_keep(r, e);
	r->load_ns = clock_mono_ns() - t0;
	if (!ret)
		tell_image(r);
	return ret;
}

/* What stands before the profile's sink, which they take over. */
static int add_sinks(struct run *r, struct err *e)
{
	int ret = 0;

	if (r->opt.overwrite) {
		ret = sink_ring_create(&r->sink, take_ptr(r->sink), r->opt.ring_size, e);
		r->ring = r->sink;
	}
	if (!ret && r->opt.control)
		ret = sink_live_create(&r->sink, take_ptr(r->sink), e);
	return ret;
}

static int open_output(struct run *r, struct err *e)
{
	struct sink_perfdata_options so = {
		.path = r->opt.output,
		.single_file = r->opt.single_file,
		.buildid_dir = r->opt.buildid_dir,
		.no_buildid_cache = !r->opt.buildid_cache,
		/* A request ends long after its sample was taken. */
		.late_samples = r->opt.overwrite || events_have_io(&r->opt.events),
		.note = &r->note,
	};

	if (!r->opt.output)
		return sink_null_create(&r->sink, e);
	if (!run_to_stdout(&r->opt))
		return sink_perfdata_create(&r->sink, &so, e);
	if (isatty(STDOUT_FILENO))
		return err_set(e, EINVAL,
			       "-o - writes a profile, which is nothing for a terminal: "
			       "add `| perf report -i -`");
	return sink_pipe_create(&r->sink, STDOUT_FILENO, &so, e);
}

static int open_host(struct run *r, struct err *e)
{
	int ret = kvm_host_open(&r->host, e);

	ret = ret ? ret : kvm_host_require(&r->host, e);
	if (ret)
		return ret;
	quirks_probe(&r->host, &r->quirks);
	if (!r->quirks.probed)
		fprintf(stderr, "kvmprof: warning: %s; assuming a host without quirks\n",
			r->quirks.why);
	return 0;
}

/* On the vCPU's thread. */
static void vcpu_ends(void *run, unsigned int vcpu)
{
	struct run *r = run;

	if (r->stat)
		stat_vcpu_ends(r->stat, vcpu);
}

static int prepare_events(struct run *r, struct err *e)
{
	struct events *ev = &r->opt.events;
	struct events_rate rate = run_rate(&r->opt);
	int ret = events_prepare(ev, &rate, &r->host, e);

	for (unsigned int i = 0; !ret && i < ev->n; i++)
		if (*ev->at[i].why)
			fprintf(stderr, "kvmprof: warning: event %s: %s\n", ev->at[i].asked,
				ev->at[i].why);
	return ret;
}

/* A Linux whose clock is the TSC does not know that it stood. */
static void tell_clock(const struct run *r)
{
	double s = (double)vm_tsc_jump_ms(r->vm) / 1e3;

	if (!r->snapshot.from || !r->target.image.is_linux || (s > -1 && s < 1) ||
	    strstr((const char *)r->cmdline.data, "clocksource=kvm-clock"))
		return;
	fprintf(stderr,
		"kvmprof: %s: this host's KVM can't set a guest's TSC, which is %.0f s %s than "
		"when "
		"it was saved: %s if the TSC is the guest's clock (clocksource=kvm-clock has it "
		"not)\n",
		s < 0 ? "warning" : "note", s < 0 ? -s : s, s < 0 ? "earlier" : "later",
		s < 0 ? "time stands for so long" : "so much time has passed at once");
}

static int make_vm(struct run *r, struct err *e)
{
	const struct run_options *o = &r->opt;
	struct tune_request tr = {
		.is_linux = r->target.image.is_linux,
		.tune = o->tune,
		.vcpus = o->vcpus,
		.tsc_khz = r->quirks.tsc_khz,
		.cmdline = o->cmdline,
		.extra = run_exec_cmdline(&r->exec),
		.append = o->append,
		.saved = o->snapshot.save && r->quirks.tsc_fixed,
		.disk_cmdline = (const char *)r->image.cmdline.data,
		.disk_initrd = (r->image.disk || r->image.is_uki) && r->initrd.len,
	};
	struct vm_config cfg = {
		.vcpu_ends = vcpu_ends,
		.vcpu_ends_ctx = r,
		.host = &r->host,
		.quirks = &r->quirks,
		.image = &r->target.image,
		.boot = o->boot,
		.entry = o->entry,
		.image_name = basename(r->target.name),
		.module = r->modules.at,
		.nmodules = r->modules.n,
		.initrd = r->initrd.data,
		.initrd_len = r->initrd.len,
		.mem_size = o->mem_size,
		.pages = o->pages,
		.bind_memory = o->numa_node >= 0,
		.numa_node = (unsigned int)o->numa_node,
		.pin = o->npin ? o->pin : NULL,
		.vcpus = o->vcpus,
		.slow_tick = r->quirks.interpreted && o->tune && r->target.image.is_linux,
		.plan = target_capture_plan(&r->target, o->stack_size),
		.ring_size = o->ring_size && !o->overwrite ? o->ring_size : RING_SIZE,
		.console = console_put,
		.console_ctx = &r->console,
	};
	int ret;

	run_exec_configure(r, &cfg);
	/* kvmprof stat may want none. */
	cfg.nevents = o->freq_hz > 0 ? events_for_vm(&o->events, cfg.event) : 0;
	for (unsigned int i = 0; i < cfg.nevents; i++)
		if (cfg.event[i].kind == VM_EVENT_EXIT || cfg.event[i].kind == VM_EVENT_IO)
			cfg.ring_size = RING_SIZE_EXITS;
	/* It may move: what lies in its image is found once it is known where that is. */
	cfg.plan.slide_unknown = o->moves && !r->target.live;
	cfg.plan.want_insn = o->mem;
	cfg.plan.want_lstar = cfg.plan.slide_unknown || r->target.live;
	ret = run_markers_configure(&r->markers, &r->target, &cfg, e);
	if (ret)
		return ret;
	run_options_devices(o, &cfg);
	run_disks_configure(&r->disks, &cfg);
	if (!cfg.ndisks && cfg.nevents && events_have_io(&o->events))
		return err_set(e, EINVAL,
			       "event io: this guest has no disk; give it one with --disk");
	tr.virtio = vm_has_virtio(&cfg);
	tr.pci = tr.virtio && cfg.transport == VM_VIRTIO_PCI;
	tr.virtio_console = cfg.virtio_console;
	if (r->snapshot.from)
		buf_printf(&r->cmdline, "%s%c", r->snapshot.facts.cmdline, 0);
	else
		tune_cmdline(&tr, &r->quirks, &r->cmdline, &r->tuned);
	if (r->cmdline.failed || r->tuned.failed)
		return err_set(e, ENOMEM, "out of memory");
	cfg.cmdline = (const char *)r->cmdline.data;
	ret = run_snapshot_configure(r, &cfg, e);
	ret = ret ? ret : vm_create(&r->vm, &cfg, e);
	if (ret)
		return ret;
	tell_clock(r);
	cost_bound_init(&r->bound, r->vm, cfg.event, cfg.nevents, o->max_overhead / 100);
	return stat_open(&r->stat, r->vm, e);
}

#define ATTACH_AGAIN_MS 100

/* Firmware and loaders are not 64-bit code: it is asked again until the guest is. */
static int attach_when_ready(struct run *r, const struct attach_config *cfg, struct err *e)
{
	struct pollfd signals = { .fd = r->signal_fd, .events = POLLIN };
	bool said = false;
	int ret;

	while ((ret = vm_attach(&r->vm, cfg, e)) == -EAGAIN) {
		if (!said)
			fprintf(stderr,
				"kvmprof: process %d: %s; waiting for it (Ctrl-C to give up)\n",
				(int)cfg->pid, e->text);
		said = true;
		err_clear(e);
		if (poll(&signals, 1, ATTACH_AGAIN_MS) > 0)
			return err_set(e, EINTR,
				       "process %d: interrupted before the guest could be profiled",
				       (int)cfg->pid);
	}
	if (!ret && said)
		fputs("kvmprof: it is ready\n", stderr);
	return ret;
}

static int attach_vm(struct run *r, struct err *e)
{
	const struct run_options *o = &r->opt;
	struct attach_config cfg = {
		.pid = o->attach,
		.gdb = o->gdb,
		.technique = o->technique,
		.host = &r->host,
		.quirks = &r->quirks,
		.plan = target_capture_plan(&r->target, o->stack_size),
		.ring_size = o->ring_size && !o->overwrite ? o->ring_size : RING_SIZE,
	};
	struct vm_config vm = { 0 };
	struct vm_event event[VM_MAX_EVENTS];
	int ret;

	events_for_vm(&o->events, event);
	cfg.event = event[0];
	cfg.plan.want_insn = o->mem;
	/* A Linux with an image may have been moved; what is read from memory has its place. */
	cfg.plan.slide_unknown = r->target.image.is_linux && !r->target.live;
	ret = run_markers_configure(&r->markers, &r->target, &vm, e);
	cfg.idle_start = vm.idle_start;
	ret = ret ? ret : o->gdb ? vm_attach_gdb(&r->vm, &cfg, e) : attach_when_ready(r, &cfg, e);
	if (ret)
		return ret;
	r->opt.vcpus = vm_vcpus(r->vm);
	cost_bound_init(&r->bound, r->vm, &cfg.event, 1, o->max_overhead / 100);
	return o->vcpu_list && !run_options_vcpus(o)
		       ? err_set(e, EINVAL, "--cpu %s: expected vCPUs of this guest, such as 0,2-3",
				 o->vcpu_list)
		       : 0;
}

int run_prepare(struct run *r, struct err *e)
{
	int ret = run_take_signals(r, e);

	if (!ret && r->opt.control)
		ret = run_control_open(&r->control, r->opt.control, e);
	ret = ret ? ret : open_inputs(r, e);
	/* What is behind a gdbstub needs no KVM. */
	if (!ret && !r->opt.gdb)
		ret = open_host(r, e);
	if (!ret && r->opt.freq_hz > 0)
		ret = prepare_events(r, e);
	if (!ret && r->quirks.interpreted && r->opt.tune && r->target.image.is_linux)
		ret = run_image_unpack(&r->initrd, e);
	return ret ? ret : run_is_attached(&r->opt) ? attach_vm(r, e) : make_vm(r, e);
}

static int begin_profile(struct run *r, int argc, char **argv, struct err *e)
{
	int ret;

	r->load_ns += vm_result(r->vm)->load_ns;
	target_bind(&r->target, vm_memory(r->vm));
	gethostname(r->hostname, sizeof(r->hostname) - 1);
	r->info = (struct profile_info){
		.mem = r->opt.mem,
		.markers = run_has_markers(&r->opt),
		.vcpus = r->opt.vcpus,
		.hostname = r->hostname,
		.argc = argc,
		.argv = argv,
	};
	r->info.nevents = events_for_profile(&r->opt.events, r->opt.freq_hz, r->info.event);
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		const struct event_state *s = events_of_vm(&r->opt.events, i);

		if (s && s->name.class == EVENT_IO)
			r->markers.pipeline.io[i] =
				s->name.latency ? PIPELINE_IO_LATENCY : PIPELINE_IO_BYTES;
	}
	r->markers.pipeline.request = r->request;
	r->markers.pipeline.request_ctx = r->request_ctx;
	if (r->opt.tasks.off_cpu) {
		r->markers.pipeline.offcpu_period_ns = run_options_off_cpu_ns(&r->opt);
		r->markers.pipeline.offcpu_event = (uint8_t)r->info.nevents;
		r->info.event[r->info.nevents++] =
			events_off_cpu(r->markers.pipeline.offcpu_period_ns);
	}
	ret = r->sink->ops->begin(r->sink, &r->info, e);
	/* The command line and the RAM disk are in the guest, too. */
	file_map_close(&r->initrd);
	run_modules_close(&r->modules);
	return ret;
}

static int start(struct run *r, struct err *e)
{
	const struct target *t = &r->target;
	struct profile_map user = {
		.addr = t->user_start,
		.len = t->user_end - t->user_start,
		.path = "demo-user",
		.build_id = t->kernel.build_id,
		.elf = t->kernel.elf,
		.elf_len = t->kernel.elf_len,
	};
	struct guest_options go = {
		.mem = r->opt.mem,
		.runs = run_is_attached(&r->opt),
		.placed = r->snapshot.facts.slide_known,
		.slide = r->snapshot.facts.slide,
		.pa_slide = r->snapshot.facts.pa_slide,
		.moves = run_is_attached(&r->opt) ? t->image.is_linux : r->opt.moves,
		.files = { .guest_root = r->opt.guest_root, .debuginfo = { r->opt.debuginfo } },
	};
	bool have_user =
		t->user_end > t->user_start && t->kernel.build_id_len == KIMAGE_BUILD_ID_MAX;
	int ret;

	for (unsigned int i = 0; have_user && i < t->kernel.nseg; i++)
		if (t->kernel.seg[i].va == t->user_start)
			user.pgoff = t->kernel.seg[i].file_off;
	ret = pipeline_start(&r->pipeline, &r->target, r->vm, r->sink, &go, &r->markers.pipeline,
			     have_user ? &user : NULL, e);
	if (ret)
		return ret;
	if (r->opt.max_stack)
		pipeline_set_max_stack(r->pipeline, r->opt.max_stack);
	for (unsigned int i = 0; i < r->opt.vcpus; i++)
		if (!(run_options_vcpus(&r->opt) >> i & 1))
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
	struct buf json, text;
	int ret;

	if (!r->opt.tasks.ps_at_end)
		return;
	buf_init(&json);
	buf_init(&text);
	buf_printf(&json, "{\"ok\":true");
	ret = ps_json(pipeline_guest(r->pipeline), true, &json, &e);
	buf_printf(&json, "}");
	if (!ret)
		tasks = json.failed ? NULL : json_loadb((const char *)json.data, json.len, 0, NULL);
	ret = ret ? ret : ps_view_text(&text, tasks, NULL, &view, &e);
	if (ret)
		fprintf(stderr, "kvmprof: --ps-at-end: %s\n", e.text);
	else
		fwrite(text.data, 1, text.len, stderr);
	json_decref(tasks);
	buf_deinit(&json);
	buf_deinit(&text);
}

static int finish(struct run *r, struct err *e)
{
	const struct vm_result *res = vm_result(r->vm);
	struct summary s;
	uint64_t first;
	struct buf json;
	int ret, write_ret;

	run_control_stop(r->control);
	vm_join(r->vm);
	run_markers_finish(&r->markers, r->vm);
	/* What was recorded before an error (a full disk) is still worth publishing. */
	write_ret = pipeline_finish(r->pipeline, &r->stats, &r->crash, e);
	r->pipeline_done = true;
	first = vm_first_entry_ns(r->vm);
	run_summary(r, &r->stats, &s);
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

		ret = r->sink->ops->end(r->sink, &totals, e);
	}
	exec_console_end(&r->exec.console);
	console_flush(&r->console);
	if (!ret && r->opt.json)
		puts((const char *)json.data);
	buf_deinit(&json);
	if (ret)
		return ret;
	if (res->err.code) {
		fprintf(stderr, "kvmprof: %s\n", res->err.text);
		summary_print_crash(&s, stderr);
	}
	fflush(stdout);
	summary_print(&s, stderr);
	print_tasks(r);
	if (r->note.code)
		fprintf(stderr, "kvmprof: warning: %s\n", r->note.text);
	if (run_to_stdout(&r->opt) || !r->opt.output)
		return write_ret;
	fprintf(stderr,
		"kvmprof: wrote %s; look at it with `perf report -i %s` or `kvmprof report -i "
		"%s`\n",
		r->opt.output, r->opt.output, r->opt.output);
	return write_ret;
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
		100 * r->bound.worst, r->opt.max_overhead, (double)vm_period(r->vm, 0) / 1e6,
		(double)before / 1e6);
}

static int run_guest(struct run *r, int argc, char **argv, struct err *e)
{
	int ret = run_prepare(r, e);

	ret = ret ? ret : open_output(r, e);
	ret = ret ? ret : add_sinks(r, e);
	ret = ret ? ret : begin_profile(r, argc, argv, e);
	ret = ret ? ret : start(r, e);
	if (ret)
		return ret;
	r->tick = keep_bound;
	run_wait(r);
	return finish(r, e);
}

static int tell_snapshot(const struct run *r)
{
	struct err e = { 0 };
	int ret = run_snapshot_verdict(r, &e);

	if (ret)
		fprintf(stderr, "kvmprof: %s\n", e.text);
	else if (r->snapshot.done)
		fprintf(stderr,
			"kvmprof: saved %s in %.0f ms; `kvmprof run --snapshot %s` goes on from "
			"there\n",
			r->opt.snapshot.save, (double)r->snapshot.saved_ns / 1e6,
			r->opt.snapshot.save);
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

/* The exit status of a run that was recorded: kvmprof's own failures go first. */
static int judge(const struct run *r)
{
	enum vm_end_reason reason = vm_result(r->vm)->reason;
	struct err e = { 0 };
	int status;

	if (reason == VM_END_TRIPLE_FAULT || reason == VM_END_ERROR || tell_markers(r) < 0)
		return 1;
	status = run_exec_status(r, &e);
	if (e.code)
		fprintf(stderr, "kvmprof: %s\n", e.text);
	return status;
}

void run_deinit(struct run *r)
{
	run_control_stop(r->control);
	if (r->pipeline && !r->pipeline_done) /* vm_start failed: nothing ran */
		pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	if (r->sink)
		r->sink->ops->destroy(r->sink);
	pipeline_destroy(r->pipeline);
	stat_close(r->stat);
	vm_destroy(r->vm);
	attach_domain_close(r->domain);
	quirks_release(&r->quirks);
	kvm_host_close(&r->host);
	file_map_close(&r->initrd);
	run_exec_close(&r->exec);
	run_modules_close(&r->modules);
	target_close(&r->target);
	run_image_close(&r->image);
	run_disks_close(&r->disks);
	run_snapshot_deinit(&r->snapshot);
	run_control_destroy(r->control);
	run_markers_deinit(&r->markers);
	console_deinit(&r->console);
	buf_deinit(&r->cmdline);
	buf_deinit(&r->tuned);
	if (r->signal_fd >= 0)
		close(r->signal_fd);
}

void run_init(struct run *r)
{
	r->start_ns = clock_mono_ns();
	r->host.fd = r->signal_fd = r->markers.wake_fd = -1;
	buf_init(&r->cmdline);
	buf_init(&r->tuned);
}

int run_main(struct run *r, int argc, char **argv)
{
	struct err e = { 0 };
	int status, ret;

	run_init(r);
	console_init(&r->console, r->opt.quiet || r->opt.json		 ? -1
				  : run_to_stdout(&r->opt) || r->request ? STDERR_FILENO
									 : STDOUT_FILENO);
	if (!r->opt.tasks.no_status && (!r->opt.quiet || run_is_attached(&r->opt)))
		console_add_status(&r->console);
	ret = run_markers_init(&r->markers, &r->opt, &r->console, &e);
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
		status = judge(r);
		if (tell_snapshot(r) < 0 && !status)
			status = 1;
	}
	run_deinit(r);
	return status;
}

/* -1 to go on, else the exit status. */
static int take_definition(struct run *r)
{
	const struct domain_xml *d = &r->definition;
	struct err e = { 0 };
	struct buf left;

	if (run_definition_apply(&r->definition, &r->opt, &e) < 0) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	if (d->nleft) {
		buf_init(&left);
		run_definition_left(d, "kvmprof:   ", 96, &left);
		fprintf(stderr, "kvmprof: of domain %s this machine does not have:\n%s",
			d->name ? d->name : r->opt.domain,
			left.failed ? "" : (const char *)left.data);
		buf_deinit(&left);
	}
	return run_options_check_machine(&r->opt);
}

int cmd_run(int argc, char **argv)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	int status;

	if (!r) {
		fputs("kvmprof: out of memory\n", stderr);
		return 1;
	}
	status = run_options_parse(&r->opt, argc, argv);
	if (status < 0 && r->opt.domain)
		status = take_definition(r);
	if (status < 0)
		status = run_main(r, argc, argv);
	domain_xml_deinit(&r->definition);
	return status;
}
