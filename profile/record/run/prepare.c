/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/prepare.h"

#include "base/clock.h"
#include "profile/record/options/devices.h"
#include "profile/record/run/control.h"
#include "profile/record/run/exact.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/run.h"
#include "profile/record/run/sandbox.h"
#include "profile/record/run/tune.h"
#include "profile/record/run/wait.h"
#include "vmm/image/initrd.h"
#include "vmm/attach/attach.h"
#include "vmm/attach/process.h"
#include "vmm/exact/exact.h"
#include "vmm/attach/gdb.h"
#include "vmm/attach/still.h"
#include "vmm/attach/split.h"
#include "vmm/vm.h"
#include "vmm/config.h"
#include "vmm/quirks_cache.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Bytes of each vCPU's ring: a second of samples at 997 Hz with stacks of 16 KiB, in case the
 * consumer thread waits for its disk or for a processor. Only the part in use is ever touched.
 */
#define RING_SIZE (16u << 20)
/*
 * A program's stack is copied to this multiple of the usual depth, if the ring has room for some of
 * them.
 */
#define USER_STACK_TIMES 4u
#define USER_STACK_RING (1u << 20)
/* Exits come in bursts: a line on the console causes one for each character. */
#define RING_SIZE_EXITS (32u << 20)

#define MODULE_MAX (1ull << 30)

/* Opens the files of --module. run_modules_close() is necessary even after a failure. */
static int open_modules(struct run_modules *m, const struct run_options *o, struct err *e)
{
	for (unsigned int i = 0; i < o->nmodules; i++) {
		const char *args = strchr(o->module[i], '=');
		char *path = args ? strndup(o->module[i], (size_t)(args - o->module[i]))
				  : strdup(o->module[i]);
		int ret;

		m->name[m->n++] = path;
		if (!path)
			return err_nomem(e);
		ret = file_map_open(&m->file[i], path, MODULE_MAX, e);
		if (ret)
			return ret;
		m->at[i] = (struct boot_module){
			.data = m->file[i].data,
			.len = m->file[i].len,
			.name = basename(path),
			.args = args ? args + 1 : "",
		};
	}
	return 0;
}

void run_modules_close(struct run_modules *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		file_map_close(&m->file[i]);
		free(m->name[i]);
	}
	memset(m, 0, sizeof(*m));
}

/* Prints which of a disk's kernels is booted, and what was changed in it. */
static void tell_source(const struct run *r)
{
	const struct run_source *s = &r->source;

	if (r->snapshot.devices && r->snapshot.devices->net.kind != NET_NONE)
		reporter_printf(
			r->opt->reporter,
			"kvmprof: note: connections of the guest's network ended with the machine "
			"that was saved\n");
	if (s->is_uki && s->uki.profiles)
		reporter_printf(r->opt->reporter,
				"kvmprof: note: %s has %u profiles; the first one is used\n",
				s->target.name, s->uki.profiles);
	if (r->opt->initrd && s->initrd.data && s->target.is_linux &&
	    !initrd_is_known(s->initrd.data, s->initrd.len))
		reporter_printf(
			r->opt->reporter,
			"kvmprof: note: %s is neither a cpio archive nor compressed: Linux will "
			"not use it as a RAM disk\n",
			r->opt->initrd);
	if (!s->disk || r->opt->kernel)
		return;
	reporter_printf(r->opt->reporter, "kvmprof: %s: %s\n", s->target.name,
			(const char *)s->why.data);
	if (s->note.len > 1)
		reporter_printf(r->opt->reporter, "kvmprof: note: %s\n",
				(const char *)s->note.data);
}

