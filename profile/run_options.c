/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run_options.h"

#include "vmm/layout.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: kvmprof run [OPTIONS] [IMAGE]\n"
	"\n"
	"Boot a kernel under KVM, sample it from outside, write a profile that perf opens.\n"
	"IMAGE is a Linux bzImage, a vmlinux or any ELF64 kernel; without it the embedded\n"
	"demo guest runs.\n"
	"\n"
	"Guest:\n"
	"      --boot WAY          vmlinux: enter a bzImage's kernel itself (default); bzimage:\n"
	"                          run its decompressor first, which randomizes addresses\n"
	"  -m, --mem SIZE          memory, with K, M or G (default 256M)\n"
	"      --vcpus N           virtual CPUs, 1 to 8 (default 1)\n"
	"      --initrd FILE       initial RAM disk\n"
	"      --append TEXT       add to the kernel's command line\n"
	"      --cmdline TEXT      replace kvmprof's default command line\n"
	"      --no-tune           add nothing to it because of a slow host\n"
	"      --duration SECONDS  stop after that long (default: when the guest ends)\n"
	"\n"
	"Sampling:\n"
	"  -F, --freq HZ           samples a second on each vCPU (default 997)\n"
	"      --no-jitter         strictly periodic: can run in step with the guest\n"
	"      --max-overhead PCT  sample less often when it takes more of the guest's time\n"
	"      --stack-size BYTES  copy at most so much of a stack, up to 16384 (default)\n"
	"      --symbols FILE      names from a vmlinux, System.map, kallsyms or nm output;\n"
	"                          live: from the running kernel's memory alone\n"
	"      --guest-root DIR    the guest's file system: names of its programs, JIT maps\n"
	"      --debuginfo DIR     debug files of its programs, by build id\n"
	"\n"
	"Output:\n"
	"  -o, --output PATH       profile (default perf.data; an existing one becomes .old);\n"
	"                          -: at the end to standard output, for `perf report -i -`,\n"
	"                          with the guest's console on standard error\n"
	"      --single-file       one file plus the build-id cache, not a directory\n"
	"      --buildid-dir DIR   build-id cache (default ~/.debug)\n"
	"      --no-buildid-cache  write nothing outside of PATH\n"
	"      --json              the summary as JSON on stdout; the console is not shown\n"
	"  -q, --quiet             do not show the guest's console\n"
	"  -h, --help              this text\n";

#define wrong(fmt, what)                                                                     \
	(fprintf(stderr, "kvmprof %s: " fmt "; see `kvmprof %s --help`\n", o->command, what, \
		 o->command),                                                                \
	 2)

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
	OPT_BOOT = 256,
	OPT_VCPUS,
	OPT_INITRD,
	OPT_APPEND,
	OPT_CMDLINE,
	OPT_NO_TUNE,
	OPT_DURATION,
	OPT_NO_JITTER,
	OPT_MAX_OVERHEAD,
	OPT_STACK,
	OPT_SYMBOLS,
	OPT_GUEST_ROOT,
	OPT_DEBUGINFO,
	OPT_SINGLE,
	OPT_BUILDID,
	OPT_NO_CACHE,
	OPT_JSON
};

