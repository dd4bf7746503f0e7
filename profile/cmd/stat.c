/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_stat: `kvmprof stat`: boot as `kvmprof run` does, and count instead of recording.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/run/run.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: kvmprof stat [OPTIONS] [IMAGE]\n"
	"\n"
	"Boot a kernel under KVM and count: why it left the guest, and how long it was in the\n"
	"guest, in KVM, and in the VMM. IMAGE is as for `kvmprof run'. The guest's console goes\n"
	"to standard error, the counters to standard output.\n"
	"\n"
	"Counters:\n"
	"      --interval SECONDS  also print what was counted in each such interval, 0.05 or "
	"more\n"
	"  -I, --interval-print MS the same in milliseconds, as perf stat has it\n"
	"  -A, --no-aggr           a line for each virtual CPU, not their sum\n"
	"  -x, --field-separator SEP\n"
	"                          fields for a spreadsheet, with SEP between them\n"
	"      --json              JSON, an object a line\n"
	"\n"
	"Guest, as for `kvmprof run':\n"
	"      --boot WAY          vmlinux (default) or bzimage\n"
	"  -m, --memory SIZE       memory, with K, M or G (default 256M)\n"
	"      --vcpus N           virtual CPUs, 1 to 64 (default 1)\n"
	"      --initrd FILE       initial RAM disk\n"
	"      --disk PATH[,...]   a disk, as for kvmprof run\n"
	"      --append TEXT       add to the kernel's command line\n"
	"      --cmdline TEXT      replace kvmprof's default command line\n"
	"      --no-tune           add nothing to it because of a slow host\n"
	"      --duration SECONDS  stop after that long (default: when the guest ends)\n"
	"\n"
	"Sampling, to see what it costs (default: none; the samples are thrown away):\n"
	"  -F, --freq HZ           samples a second on each vCPU\n"
	"      --no-jitter         strictly periodic\n"
	"      --max-overhead PCT  sample less often when it takes more of the guest's time\n"
	"      --stack-size BYTES  copy at most so much of a stack, up to 16384 (default)\n"
	"\n"
	"  -q, --quiet             do not show the guest's console\n"
	"  -h, --help              this text\n";

enum { OPT_RUN = 256, OPT_INTERVAL };

/* More than rows ever are wide; a separator is a few bytes. */
#define SEP_MAX 16u

struct stat_options {
	double interval_s; /* 0: none */
	const char *sep;   /* NULL: for people */
	bool per_vcpu;
};

/* OPT_RUN: one of kvmprof run's, known by its name. */
static const struct option longopts[] = {
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "interval-print", required_argument, NULL, 'I' },
	{ "no-aggr", no_argument, NULL, 'A' },
	{ "field-separator", required_argument, NULL, 'x' },
	{ "boot", required_argument, NULL, OPT_RUN },
	{ "memory", required_argument, NULL, 'm' },
	{ "vcpus", required_argument, NULL, OPT_RUN },
	{ "initrd", required_argument, NULL, OPT_RUN },
	{ "disk", required_argument, NULL, OPT_RUN },
	{ "append", required_argument, NULL, OPT_RUN },
	{ "cmdline", required_argument, NULL, OPT_RUN },
	{ "no-tune", no_argument, NULL, OPT_RUN },
	{ "duration", required_argument, NULL, OPT_RUN },
	{ "freq", required_argument, NULL, 'F' },
	{ "no-jitter", no_argument, NULL, OPT_RUN },
	{ "max-overhead", required_argument, NULL, OPT_RUN },
	{ "stack-size", required_argument, NULL, OPT_RUN },
	{ "json", no_argument, NULL, OPT_RUN },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int wrong(const char *what, const char *arg, const char *expected)
{
	fprintf(stderr, "kvmprof stat: %s %s: expected %s; see `kvmprof stat --help`\n", what, arg,
		expected);
	return 2;
}

static bool parse_interval(const char *arg, double unit, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(arg, &end) * unit;
	return !errno && end != arg && !*end && *out >= 0.05 && *out <= 1e6;
}

