/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_run: `kvmprof run`: boot, sample, write, say what happened.
 */
#include "profile/cmd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "profile/run.h"
#include "profile/sink_pipe.h"
#include "profile/summary.h"
#include "profile/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INITRD_MAX (1ull << 30)
/* Per vCPU; only what the consumer has not taken yet is ever touched. */
#define RING_SIZE (4u << 20)

/* Resident bytes of this process, less those of guest RAM. */
static uint64_t rss_beyond_guest(const struct gmem *mem)
{
	cleanup_fclose FILE *f = fopen("/proc/self/smaps", "re");
	uint64_t start = 0, rss = 0, kb;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long a, b;

		if (sscanf(line, "%llx-%llx ", &a, &b) == 2) {
			start = a;
		} else if (sscanf(line, "Rss: %llu kB", &a) == 1) {
			bool guest = false;

			kb = a;
			for (unsigned int i = 0; i < mem->n; i++) {
				uint64_t h = (uintptr_t)mem->region[i].host;

				guest |= start >= h && start - h < mem->region[i].size;
			}
			rss += guest ? 0 : kb << 10;
		}
	}
	return rss;
}

static int open_inputs(struct run *r, struct err *e)
{
	uint64_t t0 = clock_mono_ns();
	int ret = target_open(&r->target, r->opt.image, r->opt.symbols, e);

	if (!ret && r->opt.initrd)
		ret = file_map_open(&r->initrd, r->opt.initrd, INITRD_MAX, e);
	r->load_ns = clock_mono_ns() - t0;
	return ret;
}

static int open_output(struct run *r, struct err *e)
{
	struct sink_perfdata_options so = {
		.path = r->opt.output,
		.single_file = r->opt.single_file,
		.buildid_dir = r->opt.buildid_dir,
		.no_buildid_cache = !r->opt.buildid_cache,
		.note = &r->note,
	};

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

static int make_vm(struct run *r, struct err *e)
{
	const struct run_options *o = &r->opt;
	struct tune_request tr = {
		.is_linux = r->target.image.is_linux,
		.tune = o->tune,
		.vcpus = o->vcpus,
		.tsc_khz = r->quirks.tsc_khz,
		.cmdline = o->cmdline,
		.append = o->append,
	};
	struct vm_config cfg = {
		.vcpu_ends = vcpu_ends,
		.vcpu_ends_ctx = r,
		.host = &r->host,
		.quirks = &r->quirks,
		.image = &r->target.image,
		.boot = o->boot,
		.initrd = r->initrd.data,
		.initrd_len = r->initrd.len,
		.mem_size = o->mem_size,
		.vcpus = o->vcpus,
		.slow_tick = r->quirks.interpreted && o->tune && r->target.image.is_linux,
		.event = { { .kind = VM_EVENT_WALL,
			     .period = (uint64_t)llround(1e9 / o->freq_hz),
			     .jitter = o->jitter } },
		.nevents = o->freq_hz > 0,
		.plan = target_capture_plan(&r->target, o->stack_size),
		.ring_size = RING_SIZE,
		.console = console_put,
		.console_ctx = &r->console,
	};
	int ret;

	/* It may move: what lies in its image is found once it is known where that is. */
	cfg.plan.slide_unknown = o->boot == BOOT_WAY_BZIMAGE && !r->target.live;
	cfg.plan.want_lstar = cfg.plan.slide_unknown || r->target.live;
	tune_cmdline(&tr, &r->quirks, &r->cmdline, &r->tuned);
	if (r->cmdline.failed || r->tuned.failed)
		return err_set(e, ENOMEM, "out of memory");
	cfg.cmdline = (const char *)r->cmdline.data;
	ret = vm_create(&r->vm, &cfg, e);
	if (ret)
		return ret;
	cost_bound_init(&r->bound, r->vm, cfg.nevents, o->max_overhead / 100);
	return stat_open(&r->stat, r->vm, e);
}

int run_prepare(struct run *r, struct err *e)
{
	int ret = run_take_signals(r, e);

	ret = ret ? ret : open_inputs(r, e);
	ret = ret ? ret : open_host(r, e);
	return ret ? ret : make_vm(r, e);
}

static int begin_profile(struct run *r, int argc, char **argv, struct err *e)
{
	int ret;

	r->load_ns += vm_result(r->vm)->load_ns;
	target_bind(&r->target, vm_memory(r->vm));
	gethostname(r->hostname, sizeof(r->hostname) - 1);
	r->info = (struct profile_info){
		.event = { PROFILE_EVENT_WALL(r->opt.freq_hz) },
		.nevents = 1,
		.vcpus = r->opt.vcpus,
		.hostname = r->hostname,
		.argc = argc,
		.argv = argv,
	};
	ret = r->sink->ops->begin(r->sink, &r->info, e);
	/* The command line and the RAM disk are in the guest, too. */
	file_map_close(&r->initrd);
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
		.moves = r->opt.boot == BOOT_WAY_BZIMAGE,
		.files = { .guest_root = r->opt.guest_root, .debuginfo = { r->opt.debuginfo } },
	};
	bool have_user =
		t->user_end > t->user_start && t->kernel.build_id_len == KIMAGE_BUILD_ID_MAX;
	int ret;

	for (unsigned int i = 0; have_user && i < t->kernel.nseg; i++)
		if (t->kernel.seg[i].va == t->user_start)
			user.pgoff = t->kernel.seg[i].file_off;
	ret = pipeline_start(&r->pipeline, &r->target, r->vm, r->sink, &go,
			     have_user ? &user : NULL, e);
	return ret ? ret : vm_start(r->vm, e);
}

