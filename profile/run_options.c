/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run_options.h"

#include "vmm/layout.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	"  -m, --memory SIZE       memory, with K, M or G (default 256M)\n"
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
	"      --stack-size BYTES  copy at most so much of a stack, up to 16384 (default)\n"
	"      --symbols FILE      names from a vmlinux, System.map, kallsyms or nm output;\n"
	"                          live: from the running kernel's memory alone\n"
	"      --guest-root DIR    the guest's file system: names of its programs, JIT maps\n"
	"      --debuginfo DIR     debug files of its programs, by build id\n"
	"      --mem               also what memory the sampled instructions use: kvmprof mem\n"
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

#define wrong(fmt, what) \
	(fprintf(stderr, "kvmprof run: " fmt "; see `kvmprof run --help`\n", what), 2)

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
	OPT_STACK,
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
	{ "memory", required_argument, NULL, 'm' },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "initrd", required_argument, NULL, OPT_INITRD },
	{ "append", required_argument, NULL, OPT_APPEND },
	{ "cmdline", required_argument, NULL, OPT_CMDLINE },
	{ "no-tune", no_argument, NULL, OPT_NO_TUNE },
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "freq", required_argument, NULL, 'F' },
	{ "no-jitter", no_argument, NULL, OPT_NO_JITTER },
	{ "stack-size", required_argument, NULL, OPT_STACK },
	{ "symbols", required_argument, NULL, OPT_SYMBOLS },
	{ "guest-root", required_argument, NULL, OPT_GUEST_ROOT },
	{ "debuginfo", required_argument, NULL, OPT_DEBUGINFO },
	{ "mem", no_argument, NULL, OPT_MEM },
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
			return wrong(
				"--memory %s: expected a size of 16M or more, such as 512M or 2G",
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
		return wrong("unknown option '%s'", arg);
	}
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
	static char name[] = "kvmprof run"; /* the profile's header still reads argv later */
	uint64_t size;
	int opt, ret;

	*o = (struct run_options){
		.output = "perf.data",
		.freq_hz = 997,
		.mem_size = 256ull << 20,
		.vcpus = 1,
		.stack_size = RUN_STACK_MAX,
		.jitter = true,
		.tune = true,
		.buildid_cache = true,
	};
	argv[0] = name;
	optind = 1;
	opterr = 0; /* it would take two lines, its own and ours */
	while ((opt = getopt_long(argc, argv, ":m:F:o:qh", longopts, NULL)) != -1) {
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
