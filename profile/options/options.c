/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/options.h"

#include "base/cleanup.h"
#include "profile/options/devices.h"
#include "profile/options/machine.h"
#include "symbolizer/core/stack.h"
#include "vmm/layout.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: kvmprof run [OPTIONS] [IMAGE] [-- COMMAND ARG...]\n"
	"\n"
	"Boot a kernel under KVM, sample it from outside, write a profile that perf opens.\n"
	"IMAGE is a Linux bzImage, a unified kernel image, a vmlinux or another kernel (ELF,\n"
	"multiboot, PVH: see `kvmprof help kernels`), or a disk image with a Linux on it, which "
	"is\n"
	"not changed; without it the embedded demo guest runs.\n"
	"\n"
	"Guest:\n"
	"      --boot WAY          how it is entered (default auto: as it asks for). vmlinux:\n"
	"                          directly in 64-bit mode, a bzImage's kernel itself; bzimage:\n"
	"                          its decompressor first, which randomizes addresses; linux32,\n"
	"                          multiboot, pvh: in 32-bit mode\n"
	"      --entry 0xADDRESS   enter a kernel directly at this physical address\n"
	"      --module FILE[=ARGS]  a module for a multiboot or PVH kernel; may be repeated\n"
	"  -m, --memory SIZE       memory, with K, M or G (default 256M)\n"
	"      --vcpus N           virtual CPUs, 1 to 64 (default 1)\n"
	"      --hugepages SIZE    back memory by huge pages: 2M, 1G, or thp (as there are)\n"
	"      --numa NODE         take memory from this host node\n"
	"      --pin LIST          run vCPU 0, 1, ... on these host CPUs, such as 2,4-6\n"
	"      --initrd FILE       initial RAM disk\n"
	"      --kernel FILE       a kernel in place of the one in the disk image\n"
	"      --root DEV          where its root file system is, such as /dev/vda2 or UUID=...\n"
	"      --append TEXT       add to the kernel's command line\n"
	"      --cmdline TEXT      replace kvmprof's default command line\n"
	"      --no-tune           add nothing to it because of a slow host\n" RUN_DEVICES_USAGE
		RUN_DISK_USAGE
	"      --domain DOMAIN     kernel, RAM disk, command line, memory, vCPUs and raw disks of\n"
	"                          a libvirt domain, or of FILE.xml; IMAGE and the options above\n"
	"                          go first, and what can't be honoured is listed\n"
	"      --connect URI       where libvirt is, as for virsh\n"
	"\n" RUN_SNAPSHOT_USAGE RUN_OPTIONS_EXEC_USAGE "When to sample, and when to stop:\n"
	"      --duration SECONDS  stop after that long (default: when the guest ends), from\n"
	"                          the guest's first instruction or from where sampling begins\n"
	"      --delay SECONDS     begin to sample after that long\n"
	"      --samples N         stop after N samples\n"
	"      --start-on REGEX    begin when a line of the console matches (POSIX extended)\n"
	"      --stop-on REGEX     stop when one matches after that\n"
	"      --start-at PLACE    begin when this instruction is reached: SYMBOL, SYMBOL+OFFSET\n"
	"                          or 0xADDRESS\n"
	"      --stop-at PLACE     stop when it is reached after that\n"
	"      --mark [NAME=]REGEX note each line that matches; may be repeated\n"
	"      --mark-at PLACE     note each time that it is reached, with the stack\n"
	"\n"
	"Sampling:\n"
	"  -e, --event LIST        what is counted, such as cpu,cycles:u,exit:io (default wall);\n"
	"                          `kvmprof list` has the events of this host\n"
	"  -F, --freq HZ           samples a second on each vCPU (default 997)\n"
	"  -c, --count N           a sample at each N of the counter or exits, not by --freq\n"
	"      --strict-event      an event that this host refuses is an error; without it\n"
	"                          another one may stand in, and a line says so\n"
	"      --no-jitter         strictly periodic: can run in step with the guest\n"
	"      --max-overhead PCT  sample less often when it takes more of the guest's time\n"
	"      --stack-size BYTES  copy at most so much of a stack, up to 16384 (default)\n"
	"      --max-stack N       keep the innermost N frames of a stack, up to 256 (default)\n"
	"  -C, --cpu LIST          sample these vCPUs only, such as 0,2-3 (default: all)\n"
	"      --ring-size SIZE    room for samples on their way from each vCPU, with K, M or G\n"
	"                          (default 4M); with --overwrite: for all that are kept\n"
	"      --overwrite         keep the newest samples: the oldest give way to them\n"
	"      --control PATH      listen on this socket for `kvmprof ctl`; auto: see there\n"
	"      --symbols FILE      names from a vmlinux, System.map, kallsyms or nm output;\n"
	"                          live: from the running kernel's memory alone\n"
	"      --guest-root DIR    the guest's file system: names of its programs, JIT maps\n"
	"      --debuginfo DIR     debug files of its programs, by build id\n"
	"      --mem               also what memory the sampled instructions use: kvmprof "
	"mem\n" RUN_OPTIONS_TASKS_HELP "\n"
	"Output:\n"
	"  -o, --output PATH       profile (default perf.data; an existing one becomes .old);\n"
	"                          -: at the end to standard output, for `perf report -i -`,\n"
	"                          with the guest's console on standard error\n"
	"      --single-file       one file plus the build-id cache, not a directory\n"
	"      --buildid-dir DIR   build-id cache (default ~/.debug)\n"
	"      --no-buildid-cache  write nothing outside of PATH\n"
	"      --json              the summary as JSON on stdout; the console is not shown\n"
	"      --ps-at-end         list the guest's tasks, and where they wait, when it ends\n"
	"      --no-status         no line on the terminal that tells how the run goes on\n"
	"  -q, --quiet             show neither the guest's console nor that line\n"
	"  -h, --help              this text\n";

