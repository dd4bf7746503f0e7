/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_attach: `kvmprof attach`: profile a machine that another VMM runs.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "profile/cmd/common.h"
#include "profile/run/run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: kvmprof attach [OPTIONS] PID|DOMAIN\n"
	"       kvmprof attach [OPTIONS] --gdb HOST:PORT\n"
	"\n"
	"Profile the guest of a VMM that runs (QEMU or any other that uses KVM): its vCPU\n"
	"threads are held for some microseconds each, nothing is installed or written, and the\n"
	"guest runs on afterwards as if nothing had been. Names come from the guest's memory.\n"
	"A DOMAIN of libvirt is given by name, UUID or id; the profile ends when it is paused,\n"
	"migrated or ended. A number is a PID where that process has vCPUs, else a domain's id.\n"
	"\n"
	"  -c, --connect URI       libvirt's, as for virsh; a number is a domain's id then\n"
	"      --pid PID           attach to this process\n"
	"      --domain DOMAIN     attach to this domain\n"
	"      --monitor           find the domain's process by asking its QEMU: libvirt notes\n"
	"                          that (the domain is tainted)\n"
	"\n"
	"      --technique HOW     bpf: programs of the guest are sampled in an interrupt, by "
	"BPF,\n"
	"                          the rest by ptrace; ptrace: all of it; auto (default): bpf\n"
	"                          where this host can\n"
	"      --gdb HOST:PORT     not by PID but through a gdbstub, of QEMU without KVM or "
	"others:\n"
	"                          slow, as each sample stops the whole machine (default 49 Hz)\n"
	"      --image FILE        the guest's kernel: needed where it is no Linux\n"
	"      --symbols FILE      names from a vmlinux or System.map in place of those in memory\n"
	"      --guest-root DIR    the guest's file system: names of its programs, JIT maps\n"
	"      --debuginfo DIR     debug files of its programs, by build id\n"
	"\n"
	"      --duration SECONDS  stop after that long (default: Ctrl-C, or when the guest ends)\n"
	"      --delay SECONDS     begin to sample after that long\n"
	"      --samples N         stop after N samples\n"
	"  -F, --freq HZ           samples a second on each vCPU (default 997)\n"
	"      --max-overhead PCT  sample less often when it takes more of the guest's time\n"
	"      --mem               what memory samples accessed, for `kvmprof mem`\n"
	"      --no-jitter         strictly periodic: can run in step with the guest\n"
	"      --stack-size BYTES  copy at most so much of a stack, up to 16384 (default)\n"
	"      --max-stack N       keep the innermost N frames of a stack, up to 256 (default)\n"
	"  -C, --cpu LIST          sample these vCPUs only, such as 0,2-3 (default: all)\n"
	"      --ring-size SIZE    room for samples on their way from each vCPU\n"
	"      --overwrite         keep the newest samples: the oldest give way to them\n"
	"      --control PATH      listen on this socket for `kvmprof ctl` and `kvmprof "
	"top`\n" RUN_OPTIONS_TASKS_HELP "\n"
	"  -o, --output PATH       profile (default perf.data); -: to standard output\n"
	"      --single-file       one file plus the build-id cache, not a directory\n"
	"      --buildid-dir DIR   build-id cache (default ~/.debug)\n"
	"      --no-buildid-cache  write nothing outside of PATH\n"
	"      --json              the summary as JSON on stdout\n"
	"      --ps-at-end         list the guest's tasks, and where they wait, before it goes on\n"
	"                          without us\n"
	"      --no-status         no line on the terminal that tells how it goes on\n"
	"  -h, --help              this text\n";

enum { OPT_IMAGE = 256, OPT_GDB, OPT_COMMON, OPT_PID, OPT_DOMAIN, OPT_MONITOR, OPT_TECHNIQUE };

/* Each sample costs some milliseconds of the whole machine. */
#define GDB_FREQ_HZ 49

