/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cleanup.h"
#include "profile/record/options/options.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static struct run_options o;
static FILE *messages; /* what the last parse reported, and its help */

__attribute__((format(printf, 2, 0))) static void keep(void *ctx, const char *fmt, va_list ap)
{
	(void)ctx;
	vfprintf(messages, fmt, ap);
}

static const struct reporter reporter = { keep, NULL };

/* Arguments up to NULL, without the program's name. */
static int parse(const char *const *args)
{
	char copy[16][64], *argv[17] = { (char[]){ "run" } };
	int argc = 1, ret;

	for (; args[argc - 1]; argc++) {
		assert_in_range(argc, 1, 15);
		snprintf(copy[argc], sizeof(copy[argc]), "%s", args[argc - 1]);
		argv[argc] = copy[argc];
	}
	argv[argc] = NULL;
	assert_int_equal(ftruncate(fileno(messages), 0), 0);
	o.reporter = &reporter;
	o.help = messages;
	ret = run_options_parse(&o, argc, argv);
	fflush(messages);
	/* The strings live in this frame: keep what tests look at. */
	{
		static char kept[10][64];
		const char **text[] = { &o.image,
					&o.output,
					&o.initrd,
					&o.append[0],
					&o.append[1],
					&o.cmdline,
					&o.symbols,
					&o.buildid_dir,
					&o.alarm.on_hang.command,
					&o.alarm.on_panic.command };

		for (unsigned int i = 0; i < sizeof(text) / sizeof(text[0]); i++)
			if (*text[i]) {
				snprintf(kept[i], sizeof(kept[i]), "%s", *text[i]);
				*text[i] = kept[i];
			}
	}
	return ret;
}
#define PARSE(...) parse((const char *const[]){ __VA_ARGS__, NULL })

