/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/export/export.h"

#include "base/cleanup.h"

#include <string.h>

static const struct export_format formats[] = {
	{ "folded", "a line for each stack, for flamegraph.pl and inferno", EXPORT_TEXT_NAMES,
	  export_folded },
	{ "perf-script", "every sample as text, as `perf script` prints it", EXPORT_SAMPLES,
	  export_perf_script },
	{ "speedscope", "JSON for speedscope.app: flame charts of vCPUs or threads",
	  EXPORT_SAMPLES | EXPORT_TEXT_NAMES, export_speedscope },
	{ "pprof", "profile.proto, gzip'ed, for pprof and what reads it",
	  EXPORT_SAMPLES | EXPORT_GZIP | EXPORT_BINARY, export_pprof },
	{ "firefox", "JSON for profiler.firefox.com: threads over time",
	  EXPORT_SAMPLES | EXPORT_TEXT_NAMES, export_firefox },
	{ "callgrind", "callgrind.out, for callgrind_annotate and KCachegrind",
	  EXPORT_TEXT_NAMES | EXPORT_CALLS, export_callgrind },
	{ "chrome-trace", "Trace Event JSON: threads over time, each frame an event",
	  EXPORT_SAMPLES | EXPORT_TEXT_NAMES, export_chrome_trace },
	{ "perfetto", "a trace for Perfetto: vCPUs, threads, disks, stacks on one clock",
	  EXPORT_SAMPLES | EXPORT_EVENTS | EXPORT_BINARY, export_perfetto },
	{ "kp", "stacks between '!' as stap and DTrace print them, and a summary", 0, export_kp },
	{ "lcov",
	  "which lines of a kernel ran, for genhtml: of a profile with\n"
	  "                --call-counts and the kernel's debug information",
	  EXPORT_COVERAGE, NULL },
	{ "iprof", "a directory: for each image the samples at each offset", EXPORT_DIRECTORY,
	  export_iprof },
};

const struct export_format *export_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct export_format *export_at(size_t i)
{
	return i < ARRAY_SIZE(formats) ? &formats[i] : NULL;
}