static int open_source(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	const struct source_request request = {
		.image = o->image,
		.kernel = o->kernel,
		.initrd = o->initrd,
		.root = o->root,
		.symbols = o->symbols,
		.writable = o->disk.writable,
		.disk = o->engine == RUN_ENGINE_EXACT ? RUN_EXACT_DISK "0" : NULL,
	};
	struct run_source *s = &r->source;
	int ret;

	s->mem_size = o->mem_size;
	s->vcpus = o->vcpus;
	s->way = o->boot;
	s->guest_root = o->guest_root;
	run_disks_limit(&s->disks, &o->disk);
	if (o->sandbox != SANDBOX_OFF)
		run_disks_confine(&s->disks, o->reporter);
	if (run_options_is_attached(o))
		return run_source_of_running(s, &request, o->attach_name, e);
	if (o->snapshot.from)
		return run_snapshot_open(&r->snapshot, o, s, e);
	ret = run_source_of_image(s, &request, e);
	if ((s->disk || s->is_uki) && !o->mem_given)
		s->mem_size = RUN_MEM_DISK;
	if (ret || o->engine != RUN_ENGINE_EXACT)
		return ret ? ret : run_source_choose_protocol(s, o->boot, e);
	return run_exact_choose_protocol(s, o->boot, e);
}

static int open_inputs(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	uint64_t t0 = clock_mono_ns();
	int ret = open_source(r, e);

	if (ret)
		return ret;
	ret = run_exec_open(&r->exec, o, &r->source, e);
	if (ret)
		return ret;
	if (r->exec.files.left_out)
		reporter_printf(
			r->opt->reporter,
			"kvmprof: warning: --rootfs: %llu files are left out, the first is %s\n",
			(unsigned long long)r->exec.files.left_out, r->exec.files.first_left);
	/* With a snapshot --disk gives the current paths of the snapshot's own disks. */
	if (!o->snapshot.from)
		ret = run_disks_open(&r->source.disks, &o->disk, o->reporter, e);
	if (ret)
		return ret;
	ret = open_modules(&r->modules, o, e);
	if (ret)
		return ret;
	ret = run_snapshot_keep(&r->snapshot, o, &r->source, e);
	if (ret)
		return ret;
	r->markers.late = r->source.moves;
	r->load_ns = clock_mono_ns() - t0;
	tell_source(r);
	return 0;
}

/*
 * /dev/kvm cannot be opened: returns 0 if the run does without it, else -errno, and adds to the
 * message what the user can do.
 */
static int add_advice(const struct run *r, struct err *e)
{
	const struct err kvm = *e;
	struct process process;
	struct engine engine;
	struct err why = { 0 };

	/*
	 * A user who may attach to the process can usually open /dev/kvm, too, but not the other
	 * way round.
	 */
	if (r->opt->attach && process_look(&process, r->opt->attach, &why) == -EACCES) {
		*e = why;
		return -EACCES;
	}
	err_clear(e);
	/* A process that may trace a VMM need not be allowed to open KVM. The quirks are unknown. */
	if (run_options_is_attached(r->opt))
		return 0;
	/* stat and iosnoop count what KVM does. */
	if (strcmp(r->opt->command, "run"))
		return err_set(e, kvm.code, "%s", kvm.text);
	err_clear(&why);
	if (engine_find(&engine, &why) < 0)
		return err_set(
			e, kvm.code,
			"%.300s; or add --engine exact, which needs no KVM, but QEMU %u.%u or "
			"later: `kvmprof check` says how to get it",
			kvm.text, ENGINE_LEAST_MAJOR, ENGINE_LEAST_MINOR);
	return err_set(e, kvm.code, "%.300s; or add --engine exact, which needs no KVM", kvm.text);
}

static int open_host(struct run *r, struct err *e)
{
	int ret = kvm_host_open(&r->host, e);

	if (ret)
		return add_advice(r, e);
	ret = kvm_host_require(&r->host, e);
	if (ret)
		return ret;
	quirks_find(&r->host, &r->quirks);
	if (!r->quirks.probed)
		reporter_printf(r->opt->reporter,
				"kvmprof: warning: %s; assuming a host without quirks\n",
				r->quirks.why);
	quirks_close(&r->quirks);
	return 0;
}

/* Runs on the vCPU's thread. */
static void vcpu_begins(void *run, unsigned int vcpu)
{
	struct run *r = run;

	if (r->stat)
		stat_vcpu_begins(r->stat, vcpu);
}