#define wrong(...) run_options_wrong(o, __VA_ARGS__)

int run_options_wrong(const struct run_options *o, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "kvmprof %s: ", o->command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; see `kvmprof %s --help`\n", o->command);
	return 2;
}

static bool parse_number(const char *s, double min, double max, double *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	if (errno || end == s || *end || !(v >= min && v <= max))
		return false;
	*out = v;
	return true;
}

static bool parse_size(const char *s, uint64_t *out)
{
	char *end;
	unsigned long long v;
	unsigned int shift = 0;

	errno = 0;
	v = strtoull(s, &end, 10);
	/* strtoull takes blanks and signs, and makes huge numbers of negative ones */
	if (errno || *s < '0' || *s > '9')
		return false;
	switch (*end) {
	case 'k':
	case 'K':
		shift = 10;
		end++;
		break;
	case 'm':
	case 'M':
		shift = 20;
		end++;
		break;
	case 'g':
	case 'G':
		shift = 30;
		end++;
		break;
	case '\0':
		shift = 20;
		break; /* a bare number means MiB, as in QEMU */
	}
	if (*end || v > UINT64_MAX >> shift)
		return false;
	*out = (uint64_t)v << shift;
	return true;
}

enum {
	OPT_VCPUS = 256,
	OPT_INITRD,
	OPT_KERNEL,
	OPT_ROOT,
	OPT_APPEND,
	OPT_CMDLINE,
	OPT_NO_TUNE,
	OPT_DOMAIN,
	OPT_CONNECT,
	OPT_DURATION,
	OPT_DELAY,
	OPT_SAMPLES,
	OPT_START_ON,
	OPT_STOP_ON,
	OPT_START_AT,
	OPT_STOP_AT,
	OPT_MARK,
	OPT_MARK_AT,
	OPT_NO_JITTER,
	OPT_MAX_OVERHEAD,
	OPT_STRICT_EVENT,
	OPT_STACK,
	OPT_MAX_STACK,
	OPT_RING_SIZE,
	OPT_OVERWRITE,
	OPT_CONTROL,
	OPT_SYMBOLS,
	OPT_GUEST_ROOT,
	OPT_DEBUGINFO,
	OPT_MEM,
	OPT_SINGLE,
	OPT_BUILDID,
	OPT_NO_CACHE,
	OPT_JSON
};