/* Did the last parse say this? */
static bool said(const char *what)
{
	char text[16384];
	ssize_t n = pread(fileno(messages), text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = 0;
	return strstr(text, what);
}

static int setup(void **state)
{
	(void)state;
	messages = tmpfile();
	if (!messages)
		return -1;
	/* append, so that a write after truncation begins at the start */
	return fcntl(fileno(messages), F_SETFL, O_APPEND) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	fclose(messages);
	return 0;
}

static void defaults(void **state)
{
	(void)state;
	memset(&o, 0xff, sizeof(o));
	o.command = NULL; /* the one thing that is looked at */
	assert_int_equal(parse((const char *const[]){ NULL }), -1);
	assert_null(o.image);
	assert_string_equal(o.output, "perf.data");
	assert_null(o.initrd);
	assert_int_equal(o.nappend, 0);
	assert_null(o.cmdline);
	assert_null(o.symbols);
	assert_null(o.buildid_dir);
	assert_true(o.freq_hz == 997);
	assert_true(o.duration_s == 0);
	assert_int_equal(o.mem_size, 256 * MIB);
	assert_int_equal(o.vcpus, 1);
	assert_int_equal(o.boot, BOOT_PROTOCOL_AUTO);
	assert_int_equal(o.stack_size, 16384);
	assert_true(o.jitter && o.tune && o.buildid_cache);
	assert_false(o.single_file || o.quiet || o.json);
}

/* Options that select samples. The mask is requested before its text is gone. */
static void what_is_kept(void **state)
{
	static const struct {
		const char *list;
		uint32_t mask; /* mask of 4 vCPUs; 0: refused */
	} cpus[] = { { "0", 1 },     { "1,3", 10 }, { "0-3", 15 },
		     { "2,0-1", 7 }, { "3-3", 8 },  { "4", 0 },
		     { "2-4", 0 },   { "3-2", 0 },  { "", 0 },
		     { ",", 0 },     { "1,", 0 },   { "-1", 0 },
		     { "1-", 0 },    { "+1", 0 },   { " 1", 0 },
		     { "1 ", 0 },    { "0x1", 0 },  { "99999999999999999999", 0 } };

	(void)state;
	for (unsigned int i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		assert_int_equal(PARSE("--vcpus", "4", "-C", cpus[i].list), cpus[i].mask ? -1 : 2);
		o.vcpu_list = cpus[i].list;
		assert_int_equal(run_options_vcpus(&o, 4), cpus[i].mask);
	}
	assert_int_equal(PARSE("--vcpus", "8"), -1);
	assert_int_equal(run_options_vcpus(&o, 8), 0xff);
	assert_false(o.overwrite || o.control || o.ring_size || o.max_stack);
	assert_int_equal(PARSE("--ring-size", "256K", "--max-stack", "1", "--control", "s"), -1);
	assert_true(o.ring_size == 256 << 10 && o.max_stack == 1 && o.control && !o.overwrite);
	assert_int_equal(PARSE("--overwrite"), -1);
	assert_true(o.overwrite && o.ring_size == RUN_OVERWRITE_SIZE);
	assert_int_equal(PARSE("--overwrite", "--ring-size", "8"), -1);
	assert_int_equal(o.ring_size, 8 * MIB);
	assert_int_equal(PARSE("--ring-size", "255K"), 2);
	assert_true(said("--ring-size 255K"));
	assert_int_equal(PARSE("--ring-size", "5G"), 2);
	assert_int_equal(PARSE("--max-stack", "257"), 2);
	assert_int_equal(PARSE("--max-stack", "1.5"), 2);
	assert_int_equal(PARSE("--control", ""), 2);
}

static void events(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-e", "cpu,cycles:u", "--event=exit:io", "-c", "7"), -1);
	assert_int_equal(o.events.n, 3);
	assert_string_equal(o.events.at[1].asked, "cycles:u");
	assert_int_equal(o.period, 7);
	assert_false(o.strict_event);
	assert_int_equal(PARSE("--strict-event", "--count", "20000", "-e", "task-clock"), -1);
	assert_true(o.strict_event);
	assert_int_equal(PARSE("-e", "nonsense"), 2);
	assert_true(said("--event: nonsense: no such event"));
	assert_int_equal(PARSE("-e", "wall", "-e", "wall"), 2);
	assert_true(said("given twice"));
	assert_int_equal(PARSE("-c", "0"), 2);
	assert_int_equal(PARSE("-c", "1.5"), 2);
	assert_int_equal(PARSE("-c", "-1"), 2);
	assert_int_equal(PARSE("-c", "100", "-e", "task-clock"), 2);
	assert_true(said("--count 100: task-clock counts ns"));
	assert_int_equal(PARSE("-e"), 2);
	assert_true(said("needs a value"));
}

static void about_alarms(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-F", "100"), -1);
	assert_false(run_options_has_alarm(&o));
	assert_int_equal(PARSE("--on-hang", "why", "--hang-after", "2.5"), -1);
	assert_true(run_options_has_alarm(&o) && o.alarm.on_hang.kind == RUN_ACTION_WHY);
	assert_true(o.alarm.hang_s > 2.4 && o.alarm.hang_s < 2.6 && !o.alarm.on_panic.kind);
	assert_int_equal(PARSE("--on-hang=end", "--on-panic=exec:echo $KVMPROF_VERDICT"), -1);
	assert_true(o.alarm.on_hang.kind == RUN_ACTION_END && !o.alarm.on_hang.command);
	assert_true(o.alarm.on_panic.kind == RUN_ACTION_EXEC);
	assert_string_equal(o.alarm.on_panic.command, "echo $KVMPROF_VERDICT");
	assert_int_equal(PARSE("--on-hang", "exec:"), 2);
	assert_true(said("expected why, end, or exec:COMMAND"));
	assert_int_equal(PARSE("--on-panic", "explode"), 2);
	assert_int_equal(PARSE("--hang-after", "5", "--on-panic", "why"), 2);
	assert_true(said("--hang-after needs --on-hang: give that, too"));
	assert_int_equal(PARSE("--engine", "exact", "--on-hang", "end"), 2);
	assert_int_equal(PARSE("--snapshot", "x.snap", "--on-hang", "end"), -1);
}

static void about_tasks(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-F", "100"), -1);
	assert_int_equal(run_options_off_cpu_ns(&o), 0);
	assert_int_equal(PARSE("--off-cpu", "--ps-at-end", "--no-status"), -1);
	assert_int_equal(run_options_off_cpu_ns(&o), 100000000);
	assert_true(o.tasks.ps_at_end && o.tasks.no_status);
	assert_int_equal(PARSE("--off-cpu", "--off-cpu-period", "2.5"), -1);
	assert_int_equal(run_options_off_cpu_ns(&o), 2500000);
	assert_int_equal(PARSE("--off-cpu-period", "20"), 2);
	assert_true(said("--off-cpu-period needs --off-cpu"));
	assert_int_equal(PARSE("--off-cpu", "--off-cpu-period", "0"), 2);
	assert_true(said("expected 1 to 60000"));
	assert_int_equal(PARSE("--off-cpu", "--off-cpu-period", "nan"), 2);
	assert_int_equal(PARSE("--off-cpu", "--off-cpu-period", "5x"), 2);
	assert_int_equal(PARSE("--off-cpu", "-e", "wall,cpu,exit:io,exit:mmio,exit:msr", "-e",
			       "cycles,instructions,faults"),
			 2);
	assert_true(said("one event fewer"));
}

static void every_option(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--memory", "1G", "--vcpus", "4", "--initrd", "i.cpio", "--append",
			       "a b", "--duration", "1.5", "--freq", "0.5", "bzImage"),
			 -1);
	assert_int_equal(o.mem_size, 1024 * MIB);
	assert_int_equal(o.vcpus, 4);
	assert_string_equal(o.initrd, "i.cpio");
	assert_int_equal(o.nappend, 1);
	assert_string_equal(o.append[0], "a b");
	assert_true(o.duration_s == 1.5);
	assert_true(o.freq_hz == 0.5);
	assert_string_equal(o.image, "bzImage");

	assert_int_equal(PARSE("vmlinux", "--cmdline", "", "--no-tune", "--no-jitter",
			       "--stack-size=4096", "--symbols=System.map", "--output", "x.data"),
			 -1);
	assert_string_equal(o.image, "vmlinux"); /* options may follow it */
	assert_string_equal(o.cmdline, "");	 /* empty is not "not given" */
	assert_false(o.tune);
	assert_false(o.jitter);
	assert_int_equal(o.stack_size, 4096);
	assert_string_equal(o.symbols, "System.map");
	assert_string_equal(o.output, "x.data");

	assert_int_equal(PARSE("--single-file", "--buildid-dir", "ids", "--json", "--quiet"), -1);
	assert_true(o.single_file && o.json && o.quiet && o.buildid_cache);
	assert_string_equal(o.buildid_dir, "ids");
	assert_int_equal(PARSE("--no-buildid-cache"), -1);
	assert_false(o.buildid_cache);

	assert_int_equal(PARSE("--boot", "bzimage", "bzImage"), -1);
	assert_int_equal(o.boot, BOOT_PROTOCOL_BZIMAGE);
	assert_int_equal(PARSE("--boot=bzimage", "--boot=vmlinux"), -1);
	assert_int_equal(o.boot, BOOT_PROTOCOL_VMLINUX);

	assert_int_equal(PARSE("-m", "32M", "-F", "100", "-o", "y", "-q"), -1);
	assert_int_equal(o.mem_size, 32 * MIB);
	assert_true(o.freq_hz == 100);
	assert_string_equal(o.output, "y");
	assert_true(o.quiet);
	/* Words after "--" belong to a command. */
	assert_int_equal(PARSE("-m64", "bzImage", "--", "--quiet"), -1);
	assert_int_equal(o.mem_size, 64 * MIB);
	assert_int_equal(o.exec.nwords, 1);
	assert_false(o.quiet);
	assert_false(said("kvmprof"));
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} good[] = {
		{ "16M", 16 * MIB },	{ "16m", 16 * MIB },
		{ "16", 16 * MIB },	{ "16384K", 16 * MIB },
		{ "16384k", 16 * MIB }, { "1g", 1024 * MIB },
		{ "2G", 2048 * MIB },	{ "17179869183G", UINT64_C(17179869183) << 30 },
	};
	static const char *const bad[] = {
		"",
		"M",
		"15M",
		"15",
		"16383K",
		"0",
		"-1",
		"-16M",
		" -1G",
		"+64M",
		" 64M",
		"1.5G",
		"16MX",
		"16M ",
		"0x40M",
		"64P",
		"17179869184G",
		"18446744073709551616",
		"17592186044416",
		"many",
		" -18446744073709000000K",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(PARSE("-m", good[i].text), -1);
		assert_int_equal(o.mem_size, good[i].size);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (PARSE("-m", bad[i]) != 2)
			fail_msg("--memory '%s' was taken", bad[i]);
		assert_true(said("--memory"));
		assert_true(said(bad[i]));
	}
}