static void vcpu_ends(void *run, unsigned int vcpu)
{
	struct run *r = run;

	if (r->stat)
		stat_vcpu_ends(r->stat, vcpu);
}

/* Runs on the thread that noticed it. */
static void share_ended(void *run, const char *tag, const char *how)
{
	const struct run *r = run;

	reporter_printf(
		r->opt->reporter,
		"kvmprof: warning: share %s: its process %s; the guest cannot reach its files any "
		"more\n",
		tag, how);
}

static void network_ended(void *run, const char *how)
{
	const struct run *r = run;

	reporter_printf(
		r->opt->reporter,
		"kvmprof: warning: --net user: its process %s; the guest has no network any more\n",
		how);
}

static int prepare_events(struct run *r, struct err *e)
{
	struct events *ev = &r->events;
	struct events_rate rate = run_options_rate(r->opt);
	int ret = events_prepare(ev, &rate, &r->host, e);

	for (unsigned int i = 0; !ret && i < ev->n; i++)
		if (*ev->at[i].why)
			reporter_printf(r->opt->reporter, "kvmprof: warning: event %s: %s\n",
					ev->at[i].asked, ev->at[i].why);
	if (!ret)
		run_host_open(r);
	return ret;
}

/* Warns that a Linux whose clock is the TSC does not notice the time for which it was stopped. */
static void tell_clock(const struct run *r)
{
	double s = (double)vm_tsc_jump_ms(r->vm) / 1e3;

	if (!r->snapshot.from || !r->source.target.is_linux || (s > -1 && s < 1) ||
	    strstr((const char *)r->cmdline.data, "clocksource=kvm-clock"))
		return;
	reporter_printf(
		r->opt->reporter,
		"kvmprof: %s: this host's KVM can't set a guest's TSC, which is %.0f s %s than "
		"when "
		"it was saved: %s if the TSC is the guest's clock (clocksource=kvm-clock has it "
		"not)\n",
		s < 0 ? "warning" : "note", s < 0 ? -s : s, s < 0 ? "earlier" : "later",
		s < 0 ? "time stands for so long" : "so much time has passed at once");
}

/* Builds the command line; tr has everything except for --append. */
static void make_cmdline(struct run *r, struct tune_request *tr)
{
	const struct run_options *o = r->opt;
	struct buf append;

	buf_init(&append);
	for (unsigned int i = 0; i < o->nappend; i++)
		buf_printf(&append, "%s%s", i ? " " : "", o->append[i]);
	buf_u8(&append, 0);
	r->cmdline.failed |= append.failed;
	tr->append = append.failed ? "" : (const char *)append.data;
	tune_cmdline(tr, &r->quirks, &r->cmdline, &r->tuned);
	buf_deinit(&append);
}