static const struct option longopts[] = {
	{ "boot", required_argument, NULL, OPT_BOOT },
	{ "entry", required_argument, NULL, OPT_ENTRY },
	{ "module", required_argument, NULL, OPT_MODULE },
	{ "hugepages", required_argument, NULL, OPT_HUGEPAGES },
	{ "pin", required_argument, NULL, OPT_PIN },
	{ "numa", required_argument, NULL, OPT_NUMA },
	{ "memory", required_argument, NULL, 'm' },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "initrd", required_argument, NULL, OPT_INITRD },
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "append", required_argument, NULL, OPT_APPEND },
	{ "cmdline", required_argument, NULL, OPT_CMDLINE },
	{ "no-tune", no_argument, NULL, OPT_NO_TUNE },
	RUN_DEVICES_OPTIONS,
	RUN_DISK_LONGOPTS,
	{ "domain", required_argument, NULL, OPT_DOMAIN },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	RUN_OPTIONS_EXEC_TABLE,
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "samples", required_argument, NULL, OPT_SAMPLES },
	{ "start-on", required_argument, NULL, OPT_START_ON },
	{ "stop-on", required_argument, NULL, OPT_STOP_ON },
	{ "start-at", required_argument, NULL, OPT_START_AT },
	{ "stop-at", required_argument, NULL, OPT_STOP_AT },
	{ "mark", required_argument, NULL, OPT_MARK },
	{ "mark-at", required_argument, NULL, OPT_MARK_AT },
	{ "event", required_argument, NULL, 'e' },
	{ "freq", required_argument, NULL, 'F' },
	{ "count", required_argument, NULL, 'c' },
	{ "strict-event", no_argument, NULL, OPT_STRICT_EVENT },
	{ "no-jitter", no_argument, NULL, OPT_NO_JITTER },
	{ "max-overhead", required_argument, NULL, OPT_MAX_OVERHEAD },
	{ "stack-size", required_argument, NULL, OPT_STACK },
	{ "max-stack", required_argument, NULL, OPT_MAX_STACK },
	{ "cpu", required_argument, NULL, 'C' },
	{ "ring-size", required_argument, NULL, OPT_RING_SIZE },
	{ "overwrite", no_argument, NULL, OPT_OVERWRITE },
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "symbols", required_argument, NULL, OPT_SYMBOLS },
	{ "guest-root", required_argument, NULL, OPT_GUEST_ROOT },
	{ "debuginfo", required_argument, NULL, OPT_DEBUGINFO },
	{ "mem", no_argument, NULL, OPT_MEM },
	{ "output", required_argument, NULL, 'o' },
	{ "single-file", no_argument, NULL, OPT_SINGLE },
	{ "buildid-dir", required_argument, NULL, OPT_BUILDID },
	{ "no-buildid-cache", no_argument, NULL, OPT_NO_CACHE },
	{ "json", no_argument, NULL, OPT_JSON },
	RUN_OPTIONS_TASKS,
	{ "quiet", no_argument, NULL, 'q' },
	RUN_SNAPSHOT_LONGOPTS,
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};
_Static_assert(ARRAY_SIZE(longopts) <= RUN_OPTIONS_MAX + 1u, "a flag for each");

const char *run_options_name(unsigned int i)
{
	return i < ARRAY_SIZE(longopts) ? longopts[i].name : NULL;
}

static void note_given(struct run_options *o, int opt)
{
	for (unsigned int i = 0; longopts[i].name; i++)
		if (longopts[i].val == opt)
			o->given[i] = true;
}

static int add_mark(const struct run_options *o, const char **list, unsigned int *n,
		    const char *arg)
{
	if (*n == RUN_MARKS_MAX)
		return wrong("'%s': more than 16 marks", arg);
	list[(*n)++] = arg;
	return -1;
}

/* Options that say when; -1 to go on. */
static int take_marker(struct run_options *o, int opt, const char *arg)
{
	double v;

	switch (opt) {
	case OPT_DELAY:
		if (!parse_number(arg, 0, 1e7, &o->delay_s))
			return wrong("--delay %s: expected seconds", arg);
		return -1;
	case OPT_SAMPLES:
		if (!parse_number(arg, 1, 1e15, &v) || v != floor(v))
			return wrong("--samples %s: expected a whole number from 1 on", arg);
		o->max_samples = (uint64_t)v;
		return -1;
	case OPT_START_ON:
		o->start_on = arg;
		return -1;
	case OPT_STOP_ON:
		o->stop_on = arg;
		return -1;
	case OPT_START_AT:
		o->start_at = arg;
		return -1;
	case OPT_STOP_AT:
		o->stop_at = arg;
		return -1;
	case OPT_MARK:
		return add_mark(o, o->mark_on, &o->nmark_on, arg);
	default: /* OPT_MARK_AT */
		return add_mark(o, o->mark_at, &o->nmark_at, arg);
	}
}