/* One option; -1 to go on. index: of a long one in the table. */
static int take(struct run_options *run, struct stat_options *o, int opt, int index,
		const char *arg)
{
	switch (opt) {
	case OPT_INTERVAL:
		if (!parse_interval(arg, 1, &o->interval_s))
			return wrong("--interval", arg, "seconds, 0.05 or more");
		return -1;
	case 'I':
		if (!parse_interval(arg, 1e-3, &o->interval_s))
			return wrong("-I", arg, "milliseconds, 50 or more");
		return -1;
	case 'x':
		if (!*arg || strlen(arg) > SEP_MAX)
			return wrong("-x", arg, "a separator of 1 to 16 bytes");
		o->sep = arg;
		return -1;
	case 'A':
		o->per_vcpu = true;
		return -1;
	case 'm':
		return run_options_set(run, "memory", arg);
	case 'F':
		return run_options_set(run, "freq", arg);
	case 'q':
		return run_options_set(run, "quiet", NULL);
	case 'h':
		fputs(usage, stdout);
		return 0;
	case OPT_RUN:
		return run_options_set(run, longopts[index].name, arg);
	default:
		fprintf(stderr, "kvmprof stat: %s '%s'%s; see `kvmprof stat --help`\n",
			opt == ':' ? "option" : "unknown option", arg,
			opt == ':' ? " needs a value" : "");
		return 2;
	}
}

static int misused(const char *why)
{
	fprintf(stderr, "kvmprof stat: %s; see `kvmprof stat --help`\n", why);
	return 2;
}

static int parse(struct run_options *run, struct stat_options *o, int argc, char **argv)
{
	int opt, ret, index;

	run_options_default(run);
	run->command = "stat";
	run->freq_hz = 0;
	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":I:Ax:m:F:qh", longopts, &index)) != -1) {
		char letter[] = { '-', (char)optopt, '\0' };

		/* Of bundled letters getopt tells which, of long options only where. */
		if (opt == '?' || opt == ':')
			optarg = optopt > 0 && optopt < OPT_RUN ? letter : argv[optind - 1];
		ret = take(run, o, opt, index, optarg);
		if (ret >= 0)
			return ret;
	}
	if (optind < argc)
		run->image = argv[optind++];
	if (optind < argc)
		return wrong("unexpected argument", argv[optind], "one IMAGE at most");
	if (run->boot == BOOT_WAY_BZIMAGE && !run->image)
		return misused("--boot bzimage needs a bzImage as IMAGE");
	if (o->sep && run->json)
		return misused("-x and --json are two forms: drop one");
	if (run->max_overhead > 0 && run->freq_hz <= 0)
		return misused("--max-overhead is about sampling: add --freq");
	return -1;
}

/* What is printed while the guest runs; run.tick_ctx. */
struct stat_run {
	struct stat_options opt;
	struct stat_table now, before, part;
	uint64_t due_ns; /* end of the interval, since the guest's first instruction */
	bool failed;	 /* no memory for JSON */
};

static void put(struct stat_run *s, const struct stat_table *t, bool json, bool interval)
{
	struct stat_style style = {
		.sep = s->opt.sep,
		.per_vcpu = s->opt.per_vcpu,
		.interval = interval,
		.time_ns = s->now.elapsed_ns,
	};
	struct buf b;

	if (!json) {
		stat_print(t, &style, stdout);
		return;
	}
	buf_init(&b);
	if (interval)
		buf_printf(&b, "{\"interval_end_seconds\":%.6f,\"stat\":",
			   (double)s->now.elapsed_ns / 1e9);
	stat_json(t, &b);
	if (interval)
		buf_u8(&b, '}');
	s->failed |= b.failed;
	if (!b.failed)
		fwrite(b.data, 1, b.len, stdout);
	putchar('\n');
	buf_deinit(&b);
}