static int make_vm(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	const struct run_source *s = &r->source;
	struct tune_request tr = {
		.is_linux = s->target.is_linux,
		.tune = o->tune,
		.vcpus = s->vcpus,
		.tsc_khz = r->quirks.tsc_khz,
		.symbols = s->target.symbols,
		.cmdline = o->cmdline,
		.extra = run_exec_cmdline(&r->exec),
		.saved = o->snapshot.save && r->quirks.tsc_fixed,
		.disk_cmdline = (const char *)s->cmdline.data,
		.disk_initrd = (s->disk || s->is_uki) && s->initrd.len,
	};
	struct vm_config cfg = {
		.vcpu_begins = vcpu_begins,
		.vcpu_ends = vcpu_ends,
		.vcpu_ends_ctx = r,
		.bind_share = run_sandbox_share,
		.share_ended = share_ended,
		.bind_network = run_sandbox_network,
		.network_ended = network_ended,
		.share_ctx = r,
		.ready = run_sandbox_ready,
		.ready_ctx = r,
		.host = &r->host,
		.quirks = &r->quirks,
		.image = &s->image,
		.boot = s->way,
		.entry = o->entry,
		.image_name = basename(s->target.name),
		.module = r->modules.at,
		.nmodules = r->modules.n,
		.initrd = s->initrd.data,
		.initrd_len = s->initrd.len,
		.mem_size = s->mem_size,
		.pages = o->pages,
		.bind_memory = o->numa_node >= 0,
		.numa_node = (unsigned int)o->numa_node,
		.pin = o->npin ? o->pin : NULL,
		.vcpus = s->vcpus,
		.reboots = o->reboot,
		.slow_tick = r->quirks.interpreted && o->tune && s->target.is_linux,
		.plan = target_capture_plan(&s->target, o->stack_size),
		.ring_size = o->ring_size && !o->overwrite ? o->ring_size : RING_SIZE,
		.console = run_panic_put,
		.console_ctx = &r->panic.console,
	};
	int ret;

	r->panic.console.put = console_put;
	r->panic.console.ctx = &r->console;
	run_exec_configure(&r->exec, &o->exec, &r->snapshot.facts, &cfg);
	/* kvmprof stat may have no event. */
	cfg.nevents = o->freq_hz > 0 ? events_for_vm(&r->events, cfg.event) : 0;
	for (unsigned int i = 0; i < cfg.nevents; i++)
		if (cfg.event[i].kind == VM_EVENT_EXIT || cfg.event[i].kind == VM_EVENT_IO)
			cfg.ring_size = RING_SIZE_EXITS;
	/* Minutes of samples are written at once when the kernel's address becomes known. */
	if (s->moves && cfg.ring_size == RING_SIZE)
		cfg.ring_size = RING_SIZE_EXITS;
	if (cfg.plan.user_stack_max && cfg.ring_size >= USER_STACK_RING)
		cfg.plan.user_stack_max *= USER_STACK_TIMES;
	/* The kernel may move: addresses in its image are known once its own is. */
	cfg.plan.slide_unknown = s->moves && !s->target.live;
	cfg.plan.want_insn = o->mem;
	cfg.plan.want_lstar = cfg.plan.slide_unknown || s->target.live;
	ret = run_markers_configure(&r->markers, &s->target, &cfg, &r->pipeline_options, e);
	if (ret)
		return ret;
	run_options_devices(o, &cfg);
	run_disks_configure(&s->disks, &cfg);
	if (!cfg.ndisks && cfg.nevents && events_contain(&r->events, EVENT_IO))
		return err_set(e, EINVAL,
			       "event io: this guest has no disk; give it one with --disk");
	if (cfg.net.kind == NET_NONE && cfg.nevents && events_contain(&r->events, EVENT_NET))
		return err_set(e, EINVAL,
			       "event net: this guest has no network card; give it one with --net");
	tr.virtio = vm_has_virtio(&cfg);
	tr.pci = tr.virtio && cfg.transport == VM_VIRTIO_PCI;
	tr.virtio_console = cfg.virtio_console;
	if (r->snapshot.from)
		buf_printf(&r->cmdline, "%s%c", r->snapshot.facts.cmdline, 0);
	else
		make_cmdline(r, &tr);
	if (r->cmdline.failed || r->tuned.failed)
		return err_nomem(e);
	cfg.cmdline = (const char *)r->cmdline.data;
	ret = run_snapshot_configure(&r->snapshot, o, r->exec.share, &cfg, e);
	if (ret)
		return ret;
	run_sandbox_machine(&r->sandbox, &cfg);
	ret = vm_create(&r->vm, &cfg, e);
	if (ret)
		return ret;
	r->exec.vm = r->vm;
	tell_clock(r);
	cost_bound_init(&r->bound, r->vm, cfg.event, cfg.nevents, o->max_overhead / 100);
	return stat_open(&r->stat, r->vm, e);
}

#define ATTACH_AGAIN_MS 100