/* Options about what is kept of samples; -1 to go on. */
static int take_kept(struct run_options *o, int opt, const char *arg)
{
	double v;

	switch (opt) {
	case OPT_MAX_STACK:
		if (!parse_number(arg, 1, STACK_MAX_FRAMES, &v) || v != floor(v))
			return wrong("--max-stack %s: expected 1 to 256 frames", arg);
		o->max_stack = (uint32_t)v;
		return -1;
	case 'C':
		o->vcpu_list = arg;
		return -1;
	case OPT_RING_SIZE:
		if (!parse_size(arg, &o->ring_size) || o->ring_size < RUN_RING_MIN ||
		    o->ring_size > RUN_RING_MAX)
			return wrong("--ring-size %s: expected 256K to 4G, such as 16M", arg);
		return -1;
	case OPT_OVERWRITE:
		o->overwrite = true;
		return -1;
	default: /* OPT_CONTROL */
		if (!*arg)
			return wrong("--control: expected a path%s", "");
		o->control = arg;
		return -1;
	}
}

/* Options of run_options_exec.h; -1 to go on. */
static int take_exec(struct run_options *o, int opt, const char *arg)
{
	const char *expected = run_options_exec_take(&o->exec, opt, arg);
	char what[256];

	if (!expected)
		return -1;
	for (unsigned int i = 0; longopts[i].name; i++)
		if (longopts[i].val == opt)
			snprintf(what, sizeof(what), "--%s %.150s: %s", longopts[i].name, arg,
				 expected);
	return wrong("%s", what);
}