static int finish(struct run *r, struct err *e)
{
	const struct vm_result *res = vm_result(r->vm);
	struct summary s = {
		.opt = &r->opt,
		.target = &r->target,
		.quirks = &r->quirks,
		.vm = r->vm,
		.stats = &r->stats,
		.stat = r->stat,
		.bound = &r->bound,
		.crash = &r->crash,
		.tuned = (const char *)r->tuned.data,
		.load_ns = r->load_ns,
	};
	uint64_t first;
	struct buf json;
	int ret, write_ret;

	vm_join(r->vm);
	s.rss_extra = rss_beyond_guest(vm_memory(r->vm));
	/* What was recorded before an error (a full disk) is still worth publishing. */
	write_ret = pipeline_finish(r->pipeline, &r->stats, &r->crash, e);
	r->pipeline_done = true;
	first = vm_first_entry_ns(r->vm);
	if (first)
		s.startup_ns = first - r->start_ns - r->load_ns;
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
	if (r->note.code)
		fprintf(stderr, "kvmprof: warning: %s\n", r->note.text);
	if (run_to_stdout(&r->opt))
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
	ret = ret ? ret : begin_profile(r, argc, argv, e);
	ret = ret ? ret : start(r, e);
	if (ret)
		return ret;
	r->tick = keep_bound;
	run_wait(r);
	return finish(r, e);
}

void run_deinit(struct run *r)
{
	if (r->pipeline && !r->pipeline_done) /* vm_start failed: nothing ran */
		pipeline_finish(r->pipeline, &r->stats, &r->crash, NULL);
	if (r->sink)
		r->sink->ops->destroy(r->sink);
	pipeline_destroy(r->pipeline);
	stat_close(r->stat);
	vm_destroy(r->vm);
	quirks_release(&r->quirks);
	kvm_host_close(&r->host);
	file_map_close(&r->initrd);
	target_close(&r->target);
	console_deinit(&r->console);
	buf_deinit(&r->cmdline);
	buf_deinit(&r->tuned);
	if (r->signal_fd >= 0)
		close(r->signal_fd);
}

void run_init(struct run *r)
{
	memset(r, 0, sizeof(*r));
	r->host.fd = r->signal_fd = -1;
	buf_init(&r->cmdline);
	buf_init(&r->tuned);
}

int cmd_run(int argc, char **argv)
{
	uint64_t start_ns = clock_mono_ns();
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	struct err e = { 0 };
	int status, ret;

	if (!r) {
		fputs("kvmprof: out of memory\n", stderr);
		return 1;
	}
	run_init(r);
	r->start_ns = start_ns;
	status = run_options_parse(&r->opt, argc, argv);
	if (status >= 0)
		return status;
	console_init(&r->console, r->opt.quiet || r->opt.json ? -1
				  : run_to_stdout(&r->opt)    ? STDERR_FILENO
							      : STDOUT_FILENO);
	ret = run_guest(r, argc, argv, &e);
	if (ret) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		status = 1;
	} else {
		enum vm_end_reason reason = vm_result(r->vm)->reason;

		status = reason == VM_END_TRIPLE_FAULT || reason == VM_END_ERROR;
	}
	run_deinit(r);
	return status;
}
