/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/exact.h"

#include "base/cleanup.h"
#include "profile/record/options/options.h"
#include "vmm/exact/exact.h"

#include <string.h>

#define OPTION_STRUCT struct run_options

static const char *const engines[] = { "kvm", "exact", NULL };

const struct option_row run_exact_rows[] = {
	{ "engine", 0, "WHAT",
	  "the engine that runs it: kvm (default), or exact: QEMU, which counts\n"
	  "instructions, so that each run gives the same profile",
	  OPTION_WORD(engine, engines) },
	{ "call-counts", 0, NULL,
	  "with --engine exact: count every instruction and every call, by\n"
	  "function and stack, instead of samples",
	  OPTION_PUT(call_counts, true) },
	{ "repeat", 0, "N",
	  "with --engine exact: N runs in turn, which must give the same\n"
	  "profile; exit status 1 if they differ",
	  OPTION_WHOLE(repeat, 1, RUN_REPEAT_MAX, "1 to 100 runs") },
	{ 0 },
};

/* An option that is not in this list is refused, so that none is ignored. */
static const char *const takes[] = {
	/* the guest */
	"engine", "repeat", "call-counts", "boot", "memory", "vcpus", "initrd", "kernel", "root",
	"append", "cmdline", "disk", "backing", "exec", "rootfs", "env", "cwd", "modules",
	"modprobe",
	/* times, events and samples */
	"duration", "reboot", "delay", "samples", "start-on", "stop-on", "mark", "start-at",
	"stop-at", "mark-at", "event", "count", "stack-size", "max-stack", "no-jitter", "cpu",
	"symbols", "guest-root", "debuginfo",
	/* results */
	"output", "view", "no-output", "single-file", "buildid-dir", "no-buildid-cache", "json",
	"ps-at-end", "no-status", "no-summary", "sandbox", "quiet", "help"
};

/* The reason why an option is refused, if that is not obvious from its name. */
static const struct {
	const char *name, *why;
} whys[] = {
	{ "freq", "samples are by instructions, not by time: give -c N" },
	{ "no-tune", "nothing is added to the command line there" },
	{ "writable", "an image that a run changes is another one for the next run" },
	{ "overlay-max", "what is written to a disk stays in QEMU's memory" },
	{ "net", "a network does not repeat" },
	{ "share", "9P does not repeat; --rootfs puts files into an initramfs" },
	{ "rootfs-as", "a file system is made anew each time; the initramfs is what it takes" },
	{ "rng", "it has no source of randomness" },
	{ "max-overhead", "what a sample costs is no part of the guest's time" },
	{ "control", "what came from outside would not repeat" },
	{ "off-cpu", "it looks at host time" },
	{ "on-hang", "it looks at host time" },
	{ "on-panic", "the run ends there anyway, with the reason" },
};

bool run_options_exact_accepts(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(takes); i++)
		if (!strcmp(takes[i], name))
			return true;
	return false;
}

static int exact_refuse(const struct run_options *o, const char *name)
{
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(whys); i++)
		if (!strcmp(whys[i].name, name))
			why = whys[i].why;
	return run_options_wrong(o, "--%s cannot be combined with --engine exact%s%s", name,
				 why ? ": " : "", why ? why : "");
}

/* Accepts only disks that are the same in the next run. */
static int exact_check_disks(const struct run_options *o)
{
	struct run_disk d;
	struct err e = { 0 };

	for (unsigned int i = 0; i < o->disk.n; i++) {
		/* It was parsed before. */
		if (run_options_disk_parse(&d, o->disk.text[i], &e))
			return run_options_wrong(o, "--disk %s", e.text);
		if (d.write == DISK_WRITABLE || d.write == DISK_OVERLAY_FILE)
			return run_options_wrong(
				o,
				"--disk %s: --engine exact keeps nothing of what is "
				"written, so that the next run is the same: leave "
				",%s out",
				d.path, d.write == DISK_WRITABLE ? "writable" : "overlay=");
		if (*d.serial)
			return run_options_wrong(o,
						 "--disk %s: under --engine exact it is an NVDIMM, "
						 "which has no serial number",
						 d.path);
		if (d.limit.bytes || d.limit.operations)
			return run_options_wrong(
				o,
				"--disk %s: under --engine exact a disk has no limit: "
				"its guest's time does not depend on it",
				d.path);
	}
	return -1;
}

int run_options_exact_check(struct run_options *o)
{
	if (o->engine != RUN_ENGINE_EXACT && o->call_counts)
		return run_options_wrong(o, "--call-counts needs --engine exact");
	if (o->engine != RUN_ENGINE_EXACT)
		return o->repeat ? run_options_wrong(o, "--repeat needs --engine exact: other "
							"runs differ each time")
				 : -1;
	o->exec.repeats = true;
	if (o->of_kvm)
		return exact_refuse(o, o->of_kvm);
	if (o->vcpus > EXACT_MAX_VCPUS)
		return run_options_wrong(o, "--vcpus %u: --engine exact has %u at most", o->vcpus,
					 EXACT_MAX_VCPUS);
	if (o->mem_size % (1u << 20))
		return run_options_wrong(o, "--memory: --engine exact takes whole MiB only");
	if (o->repeat > 1 && (!o->output || run_options_to_stdout(o)))
		return run_options_wrong(o, "--repeat compares profiles: it needs -o PATH");
	return exact_check_disks(o);
}