/* One option; -1 to go on. */
static int take(struct run_options *o, int opt, const char *arg)
{
	double v;

	note_given(o, opt);
	if (opt >= RUN_OPT_EXEC && opt < RUN_OPT_EXEC_END)
		return take_exec(o, opt, arg);
	if (opt >= OPT_DEVICES && opt < OPT_DEVICES_END)
		return run_options_take_device(o, opt, arg);
	if (opt >= OPT_DISK_FIRST && opt < OPT_DISK_END)
		return run_options_take_disk(o, opt, arg);
	if (opt >= OPT_MACHINE_FIRST && opt < OPT_MACHINE_END)
		return run_options_take_machine(o, opt, arg);
	switch (opt) {
	case 'm':
		if (!parse_size(arg, &o->mem_size) || o->mem_size < RUN_MEM_MIN)
			return wrong(
				"--memory %s: expected a size of 16M or more, such as 512M or 2G",
				arg);
		o->mem_given = true;
		return -1;
	case OPT_VCPUS:
		if (!parse_number(arg, 1, VM_MAX_VCPUS, &v) || v != floor(v))
			return wrong("--vcpus %s: expected a whole number from 1 to 64", arg);
		o->vcpus = (unsigned int)v;
		o->vcpus_given = true;
		return -1;
	case OPT_DURATION:
		if (!parse_number(arg, 0.001, 1e7, &o->duration_s))
			return wrong("--duration %s: expected seconds, more than 0", arg);
		return -1;
	case OPT_DELAY:
	case OPT_SAMPLES:
	case OPT_START_ON:
	case OPT_STOP_ON:
	case OPT_START_AT:
	case OPT_STOP_AT:
	case OPT_MARK:
	case OPT_MARK_AT:
		return take_marker(o, opt, arg);
	case 'F':
		if (!parse_number(arg, 0.1, RUN_FREQ_MAX, &o->freq_hz))
			return wrong("--freq %s: expected 0.1 to 50000 samples a second", arg);
		return -1;
	case 'e': {
		struct err e = { 0 };

		if (events_add(&o->events, arg, &e) < 0)
			return wrong("--event: %s", e.text);
		return -1;
	}
	case 'c':
		if (!parse_number(arg, 1, 1e15, &v) || v != floor(v))
			return wrong("--count %s: expected a whole number from 1 on", arg);
		o->period = (uint64_t)v;
		return -1;
	case OPT_STRICT_EVENT:
		o->strict_event = true;
		return -1;
	case OPT_MAX_OVERHEAD:
		if (!parse_number(arg, 0.001, 100, &o->max_overhead))
			return wrong("--max-overhead %s: expected a percentage, 0.001 to 100", arg);
		return -1;
	case OPT_STACK:
		if (!parse_number(arg, 256, RUN_STACK_MAX, &v) || v != floor(v))
			return wrong("--stack-size %s: expected 256 to 16384 bytes", arg);
		o->stack_size = (uint32_t)v & ~7u;
		return -1;
	case OPT_INITRD:
		o->initrd = arg;
		return -1;
	case OPT_KERNEL:
		o->kernel = arg;
		return -1;
	case OPT_ROOT:
		o->root = arg;
		return -1;
	case OPT_APPEND:
		o->append = arg;
		return -1;
	case OPT_CMDLINE:
		o->cmdline = arg;
		return -1;
	case OPT_NO_TUNE:
		o->tune = false;
		return -1;
	case OPT_DOMAIN:
		if (!*arg)
			return wrong("--domain: expected a name or a file%s", "");
		o->domain = arg;
		return -1;
	case OPT_CONNECT:
		o->connect = arg;
		return -1;
	case OPT_NO_JITTER:
		o->jitter = false;
		return -1;
	case OPT_MAX_STACK:
	case 'C':
	case OPT_RING_SIZE:
	case OPT_OVERWRITE:
	case OPT_CONTROL:
		return take_kept(o, opt, arg);
	case OPT_SYMBOLS:
		o->symbols = arg;
		return -1;
	case OPT_GUEST_ROOT:
		o->guest_root = arg;
		return -1;
	case OPT_DEBUGINFO:
		o->debuginfo = arg;
		return -1;
	case OPT_MEM:
		o->mem = true;
		return -1;
	case 'o':
		o->output = arg;
		return -1;
	case OPT_SINGLE:
		o->single_file = true;
		return -1;
	case OPT_BUILDID:
		o->buildid_dir = arg;
		return -1;
	case OPT_NO_CACHE:
		o->buildid_cache = false;
		return -1;
	case OPT_JSON:
		o->json = true;
		return -1;
	case 'q':
		o->quiet = true;
		return -1;
	case 'h':
		fputs(usage, stdout);
		return 0;
	case ':':
		return wrong("option '%s' needs a value", arg);
	default:
		if (opt >= OPT_SNAPSHOT_FIRST && opt < OPT_SNAPSHOT_END)
			return run_options_snapshot(o, opt, arg);
		if (run_options_tasks_has(opt))
			return run_options_tasks_take(o, opt, arg);
		return wrong("unknown option '%s'", arg);
	}
}