static const struct option longopts[] = {
	{ "boot", required_argument, NULL, OPT_BOOT },
	{ "mem", required_argument, NULL, 'm' },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "initrd", required_argument, NULL, OPT_INITRD },
	{ "append", required_argument, NULL, OPT_APPEND },
	{ "cmdline", required_argument, NULL, OPT_CMDLINE },
	{ "no-tune", no_argument, NULL, OPT_NO_TUNE },
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "freq", required_argument, NULL, 'F' },
	{ "no-jitter", no_argument, NULL, OPT_NO_JITTER },
	{ "max-overhead", required_argument, NULL, OPT_MAX_OVERHEAD },
	{ "stack-size", required_argument, NULL, OPT_STACK },
	{ "symbols", required_argument, NULL, OPT_SYMBOLS },
	{ "guest-root", required_argument, NULL, OPT_GUEST_ROOT },
	{ "debuginfo", required_argument, NULL, OPT_DEBUGINFO },
	{ "output", required_argument, NULL, 'o' },
	{ "single-file", no_argument, NULL, OPT_SINGLE },
	{ "buildid-dir", required_argument, NULL, OPT_BUILDID },
	{ "no-buildid-cache", no_argument, NULL, OPT_NO_CACHE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* One option; -1 to go on. */
static int take(struct run_options *o, int opt, const char *arg)
{
	double v;

	switch (opt) {
	case 'm':
		if (!parse_size(arg, &o->mem_size) || o->mem_size < 16 << 20)
			return wrong("--mem %s: expected a size of 16M or more, such as 512M or 2G",
				     arg);
		return -1;
	case OPT_BOOT:
		if (!strcmp(arg, "bzimage"))
			o->boot = BOOT_WAY_BZIMAGE;
		else if (!strcmp(arg, "vmlinux"))
			o->boot = BOOT_WAY_VMLINUX;
		else
			return wrong("--boot %s: expected vmlinux or bzimage", arg);
		return -1;
	case OPT_VCPUS:
		if (!parse_number(arg, 1, VM_MAX_VCPUS, &v) || v != floor(v))
			return wrong("--vcpus %s: expected a whole number from 1 to 8", arg);
		o->vcpus = (unsigned int)v;
		return -1;
	case OPT_DURATION:
		if (!parse_number(arg, 0.001, 1e7, &o->duration_s))
			return wrong("--duration %s: expected seconds, more than 0", arg);
		return -1;
	case 'F':
		if (!parse_number(arg, 0.1, RUN_FREQ_MAX, &o->freq_hz))
			return wrong("--freq %s: expected 0.1 to 50000 samples a second", arg);
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
	case OPT_APPEND:
		o->append = arg;
		return -1;
	case OPT_CMDLINE:
		o->cmdline = arg;
		return -1;
	case OPT_NO_TUNE:
		o->tune = false;
		return -1;
	case OPT_NO_JITTER:
		o->jitter = false;
		return -1;
	case OPT_SYMBOLS:
		o->symbols = arg;
		return -1;
	case OPT_GUEST_ROOT:
		o->guest_root = arg;
		return -1;
	case OPT_DEBUGINFO:
		o->debuginfo = arg;
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
	case ':':
		return wrong("option '%s' needs a value", arg);
	default:
		return wrong("unknown option '%s'", arg);
	}
}

#define MAX_OPTIONS 96u

/* getopt's tables of what a command takes: of run's options those it keeps, and its own. */
struct tables {
	struct option longs[MAX_OPTIONS + 1];
	char shorts[2 * MAX_OPTIONS + 2];
	size_t nlongs, nshorts;
};

static void add_option(struct tables *t, const struct option *opt)
{
	if (t->nlongs == MAX_OPTIONS)
		return;
	t->longs[t->nlongs++] = *opt;
	if (opt->val > UCHAR_MAX)
		return;
	t->shorts[t->nshorts++] = (char)opt->val;
	if (opt->has_arg == required_argument)
		t->shorts[t->nshorts++] = ':';
}

static bool keeps(const struct run_options_form *form, const char *name)
{
	for (const char *const *k = form ? form->keep : NULL; k && *k; k++)
		if (!strcmp(*k, name))
			return true;
	return !form;
}

static void make_tables(struct tables *t, const struct run_options_form *form)
{
	memset(t, 0, sizeof(*t));
	t->shorts[t->nshorts++] = ':';
	for (const struct option *l = longopts; l->name; l++)
		if (keeps(form, l->name))
			add_option(t, l);
	for (const struct option *l = form ? form->own : NULL; l && l->name; l++)
		add_option(t, l);
}

static bool is_own(const struct run_options_form *form, int opt)
{
	for (const struct option *l = form ? form->own : NULL; l && l->name; l++)
		if (l->val == opt)
			return true;
	return false;
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
	return run_options_parse_as(o, argc, argv, NULL);
}

int run_options_parse_as(struct run_options *o, int argc, char **argv,
			 const struct run_options_form *form)
{
	static char name[32]; /* the profile's header still reads argv later */
	struct tables t;
	int opt, ret;

	*o = (struct run_options){
		.command = form ? form->command : "run",
		.output = "perf.data",
		.freq_hz = form ? form->freq_hz : 997,
		.mem_size = 256ull << 20,
		.vcpus = 1,
		.stack_size = RUN_STACK_MAX,
		.jitter = true,
		.tune = true,
		.buildid_cache = true,
	};
	snprintf(name, sizeof(name), "kvmprof %s", o->command);
	argv[0] = name;
	make_tables(&t, form);
	optind = 1;
	opterr = 0; /* it would take two lines, its own and ours */
	while ((opt = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
		char letter[] = { '-', (char)optopt, '\0' };

		if (opt == 'h') {
			fputs(form ? form->usage : usage, stdout);
			return 0;
		}
		/* Of bundled letters getopt tells which, of long options only where. */
		if (opt == '?' || opt == ':')
			optarg = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];
		ret = is_own(form, opt) ? form->take(form->ctx, opt, optarg) : take(o, opt, optarg);
		if (ret >= 0)
			return ret;
	}
	if (optind < argc)
		o->image = argv[optind++];
	if (optind < argc)
		return wrong("unexpected argument '%s': one IMAGE at most", argv[optind]);
	if (o->boot == BOOT_WAY_BZIMAGE && !o->image)
		return wrong("--boot bzimage needs a %s: the demo guest is an ELF file",
			     "bzImage as IMAGE");
	if (run_to_stdout(o) && o->json)
		return wrong("-o - and --json both want standard output: drop %s", "--json");
	if (run_to_stdout(o) && !o->buildid_cache)
		return wrong("-o - needs the build-id cache: drop %s", "--no-buildid-cache");
	if (o->single_file && !o->buildid_cache)
		return wrong("--single-file needs the build-id cache: drop %s",
			     "--no-buildid-cache");
	return -1;
}