static void devices(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--rng", "--virtio", "mmio", "--virtio-console"), -1);
	assert_true(o.rng && o.virtio_mmio && o.virtio_console);
	assert_int_equal(o.net.kind, NET_NONE);
	assert_int_equal(PARSE("--virtio=mmio", "--virtio=pci", "--net", "tap=tap0"), -1);
	assert_false(o.virtio_mmio);
	assert_int_equal(o.net.kind, NET_TAP);
	assert_string_equal(o.net_tap, "tap0");
	assert_int_equal(PARSE("--net", "user,hostfwd=tcp:8080-:80,hostfwd=udp::53-:5353"), -1);
	assert_int_equal(o.net.kind, NET_USER);
	assert_int_equal(o.net.nforwards, 2);
	assert_false(o.net.forward[0].udp);
	assert_int_equal(o.net.forward[0].host, 8080);
	assert_int_equal(o.net.forward[0].guest, 80);
	assert_true(o.net.forward[1].udp);
	assert_int_equal(o.net.forward[1].host, 53);
	assert_int_equal(o.net.forward[1].guest, 5353);
	assert_int_equal(PARSE("--overlay-max", "64M"), -1);
	assert_int_equal(o.disk.overlay_max, 64 << 20);
	assert_int_equal(PARSE("--overlay-max", "0"), 2);
	assert_int_equal(PARSE("--overlay-max", "much"), 2);
	assert_int_equal(PARSE("--virtio", "isa"), 2);
	assert_int_equal(PARSE("--net", "user,restrict,hostfwd=tcp:1-:1"), -1);
	assert_true(o.net.restricted && !o.net.host_loopback && o.net.nforwards == 1);
	assert_int_equal(PARSE("--net", "user,host-loopback"), -1);
	assert_true(o.net.host_loopback && !o.net.restricted);
	assert_int_equal(PARSE("--net", "user,restrict,host-loopback"), 2);
	assert_int_equal(PARSE("--net", "user,restricted"), 2);
	assert_int_equal(PARSE("--net", "user,"), 2);
	assert_int_equal(PARSE("--net", "user,rate=10M/s,restrict,pps=500"), -1);
	assert_int_equal(o.net.limit.bytes, 10 << 20);
	assert_int_equal(o.net.limit.operations, 500);
	assert_true(o.net.restricted);
	assert_int_equal(PARSE("--net", "tap=tap0,pps=7/s,rate=64K"), -1);
	assert_string_equal(o.net_tap, "tap0");
	assert_int_equal(o.net.limit.bytes, 64 << 10);
	assert_int_equal(o.net.limit.operations, 7);
	assert_int_equal(PARSE("--net", "tap=tap0"), -1);
	assert_int_equal(o.net.limit.bytes | o.net.limit.operations, 0);
	assert_int_equal(PARSE("--net", "tap=tap0,"), 2);
	assert_int_equal(PARSE("--net", "tap=tap0,restrict"), 2);
	assert_int_equal(PARSE("--net", "tap=,rate=1M"), 2);
	assert_int_equal(PARSE("--net", "user,rate=0"), 2);
	assert_int_equal(PARSE("--net", "user,rate=1K"), 2);
	assert_int_equal(PARSE("--net", "user,rate=-1M"), 2);
	assert_int_equal(PARSE("--net", "user,rate="), 2);
	assert_int_equal(PARSE("--net", "user,rate=99999999999999999999999999999999999999M"), 2);
	assert_int_equal(PARSE("--net", "user,pps=0"), 2);
	assert_int_equal(PARSE("--net", "user,iops=5"), 2);
	assert_int_equal(PARSE("--net", "users"), 2);
	assert_int_equal(PARSE("--net", "user,hostfwd=sctp:1-:1"), 2);
	assert_int_equal(PARSE("--net", "user,hostfwd=tcp:1-1"), 2);
	assert_int_equal(PARSE("--net", "user,hostfwd=tcp:1-:65536"), 2);
	assert_int_equal(PARSE("--net", "user,hostfwd=tcp:1-:1x"), 2);
	assert_int_equal(PARSE("--net", "user,hostfwd=tcp: 1-:1"), 2);
	assert_int_equal(PARSE("--net", "tap="), 2);
	assert_int_equal(PARSE("--net", "tap=sixteen-bytes-xx"), 2);
	assert_int_equal(PARSE("--net", "user", "--net", "tap=t"), 2);
	assert_true(said("one network card"));
}

