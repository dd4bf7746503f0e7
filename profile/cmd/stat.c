/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_stat: `kvmprof stat`: boot as `kvmprof run` does, and count instead of recording.
 */
#include "profile/cmd/cmd.h"
#include "profile/cmd/common.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "profile/record/run/run.h"
#include "profile/record/run/sandbox.h"
#include "vmm/vm.h"
#include "base/ring.h"
#include "vmm/control.h"
#include "vmm/end.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than rows ever are wide; a separator is a few bytes. */
#define SEP_MAX 16u

struct stat_options {
	double interval_s; /* 0: none */
	const char *sep;   /* NULL: for people */
	bool per_vcpu;
};

/* State of the output while the guest runs; run.tick_ctx. */
struct stat_run {
	struct run run;
	struct stat_options opt;
	struct stat_table now, before, part;
	uint64_t due_ns; /* end of the interval, since the guest's first instruction */
	bool failed;	 /* no memory for JSON */
};

static int parse_interval_ms(void *at, char *arg, struct err *e)
{
	double *seconds = at, ms;

	(void)e;
	if (!number_real(arg, 50, 1e9, &ms))
		return -EINVAL;
	*seconds = ms / 1e3;
	return 0;
}

static int parse_separator(void *at, char *arg, struct err *e)
{
	(void)e;
	*(const char **)at = arg;
	return *arg && strlen(arg) <= SEP_MAX ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct stat_run
/* Options with the same meaning as for `kvmprof run`. */
#define AS_RUN(name, text) OPTION_AS(name, text, run_option_rows, run.asked)

static const struct option_row rows[] = {
	OPTION_HEADING("Counters:\n"),
	{ "interval", 0, "SECONDS",
	  "also print the counts of each interval of this length, 0.05 or more",
	  OPTION_SECONDS(opt.interval_s, 0.05, 1e6, "seconds, 0.05 or more") },
	{ "interval-print", 'I', "MS", "the same in milliseconds, as in perf stat",
	  OPTION_CALL_AT(parse_interval_ms, opt.interval_s, "milliseconds, 50 or more") },
	{ "no-aggr", 'A', NULL, "a line for each virtual CPU, not their sum",
	  OPTION_PUT(opt.per_vcpu, true) },
	{ "field-separator", 'x', "SEP", "\nfields for a spreadsheet, with SEP between them",
	  OPTION_CALL_AT(parse_separator, opt.sep, "a separator of 1 to 16 bytes") },
	AS_RUN("json", "JSON, an object a line"),
	OPTION_HEADING("\nGuest, as for `kvmprof run':\n"),
	AS_RUN("boot", "vmlinux (default) or bzimage"),
	AS_RUN("memory", NULL),
	AS_RUN("vcpus", NULL),
	AS_RUN("initrd", NULL),
	AS_RUN("disk", "a disk, as for kvmprof run"),
	AS_RUN("append", NULL),
	AS_RUN("cmdline", NULL),
	AS_RUN("no-tune", NULL),
	AS_RUN("duration", "stop after this time (default: when the guest ends)"),
	OPTION_HEADING(
		"\n"
		"Sampling, to measure its cost (default: none; the samples are discarded):\n"),
	AS_RUN("freq", "samples a second on each vCPU"),
	AS_RUN("no-jitter", "strictly periodic"),
	AS_RUN("max-overhead", NULL),
	AS_RUN("stack-size", NULL),
	OPTION_HEADING("\n"),
	AS_RUN("sandbox", NULL),
	AS_RUN("quiet", "do not show the guest's console"),
	OPTION_HELP,
	{ 0 },
};

#define STAT_RUNNING                                                                        \
	"stat counts a guest that it boots; of a machine that runs already `kvmprof attach" \
	" PID` makes a profile"
#define STAT_EVENTS                                                                    \
	"stat counts exits and where the time went, and takes no events; `kvmprof run" \
	" -e EVENTS IMAGE` samples by them"

/* Options of perf stat. */
static const struct option_habit habits[] = {
	{ "-p", STAT_RUNNING },
	{ "--pid", STAT_RUNNING },
	{ "-e", STAT_EVENTS },
	{ "--event", STAT_EVENTS },
	{ "-a", "a guest's vCPUs are all counted; -A shows each" },
	{ "-r", "`kvmprof bench` repeats runs" },
	{ NULL, NULL },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof stat [OPTIONS] [IMAGE]\n"
		 "\n"
		 "Boot a kernel under KVM and count its VM exits by reason, and the time in the "
		 "guest,\n"
		 "in KVM, and in the VMM. IMAGE is as for `kvmprof run'. The guest's console goes\n"
		 "to standard error, the counters to standard output.\n"
		 "\n",
	.rows = rows,
	.habits = habits,
	.column = RUN_OPTIONS_COLUMN,
};

/* -1 to go on, else the exit status. */
static int stat_parse(struct stat_run *s, int argc, char **argv)
{
	struct run_options *run = &s->run.asked;
	int ret;

	run->reporter = &cmd_reporter;
	run->help = stdout;
	run_options_default(run);
	run->command = "stat";
	run->freq_hz = 0;
	ret = run_options_parse_rows(&set, s, argc, argv, run);
	if (ret >= 0)
		return ret;
	if (optind < argc)
		run->image = argv[optind++];
	/* A number is no kernel, unless a file is called so. */
	if (run->image && *run->image && !run->image[strspn(run->image, "0123456789")] &&
	    access(run->image, F_OK) < 0)
		return run_options_wrong(
			run, "%s is not a file, and looks like a PID: " STAT_RUNNING, run->image);
	if (optind < argc)
		return run_options_wrong(run, "unexpected argument %s: expected one IMAGE at most",
					 argv[optind]);
	if (run->boot == BOOT_PROTOCOL_BZIMAGE && !run->image)
		return run_options_wrong(run, "--boot bzimage needs a bzImage as IMAGE");
	if (s->opt.sep && run->json)
		return run_options_wrong(run, "-x and --json are two output formats: drop one");
	if (run->max_overhead > 0 && run->freq_hz <= 0)
		return run_options_wrong(run, "--max-overhead limits sampling: add --freq");
	run->stack_size &= ~7u;
	return -1;
}

static void stat_write(struct stat_run *s, const struct stat_table *t, bool json, bool interval)
{
	struct stat_style style = {
		.sep = s->opt.sep,
		.per_vcpu = s->opt.per_vcpu,
		.interval = interval,
		.time_ns = s->now.elapsed_ns,
	};
	struct json_writer w;

	if (!json) {
		stat_print(t, &style, stdout);
		return;
	}
	json_open(&w);
	if (interval) {
		json_put(&w, "interval_end_seconds",
			 json_fixed(6, (double)s->now.elapsed_ns / 1e9));
		json_object_begin(&w, "stat");
	}
	stat_json(&w, t);
	if (interval)
		json_object_end(&w);
	s->failed |= json_close(&w, stdout) != 0;
}

static void stat_write_interval(struct run *r, struct stat_run *s)
{
	stat_read(r->stat, &s->now);
	s->part = s->now;
	stat_subtract(&s->part, &s->before);
	stat_write(s, &s->part, r->opt->json, true);
	fflush(stdout);
	s->before = s->now;
}

/* The samples are not used, only their cost. */
static void stat_drain(struct vm *vm)
{
	size_t len;

	for (unsigned int i = 0; i < vm_vcpus(vm); i++)
		while (ring_peek(vm_ring(vm, i), &len))
			ring_release(vm_ring(vm, i));
}

/* Then the end of the time is known, and it is in the past. */
static bool stat_has_ended(const struct vm *vm)
{
	struct pollfd end = { .fd = vm_end_fd(vm), .events = POLLIN };

	return poll(&end, 1, 0) != 0;
}

static void stat_tick(struct run *r, uint64_t now_ns)
{
	struct stat_run *s = r->tick_ctx;
	uint64_t step = (uint64_t)(s->opt.interval_s * 1e9), first = vm_first_entry_ns(r->vm);

	stat_drain(r->vm);
	if (cost_bound_check(&r->bound, now_ns))
		fprintf(stderr, "kvmprof: --max-overhead: from now on a sample every %.3f ms\n",
			(double)vm_period(r->vm, 0) / 1e6);
	if (!step || !first || now_ns < first || now_ns - first < s->due_ns + step ||
	    stat_has_ended(r->vm))
		return;
	s->due_ns += (now_ns - first - s->due_ns) / step * step;
	stat_write_interval(r, s);
}

static void stat_print_end(struct run *r, struct stat_run *s)
{
	const struct vm_result *res = vm_result(r->vm);

	if (r->opt->json) {
		stat_write(s, &s->now, true, false);
		return;
	}
	if (!s->opt.sep)
		printf("\n Counters of '%s', %u vCPU%s:\n\n", r->source.target.name,
		       vm_vcpus(r->vm), vm_vcpus(r->vm) > 1 ? "s" : "");
	stat_write(s, &s->now, false, false);
	if (s->opt.sep)
		return;
	printf("\n%18.6f seconds, then: %s\n\n", (double)s->now.elapsed_ns / 1e9,
	       vm_end_name(res->reason));
	if (r->opt->freq_hz > 0) {
		summary_print_costs(r->vm, stdout);
		putchar('\n');
	}
}

static int stat_guest(struct run *r, struct stat_run *s, struct err *e)
{
	int ret = run_prepare(r, e);

	if (ret)
		return ret;
	run_watch_start(r);
	ret = run_sandbox_begin(r, e);
	if (ret)
		return ret;
	ret = vm_start(r->vm, e);
	if (ret)
		return ret;
	r->tick = stat_tick;
	r->tick_ctx = s;
	run_watch_end();
	run_wait(r);
	vm_join(r->vm);
	run_drain_console(r);
	stat_read(r->stat, &s->now);
	if (s->opt.interval_s > 0) {
		s->part = s->now;
		stat_subtract(&s->part, &s->before);
		stat_write(s, &s->part, r->opt->json, true);
	}
	stat_print_end(r, s);
	fflush(stdout);
	run_panic_find(&(struct run_panic_places){ .target = &r->source.target,
						   .mem = vm_memory(r->vm),
						   .console = &r->panic.console },
		       &r->panic.found);
	summary_panic_print(&(struct summary){ .panic = &r->panic.found }, stderr);
	if (vm_result(r->vm)->err.code)
		return err_set(e, vm_result(r->vm)->err.code, "%s", vm_result(r->vm)->err.text);
	return s->failed ? err_nomem(e) : 0;
}

int cmd_stat(int argc, char **argv)
{
	cleanup_free struct stat_run *s = calloc(1, sizeof(*s));
	struct run *r = s ? &s->run : NULL;
	struct err e = { 0 };
	int status, ret;

	if (!s)
		return cmd_no_memory();
	status = stat_parse(s, argc, argv);
	if (status >= 0)
		return status;
	run_init(r);
	console_init(&r->console, r->opt->quiet ? -1 : STDERR_FILENO);
	ret = run_markers_init(&r->markers, r->opt, &r->console, &e);
	ret = ret ? ret : stat_guest(r, s, &e);
	if (ret) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		status = 1;
	} else {
		status = r->panic.found.seen ? RUN_STATUS_PANIC : 0;
	}
	if (run_deinit(r) && !status)
		status = 1;
	return status;
}