uint64_t run_options_vcpus(const struct run_options *o)
{
	uint64_t all = o->vcpus < 64 ? (UINT64_C(1) << o->vcpus) - 1 : UINT64_MAX, mask = 0;
	const char *s = o->vcpu_list;

	while (s) {
		unsigned long from, to;
		char *end;

		/* strtoul takes blanks and signs */
		if (*s < '0' || *s > '9')
			return 0;
		from = to = strtoul(s, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			to = strtoul(end + 1, &end, 10);
		if (from > to || to >= o->vcpus || (*end && *end != ','))
			return 0;
		for (; from <= to; from++)
			mask |= UINT64_C(1) << from;
		s = *end ? end + 1 : NULL;
	}
	return o->vcpu_list ? mask : all;
}

void run_options_default(struct run_options *o)
{
	*o = (struct run_options){
		.command = "run",
		.output = "perf.data",
		.freq_hz = 997,
		.mem_size = 256ull << 20,
		.vcpus = 1,
		.boot = BOOT_WAY_AUTO,
		.numa_node = -1,
		.stack_size = RUN_STACK_MAX,
		.jitter = true,
		.tune = true,
		.buildid_cache = true,
	};
}

int run_options_set(struct run_options *o, const char *name, const char *arg)
{
	for (unsigned int i = 0; longopts[i].name; i++)
		if (!strcmp(longopts[i].name, name))
			return take(o, longopts[i].val, arg);
	return wrong("unknown option '%s'", name);
}

/* What fits one another; -1 or an exit status. */
static int check_kept(struct run_options *o)
{
	struct events_rate rate = run_rate(o);
	struct err e = { 0 };

	if (o->overwrite && !o->ring_size)
		o->ring_size = RUN_OVERWRITE_SIZE;
	if (events_check(&o->events, &rate, &e) < 0)
		return wrong("--count %s", e.text);
	return -1;
}

int run_options_check(struct run_options *o)
{
	int ret = check_kept(o);

	ret = ret >= 0 ? ret : run_options_snapshot_check(o);
	if (ret >= 0)
		return ret;
	ret = run_options_tasks_check(o);
	if (ret >= 0)
		return ret;
	if (run_to_stdout(o) && o->json)
		return wrong("-o - and --json both want standard output: drop %s", "--json");
	if (run_to_stdout(o) && !o->buildid_cache)
		return wrong("-o - needs the build-id cache: drop %s", "--no-buildid-cache");
	if (o->single_file && !o->buildid_cache)
		return wrong("--single-file needs the build-id cache: drop %s",
			     "--no-buildid-cache");
	return -1;
}

int run_options_check_machine(const struct run_options *o)
{
	const char *exec = run_options_exec_check(&o->exec, o->initrd, o->image);

	if (exec)
		return wrong("%s", exec);
	/* A snapshot tells its vCPUs later. */
	if (o->vcpu_list && !o->snapshot.from && run_options_vcpus(o) == 0)
		return wrong("--cpu %s: expected vCPUs of this guest, such as 0,2-3", o->vcpu_list);
	if (o->npin && o->npin < o->vcpus)
		return wrong("--pin: fewer host CPUs than vCPUs%s", "");
	if (o->boot == BOOT_WAY_BZIMAGE && !o->image && !o->kernel)
		return wrong("--boot bzimage needs a %s: the demo guest is an ELF file",
			     "bzImage as IMAGE");
	return -1;
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
	static char name[32]; /* the profile's header still reads argv later */
	const char *command = o->command;
	uint64_t size;
	int opt, ret, end;

	run_options_default(o);
	if (command && strcmp(command, "run") != 0) {
		/* One that shows what happens, and keeps a profile only when asked to. */
		o->command = command;
		o->output = NULL;
	}
	snprintf(name, sizeof(name), "kvmprof %s", o->command);
	argv[0] = name;
	/* What stands behind "--" is a command, with its own options. */
	for (end = 1; end < argc && strcmp(argv[end], "--") != 0;)
		end++;
	if (end + 1 < argc) {
		o->exec.words = argv + end + 1;
		o->exec.nwords = (unsigned int)(argc - end - 1);
		argc = end;
	}
	optind = 1;
	opterr = 0; /* it would take two lines, its own and ours */
	while ((opt = getopt_long(argc, argv, ":m:e:C:F:c:o:qh", longopts, NULL)) != -1) {
		char letter[] = { '-', (char)optopt, '\0' };

		/* Of bundled letters getopt tells which, of long options only where. */
		if (opt == '?' || opt == ':')
			optarg = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];
		ret = take(o, opt, optarg);
		if (ret >= 0)
			return ret;
	}
	/* -m and --memory have a size, --mem none. */
	if (o->mem && optind < argc && access(argv[optind], F_OK) != 0 &&
	    parse_size(argv[optind], &size))
		return wrong("--mem takes no value: for the size of memory, say -m %s",
			     argv[optind]);
	if (optind < argc)
		o->image = argv[optind++];
	if (optind < argc)
		return wrong("unexpected argument '%s': one IMAGE at most", argv[optind]);
	if (o->connect && !o->domain)
		return wrong("--connect %s: only --domain asks libvirt", o->connect);
	/* First: what goes with no snapshot at all need not be told what it lacks. */
	ret = run_options_snapshot_check(o);
	if (ret >= 0)
		return ret;
	ret = o->domain ? -1 : run_options_check_machine(o);
	return ret >= 0 ? ret : run_options_check(o);
}