/* Firmware and loaders are not 64-bit code: retry until the guest is. */
static int attach_when_ready(struct run *r, const struct attach_config *cfg, struct err *e)
{
	struct pollfd signals = { .fd = r->signals.fd, .events = POLLIN };
	uint64_t start = clock_mono_ns();
	bool said = false;
	int ret;

	while ((ret = split_open(&r->vm, cfg, e)) == -EAGAIN) {
		if (!said)
			reporter_printf(
				r->opt->reporter,
				"kvmprof: process %d: %s; waiting for it (Ctrl-C to give up)\n",
				(int)cfg->pid, e->text);
		said = true;
		if (r->opt->duration_s > 0 &&
		    (double)(clock_mono_ns() - start) / 1e9 >= r->opt->duration_s) {
			const struct err why = *e;

			err_clear(e);
			return err_set(
				e, ETIMEDOUT,
				"process %d: %.200s, for all of --duration (%g s): nothing was "
				"profiled",
				(int)cfg->pid, why.text, r->opt->duration_s);
		}
		err_clear(e);
		if (poll(&signals, 1, ATTACH_AGAIN_MS) > 0 && run_must_end(r))
			return err_set(e, EINTR,
				       "process %d: interrupted before the guest could be profiled",
				       (int)cfg->pid);
	}
	if (!ret && said)
		reporter_printf(r->opt->reporter, "kvmprof: it is ready\n");
	return ret;
}

static int attach_vm(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	struct attach_config cfg = {
		.pid = o->attach,
		.gdb = o->gdb,
		.technique = o->technique,
		.machine = o->attach_machine,
		.bind = run_sandbox_tracer,
		.bind_ctx = r,
		.host = &r->host,
		.quirks = &r->quirks,
		.plan = target_capture_plan(&r->source.target, o->stack_size),
		.ring_size = o->ring_size && !o->overwrite ? o->ring_size : RING_SIZE,
	};
	struct vm_config vm = { 0 };
	struct vm_event event[VM_MAX_EVENTS];
	int ret;

	events_for_vm(&r->events, event);
	cfg.event = event[0];
	cfg.plan.want_insn = o->mem;
	cfg.plan.want_fs = o->python;
	/*
	 * A Linux with an image may have been moved; one that is read from memory has its address.
	 */
	cfg.plan.slide_unknown = r->source.target.is_linux && !r->source.target.live;
	ret = run_markers_configure(&r->markers, &r->source.target, &vm, &r->pipeline_options, e);
	if (ret)
		return ret;
	cfg.idle_start = vm.idle_start;
	run_catch_stop_signals(r);
	ret = run_launched_begin(r, &cfg, e);
	if (!ret)
		ret = o->gdb	 ? gdb_open(&r->vm, &cfg, e)
		      : o->still ? still_open(&r->vm, o->still, &cfg, e)
				 : attach_when_ready(r, &cfg, e);
	if (ret) {
		run_launched_fail(r, e);
		return ret;
	}
	r->source.vcpus = vm_vcpus(r->vm);
	cost_bound_init(&r->bound, r->vm, &cfg.event, 1, o->max_overhead / 100);
	return o->vcpu_list && !run_options_vcpus(o, r->source.vcpus)
		       ? err_set(e, EINVAL, "--cpu %s: expected vCPUs of this guest, such as 0,2-3",
				 o->vcpu_list)
		       : 0;
}

int run_prepare(struct run *r, struct err *e)
{
	int ret = run_catch_signals(r, e);

	if (ret)
		return ret;
	r->events = r->opt->events;
	if (r->opt->control)
		ret = run_control_open(&r->control, r->opt->control, e);
	if (ret)
		return ret;
	ret = open_inputs(r, e);
	if (ret)
		return ret;
	if (r->opt->engine == RUN_ENGINE_EXACT)
		return run_exact_make(r, make_cmdline, e);
	/* A machine behind a gdbstub needs no KVM, and neither does one that does not run. */
	if (!r->opt->gdb && !r->opt->still)
		ret = open_host(r, e);
	if (!ret && r->opt->freq_hz > 0)
		ret = prepare_events(r, e);
	if (ret)
		return ret;
	if (r->quirks.interpreted && r->opt->tune && r->source.target.is_linux)
		ret = run_source_unpack_initrd(&r->source, e);
	if (ret)
		return ret;
	if (!run_options_is_attached(r->opt))
		return make_vm(r, e);
	ret = attach_vm(r, e);
	/* No machine is created, so this process does not need KVM any more. */
	quirks_release(&r->quirks);
	kvm_host_close(&r->host);
	return ret;
}