static void put_interval(struct run *r, struct stat_run *s)
{
	stat_read(r->stat, &s->now);
	s->part = s->now;
	stat_since(&s->part, &s->before);
	put(s, &s->part, r->opt.json, true);
	fflush(stdout);
	s->before = s->now;
}

/* Nobody wants the samples: only what they cost. */
static void drain(struct vm *vm)
{
	size_t len;

	for (unsigned int i = 0; i < vm_vcpus(vm); i++)
		while (ring_peek(vm_ring(vm, i), &len))
			ring_release(vm_ring(vm, i));
}

/* Then the end of the time is known, and it is in the past. */
static bool has_ended(const struct vm *vm)
{
	struct pollfd end = { .fd = vm_end_fd(vm), .events = POLLIN };

	return poll(&end, 1, 0) != 0;
}

static void tick(struct run *r, uint64_t now_ns)
{
	struct stat_run *s = r->tick_ctx;
	uint64_t step = (uint64_t)(s->opt.interval_s * 1e9), first = vm_first_entry_ns(r->vm);

	drain(r->vm);
	if (cost_bound_look(&r->bound, now_ns))
		fprintf(stderr, "kvmprof: --max-overhead: from now on a sample every %.3f ms\n",
			(double)vm_period(r->vm, 0) / 1e6);
	if (!step || !first || now_ns < first || now_ns - first < s->due_ns + step ||
	    has_ended(r->vm))
		return;
	s->due_ns += (now_ns - first - s->due_ns) / step * step;
	put_interval(r, s);
}

static void print_end(struct run *r, struct stat_run *s)
{
	const struct vm_result *res = vm_result(r->vm);

	if (r->opt.json) {
		put(s, &s->now, true, false);
		return;
	}
	if (!s->opt.sep)
		printf("\n Counters of '%s', %u vCPU%s:\n\n", r->target.name, vm_vcpus(r->vm),
		       vm_vcpus(r->vm) > 1 ? "s" : "");
	put(s, &s->now, false, false);
	if (s->opt.sep)
		return;
	printf("\n%18.6f seconds, then: %s\n\n", (double)s->now.elapsed_ns / 1e9,
	       vm_end_name(res->reason));
	if (r->opt.freq_hz > 0) {
		cost_print(r->vm, stdout);
		putchar('\n');
	}
}

static int stat_guest(struct run *r, struct stat_run *s, struct err *e)
{
	int ret = run_prepare(r, e);

	ret = ret ? ret : vm_start(r->vm, e);
	if (ret)
		return ret;
	r->tick = tick;
	r->tick_ctx = s;
	run_wait(r);
	vm_join(r->vm);
	console_flush(&r->console);
	stat_read(r->stat, &s->now);
	if (s->opt.interval_s > 0) {
		s->part = s->now;
		stat_since(&s->part, &s->before);
		put(s, &s->part, r->opt.json, true);
	}
	print_end(r, s);
	if (vm_result(r->vm)->err.code)
		return err_set(e, vm_result(r->vm)->err.code, "%s", vm_result(r->vm)->err.text);
	if (s->failed)
		return err_set(e, ENOMEM, "out of memory");
	return fflush(stdout) ? err_set(e, errno, "standard output: %s", strerror(errno)) : 0;
}

int cmd_stat(int argc, char **argv)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r));
	cleanup_free struct stat_run *s = calloc(1, sizeof(*s));
	struct err e = { 0 };
	int status, ret;

	if (!r || !s) {
		fputs("kvmprof: out of memory\n", stderr);
		return 1;
	}
	status = parse(&r->opt, &s->opt, argc, argv);
	if (status >= 0)
		return status;
	run_init(r);
	console_init(&r->console, r->opt.quiet ? -1 : STDERR_FILENO);
	ret = run_markers_init(&r->markers, &r->opt, &r->console, &e);
	ret = ret ? ret : stat_guest(r, s, &e);
	if (ret) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		status = 1;
	} else {
		status = 0;
	}
	run_deinit(r);
	return status;
}