static void bad_values(void **state)
{
	static const struct {
		const char *option, *value;
	} bad[] = {
		{ "--boot", "elf" },
		{ "--boot", "" },
		{ "--vcpus", "0" },
		{ "--vcpus", "65" },
		{ "--vcpus", "1.5" },
		{ "--vcpus", "-1" },
		{ "--vcpus", "two" },
		{ "--vcpus", "" },
		{ "--vcpus", "2x" },
		{ "--vcpus", "nan" },
		{ "--freq", "0" },
		{ "--freq", "0.09" },
		{ "--freq", "50001" },
		{ "--freq", "inf" },
		{ "--freq", "nan" },
		{ "--freq", "51k" },
		{ "--freq", "1m" },
		{ "--freq", "-100" },
		{ "--freq", "" },
		{ "--duration", "0" },
		{ "--duration", "-1" },
		{ "--duration", "nan" },
		{ "--duration", "1e8" },
		{ "--duration", "10y" },
		{ "--duration", "1e999" },
		{ "--stack-size", "255" },
		{ "--stack-size", "16385" },
		{ "--stack-size", "1000.5" },
		{ "--stack-size", "8K" },
		{ "--stack-size", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (PARSE(bad[i].option, bad[i].value) != 2)
			fail_msg("%s '%s' was taken", bad[i].option, bad[i].value);
		assert_true(said(bad[i].option));
		assert_true(said("--help"));
	}
	/* the limits themselves are good */
	assert_int_equal(PARSE("--vcpus", "8", "--freq", "50000", "--stack-size", "256"), -1);
	assert_int_equal(PARSE("--vcpus", "1", "--freq", "0.1", "--stack-size", "16384"), -1);
	assert_int_equal(PARSE("--stack-size", "263"), -1);
	assert_int_equal(o.stack_size, 256); /* whole words */
}

static void wrong_usage(void **state)
{
	(void)state;
	assert_int_equal(PARSE("one", "two"), 2);
	assert_true(said("'two'"));
	assert_int_equal(PARSE("one", "-q", "two"), 2);
	assert_int_equal(PARSE("--no-such-option"), 2);
	assert_true(said("kvmprof run: "));
	assert_true(said("no-such-option"));
	assert_int_equal(PARSE("-x"), 2);
	assert_int_equal(PARSE("--memory"), 2); /* its value is missing */
	assert_int_equal(PARSE("--quiet=yes"), 2);
	assert_int_equal(PARSE("--mem", "512M"), 2); /* that was its size once */
	assert_true(said("-m 512M"));
	assert_int_equal(PARSE("--mem=512M"), 2);
	assert_int_equal(PARSE("--mem", "-m", "512M"), -1);
	assert_true(o.mem && o.mem_size == 512 * MIB);
	assert_int_equal(PARSE("--single-file", "--no-buildid-cache"), 2);
	assert_true(said("--single-file"));
	assert_int_equal(PARSE("--no-buildid-cache", "--single-file"), 2);
	/* a good line after the bad ones: nothing is left of them */
	assert_int_equal(PARSE("image"), -1);
	assert_string_equal(o.image, "image");
	assert_true(o.buildid_cache);
	assert_int_equal(PARSE("--boot=bzimage"), 2);
	assert_true(said("needs a bzImage as IMAGE"));
}

static void when_to_collect(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--delay", "0.5", "--samples", "1000", "--duration", "2"), -1);
	assert_true(o.delay_s > 0.49 && o.delay_s < 0.51);
	assert_int_equal(o.max_samples, 1000);
	assert_int_equal(PARSE("--start-on", "a", "--stop-on=b", "--start-at", "c", "--stop-at=d"),
			 -1);
	assert_true(o.start_on && o.stop_on && o.start_at && o.stop_at);
	assert_int_equal(PARSE("--mark", "a", "--mark-at", "x", "--mark", "b=c", "--mark-at=y"),
			 -1);
	assert_int_equal(o.nmark_on, 2);
	assert_int_equal(o.nmark_at, 2);
	assert_int_equal(PARSE("image"), -1);
	assert_true(!o.start_on && !o.nmark_on && !o.nmark_at && !o.max_samples);
	assert_int_equal(PARSE("--samples", "0"), 2);
	assert_int_equal(PARSE("--samples", "1.5"), 2);
	assert_int_equal(PARSE("--samples", "many"), 2);
	assert_int_equal(PARSE("--delay", "-1"), 2);
	assert_int_equal(PARSE("--delay", "nan"), 2);
	assert_int_equal(PARSE("--start-on"), 2);
	assert_true(said("needs a value"));
}

static void append_again(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--append", "a", "--append", "b c"), -1);
	assert_int_equal(o.nappend, 2);
	assert_string_equal(o.append[1], "b c");
	assert_string_equal(o.append[0], "a");
}

/* Each option that getopt knows stands in the help text and the other way round. */
static void help(void **state)
{
	static const char *const options[] = {
		"--boot",	"-m, --memory",	    "--vcpus",	     "--initrd",
		"--append",	"--cmdline",	    "--no-tune",     "--duration",
		"--delay",	"--samples",	    "--start-on",    "--stop-on",
		"--start-at",	"--stop-at",	    "--mark",	     "--mark-at",
		"-F, --freq",	"--no-jitter",	    "--stack-size",  "--symbols",
		"-o, --output", "--single-file",    "--buildid-dir", "--no-buildid-cache",
		"--json",	"-q, --quiet",	    "-h, --help",    "--mem ",
		"--off-cpu ",	"--off-cpu-period", "--ps-at-end",   "--no-status",
		"--sandbox",	"--no-summary",
	};

	(void)state;
	assert_int_equal(PARSE("--help"), 0);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (!said(options[i]))
			fail_msg("--help does not tell about %s", options[i]);
	assert_int_equal(PARSE("-h", "--vcpus", "99"), 0); /* help comes first */
	assert_int_equal(PARSE("--vcpus", "99", "-h"), 2);
}

/* Reads on to the next option in the last parse's help. Returns false at its end. */
static bool next_option(char *name, size_t size)
{
	char line[256];

	while (fgets(line, sizeof(line), messages)) {
		const char *at = line + strspn(line, " ");

		if (at - line > 6 || *at != '-')
			continue;
		if (at[1] != '-')
			at += strlen("-o, ");
		if (strncmp(at, "--", 2) != 0 || at[2] == ' ')
			continue;
		snprintf(name, size, "%.*s", (int)strcspn(at + 2, " =[\n"), at + 2);
		return true;
	}
	return false;
}

/* A new option belongs into the one list or the other: see profile/record/options/snapshot.c. */
static void beside_a_snapshot(void **state)
{
	static const char *const machine[] = {
		"boot",	  "entry",	    "module",	   "memory",  "vcpus",	 "initrd",
		"kernel", "root",	    "append",	   "cmdline", "no-tune", "virtio",
		"rng",	  "virtio-console", "writable",	   "domain",  "connect", "exec",
		"rootfs", "rootfs-as",	    "env",	   "cwd",     "modules", "modprobe",
		"engine", "repeat",	    "call-counts", "reboot",
	};
	static const char *const wrong[][3] = {
		{ "--kernel", "x", "--kernel" }, { "--module", "x", "--module" },
		{ "-m", "64M", "--memory" },	 { "--no-tune", NULL, "--no-tune" },
		{ "--env", "A=b", "--env" },	 { "--virtio", "pci", "--virtio" },
		{ "x", NULL, "IMAGE" },		 { "--writable", NULL, "--writable" },
	};
	unsigned int refused = 0;
	char name[64];

	(void)state;
	/* Each option begins a line of the help: "  -o, --output FILE   text". */
	assert_int_equal(PARSE("--help"), 0);
	rewind(messages);
	while (next_option(name, sizeof(name))) {
		bool is_machine = false;

		for (size_t k = 0; k < ARRAY_SIZE(machine); k++)
			is_machine |= !strcmp(name, machine[k]);
		if (is_machine == run_options_snapshot_accepts(name))
			fail_msg("does --%s go with --snapshot?", name);
		refused += is_machine;
	}
	assert_int_equal(refused, ARRAY_SIZE(machine));
	assert_int_equal(PARSE("--snapshot", "s", "--disk", "a", "--net", "user", "-F", "9"), -1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(PARSE("--snapshot", "s", wrong[i][0], wrong[i][1]), 2);
		assert_true(said("drop "));
		assert_true(said(wrong[i][2]));
	}
	assert_int_equal(PARSE("--snapshot", "s", "--", "ls"), 2);
	assert_int_equal(PARSE("--snapshot", "s", "--share", "/", "--snapshot-trust"), -1);
	assert_int_equal(PARSE("--snapshot-trust"), 2);
}

/* Command lines with an empty variable in the place of IMAGE. */
static void without_image(void **state)
{
	static const char *const wrong[][4] = {
		{ "--initrd", "x", NULL, "--initrd" },
		{ "--root", "/dev/vda", NULL, "--root" },
		{ "--disk", "x.img", NULL, "--disk" },
		{ "--disk", "x.img", "--append=work=1", "--disk" },
		{ "--writable", NULL, NULL, "--writable" },
		{ "--module", "x", NULL, "--module" },
		{ "--modules", "x", NULL, "--modules" },
		{ "--share", "/", NULL, "--share" },
		{ "--rootfs", "/", NULL, "IMAGE" },
		{ "--symbols", "x", NULL, "--symbols" },
		{ "--guest-root", "/", NULL, "--guest-root" },
		{ "--debuginfo", "/", NULL, "--debuginfo" },
		{ "--append", "quiet root=/dev/vda", NULL, "root=/dev/vda" },
		{ "--append", "work=1", "--append=\troot=UUID=1 ro", "root=UUID=1" },
		{ "--cmdline", "rootfstype=ext4", NULL, "rootfstype=ext4" },
		{ "--append", "init=/bin/sh", NULL, "init=/bin/sh" },
		{ "--append", "rdinit=/init", NULL, "rdinit=/init" },
		{ "--engine=exact", "--initrd=x", NULL, "--initrd" },
		{ "--engine=exact", "--append=root=/dev/pmem0", NULL, "root=/dev/pmem0" },
	};
	static const char *const right[][3] = {
		{ "--disk", "x.img", "--append=mode=serial" },
		{ "--symbols", "live", NULL },
		{ "--append", "work=1 chroot=1 rooted=2 slow=root", NULL },
		{ "--kernel", "x", "--initrd=y" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(PARSE(wrong[i][0], wrong[i][1], wrong[i][2]), 2);
		assert_true(said(wrong[i][3]));
		assert_true(said("demo guest") || said("IMAGE"));
		/* With IMAGE it is no matter of this. */
		PARSE("bzImage", wrong[i][0], wrong[i][1], wrong[i][2]);
		assert_false(said("demo guest"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		assert_int_equal(PARSE(right[i][0], right[i][1], right[i][2]), -1);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(defaults),	   TEST(events),	  TEST(every_option),
		TEST(sizes),	   TEST(bad_values),	  TEST(what_is_kept),
		TEST(wrong_usage), TEST(when_to_collect), TEST(about_alarms),
		TEST(about_tasks), TEST(devices),	  TEST(beside_a_snapshot),
		TEST(help),	   TEST(append_again),	  TEST(without_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