/* Those of OPT_COMMON mean what they mean to `run`. */
static const struct option longopts[] = {
	{ "gdb", required_argument, NULL, OPT_GDB },
	{ "technique", required_argument, NULL, OPT_TECHNIQUE },
	{ "image", required_argument, NULL, OPT_IMAGE },
	{ "connect", required_argument, NULL, 'c' },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "domain", required_argument, NULL, OPT_DOMAIN },
	{ "monitor", no_argument, NULL, OPT_MONITOR },
	{ "symbols", required_argument, NULL, OPT_COMMON },
	{ "guest-root", required_argument, NULL, OPT_COMMON },
	{ "debuginfo", required_argument, NULL, OPT_COMMON },
	{ "duration", required_argument, NULL, OPT_COMMON },
	{ "delay", required_argument, NULL, OPT_COMMON },
	{ "samples", required_argument, NULL, OPT_COMMON },
	{ "freq", required_argument, NULL, OPT_COMMON },
	{ "max-overhead", required_argument, NULL, OPT_COMMON },
	{ "mem", no_argument, NULL, OPT_COMMON },
	{ "no-jitter", no_argument, NULL, OPT_COMMON },
	{ "stack-size", required_argument, NULL, OPT_COMMON },
	{ "max-stack", required_argument, NULL, OPT_COMMON },
	{ "cpu", required_argument, NULL, OPT_COMMON },
	{ "ring-size", required_argument, NULL, OPT_COMMON },
	{ "overwrite", no_argument, NULL, OPT_COMMON },
	{ "control", required_argument, NULL, OPT_COMMON },
	{ "off-cpu", no_argument, NULL, OPT_COMMON },
	{ "off-cpu-period", required_argument, NULL, OPT_COMMON },
	{ "ps-at-end", no_argument, NULL, OPT_COMMON },
	{ "no-status", no_argument, NULL, OPT_COMMON },
	{ "output", required_argument, NULL, OPT_COMMON },
	{ "single-file", no_argument, NULL, OPT_COMMON },
	{ "buildid-dir", required_argument, NULL, OPT_COMMON },
	{ "no-buildid-cache", no_argument, NULL, OPT_COMMON },
	{ "json", no_argument, NULL, OPT_COMMON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int take_what(struct attach_request *a, enum attach_way way, char **argv)
{
	if (a->what)
		return cmd_wrong_usage(argv, "one machine at a time, not also", optarg);
	a->way = way;
	a->what = optarg;
	return -1;
}

static int take_technique(enum attach_technique *out, char **argv)
{
	static const char *const name[] = {
		[ATTACH_AUTO] = "auto", [ATTACH_BPF] = "bpf", [ATTACH_PTRACE] = "ptrace"
	};

	for (unsigned int i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (!strcmp(optarg, name[i])) {
			*out = (enum attach_technique)i;
			return -1;
		}
	return cmd_wrong_usage(argv, "--technique: expected auto, bpf or ptrace, not", optarg);
}

/* -1 to go on, else the exit status. */
static int take(struct run_options *o, struct attach_request *a, int c, int index, char **argv)
{
	switch (c) {
	case OPT_IMAGE:
		o->image = optarg;
		return -1;
	case OPT_PID:
		return take_what(a, ATTACH_PID, argv);
	case OPT_DOMAIN:
		return take_what(a, ATTACH_DOMAIN, argv);
	case OPT_MONITOR:
		a->monitor = true;
		return -1;
	case OPT_TECHNIQUE:
		return take_technique(&o->technique, argv);
	case OPT_GDB:
		o->gdb = optarg;
		return -1;
	case OPT_COMMON:
		return run_options_set(o, longopts[index].name, optarg);
	case 'c':
		a->uri = optarg;
		return -1;
	case 'F':
		return run_options_set(o, "freq", optarg);
	case 'C':
		return run_options_set(o, "cpu", optarg);
	case 'o':
		return run_options_set(o, "output", optarg);
	case 'h':
		fputs(usage, stdout);
		return 0;
	default:
		return cmd_wrong_option(argv, c);
	}
}

static int parse(struct run_options *o, struct attach_request *a, int argc, char **argv)
{
	int c, index = 0, status;
	double freq;

	run_options_default(o);
	freq = o->freq_hz;
	o->command = "attach";
	/* The console is the VMM's. */
	o->quiet = true;
	o->tune = false;
	o->freq_hz = 0;
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":F:C:o:c:h", longopts, &index)) != -1) {
		status = take(o, a, c, index, argv);
		if (status >= 0)
			return status;
	}
	if (o->freq_hz == 0)
		o->freq_hz = o->gdb ? GDB_FREQ_HZ : freq;
	if (o->gdb && (optind < argc || a->what || a->uri))
		return cmd_wrong_usage(argv, "a PID, a domain or --gdb, one of them; unexpected",
				       optind < argc ? argv[optind]
				       : a->what     ? a->what
						     : a->uri);
	if (o->gdb && o->technique != ATTACH_AUTO)
		return cmd_wrong_usage(argv, "--technique is for a PID or a domain, not for --gdb",
				       o->gdb);
	if (o->mem && o->technique == ATTACH_BPF)
		return cmd_wrong_usage(argv,
				       "--mem needs what BPF does not see (segment bases), without",
				       "--technique bpf");
	if (optind == argc && !a->what && !o->gdb) {
		fputs("kvmprof attach: which machine? Give a PID or a libvirt domain (try kvmprof "
		      "attach --help)\n",
		      stderr);
		return 2;
	}
	if (!a->what && !o->gdb)
		a->what = argv[optind++];
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (a->what && !*a->what)
		return cmd_wrong_usage(argv, "expected a PID or a domain, not", a->what);
	if (a->way == ATTACH_PID && (a->uri || a->monitor))
		return cmd_wrong_usage(argv, "--connect and --monitor don't go with --pid",
				       a->what);
	if (o->symbols && !o->image && strcmp(o->symbols, "live"))
		return cmd_wrong_usage(argv,
				       "--image is needed, too, to check these names:", o->symbols);
	return run_options_check(o);
}

int cmd_attach(int argc, char **argv)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	struct attach_request request = { .way = ATTACH_GUESS };
	char name[LIBVIRT_NAME_MAX + 32];
	struct err e = { 0 };
	int status;

	if (!r) {
		fputs("kvmprof: out of memory\n", stderr);
		return 1;
	}
	status = parse(&r->opt, &request, argc, argv);
	if (status >= 0)
		return status;
	if (!r->opt.gdb && attach_find(&request, &r->opt.attach, &r->domain, &e) < 0) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	if (r->opt.gdb)
		snprintf(name, sizeof(name), "(guest behind a gdbstub)");
	else if (r->domain)
		snprintf(name, sizeof(name), "(domain %s)", r->domain->domain.name);
	else
		snprintf(name, sizeof(name), "(guest of process %d)", (int)r->opt.attach);
	r->opt.attach_name = name;
	return run_main(r, argc, argv);
}
